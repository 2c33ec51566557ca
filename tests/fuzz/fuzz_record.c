/*
 * Whatever bytes an effect holds: its record is valid JSON within the limit, and can be sealed.
 */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>

#include "ledger/record.h"

struct input {
	const uint8_t *data;
	size_t size;
};

static uint64_t take_number(struct input *input, size_t bytes)
{
	uint64_t value = 0;
	for (; bytes > 0 && input->size > 0; bytes--, input->data++, input->size--)
		value = value << 8 | *input->data;
	return value;
}

/* A text of the input, repeated up to 255 times so that small inputs reach the limits too. */
static struct bytes take_text(struct input *input, struct arena *arena)
{
	size_t size = take_number(input, 1), times = take_number(input, 1);
	if (size == 255)
		return BYTES_NONE;
	if (size > input->size)
		size = input->size;
	char *out = arena_alloc(arena, size * (times + 1) + 1);
	if (!out)
		return BYTES_NONE;
	for (size_t i = 0; i <= times; i++)
		for (size_t j = 0; j < size; j++)
			out[i * size + j] = (char)input->data[j];
	input->data += size;
	input->size -= size;
	return (struct bytes){out, size * (times + 1)};
}

static struct effect_object take_object(struct input *input, struct arena *arena)
{
	return (struct effect_object){
	    .path = take_text(input, arena),
	    .host_path = take_text(input, arena),
	    .as_given = take_text(input, arena),
	    .has_inode = take_number(input, 1) & 1,
	    .dev_major = (uint32_t)take_number(input, 1),
	    .ino = take_number(input, 8),
	    .type = (uint16_t)take_number(input, 2),
	};
}

static struct effect_peer take_peer(struct input *input, struct arena *arena)
{
	return (struct effect_peer){
	    .present = take_number(input, 1) & 1,
	    .family = take_text(input, arena),
	    .address = take_text(input, arena),
	    .port = (int)take_number(input, 2),
	    .path = take_text(input, arena),
	    .protocol = take_text(input, arena),
	    .object = take_object(input, arena),
	};
}

static void check(const struct effect *effect)
{
	CLEANUP_BUF struct buf body = {.limit = 1 << 24};
	CLEANUP_BUF struct buf sealed = {.limit = 1 << 24};
	struct record_head head;
	json_error_t error;
	if (!record_effect(&body, &head, effect, NULL) ||
	    !record_seal(&sealed, &head, buf_bytes(&body), ((uint64_t)1 << 53) - 1) || sealed.size > RECORD_SIZE_LIMIT)
		abort();
	json_t *json = json_loadb(sealed.data, sealed.size, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
	if (!json)
		abort();
	json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { LIST = 16 };
	static const char *const names[] = {"a", "b", "cut", "dd", "e", "mode", "sig", "zz"};
	struct input input = {data, size};
	struct arena arena;
	struct bytes argv[LIST], items[LIST];
	int64_t numbers[LIST];
	if (!arena_init(&arena, 1 << 22))
		return 0;
	for (size_t i = 0; i < LIST; i++) {
		argv[i] = take_text(&input, &arena);
		items[i] = take_text(&input, &arena);
		numbers[i] = (int64_t)take_number(&input, 8);
	}
	struct effect effect = {
	    .kind = (enum effect_kind)take_number(&input, 1),
	    .how = (enum effect_how)take_number(&input, 1),
	    .stamp = {.realtime_ns = (int64_t)take_number(&input, 7),
		      .mono_ns = take_number(&input, 8),
		      .lane = (enum record_lane)take_number(&input, 1),
		      .class = (enum record_class)take_number(&input, 1)},
	    .object = take_object(&input, &arena),
	    .to = take_object(&input, &arena),
	    .to_text = take_text(&input, &arena),
	    .peer = take_peer(&input, &arena),
	    .local = take_peer(&input, &arena),
	    .target = {.present = true, .pid = -1, .executable = take_text(&input, &arena)},
	    .has_argv = true,
	    .argv = argv,
	    .argv_count = LIST,
	    .argv_total = take_number(&input, 1),
	    .cwd = take_text(&input, &arena),
	    .image = {.present = true,
		      .object = take_object(&input, &arena),
		      .interpreters = items,
		      .interpreter_count = LIST},
	    .has_flags = true,
	    .flags_rest = take_number(&input, 8),
	    .has_mode = true,
	    .mode = (uint32_t)take_number(&input, 4),
	    .has_status = true,
	    .status_code = -1,
	    .status_signal = (int)take_number(&input, 1),
	    .result = {.state = (enum result_state)take_number(&input, 1),
		       .error = (int)take_number(&input, 2),
		       .by = (enum result_by)take_number(&input, 1),
		       .has_value = true,
		       .value = (int64_t)take_number(&input, 8)},
	    .delegated = take_text(&input, &arena),
	    .note = take_text(&input, &arena),
	};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct effect_value *value = &effect.values[effect.value_count++];
		*value = (struct effect_value){.name = names[take_number(&input, 1) % 8], .type = VALUE_BYTES};
		switch (take_number(&input, 1) % 4) {
		case 0:
			value->bytes = take_text(&input, &arena);
			break;
		case 1:
			value->type = VALUE_LIST;
			value->list.items = items;
			value->list.count = LIST;
			break;
		case 2:
			value->type = VALUE_INT_LIST;
			value->numbers.items = numbers;
			value->numbers.count = LIST;
			break;
		default:
			value->type = VALUE_UINT;
			value->unsigned_number = take_number(&input, 8);
		}
	}
	check(&effect);
	arena_free(&arena);
	return 0;
}
