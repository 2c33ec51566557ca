#include "decode/decode.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>

#include "os/memory.h"
#include "reading.h"

enum { ARENA_SIZE = 8 << 20, EFFECTS_LIMIT = 1024 };

static const arg_reader readers[] = {
#define X(identifier, routine) [CLASS_##identifier] = read_##routine,
    ARG_CLASSES(X)
#undef X
};

static const enum arg_class classes[] = {
#define ARGKIND(identifier, class, set, meaning) CLASS_##class,
#include "args.def"
#undef ARGKIND
};

static const special_decoder specials[] = {
#define SPECIAL(identifier, ...) special_##identifier,
#include "specials.def"
#undef SPECIAL
};

bool decoder_init(struct decoder *decoder)
{
	*decoder = (struct decoder){.cache = path_cache_new()};
	if (decoder->cache && arena_init(&decoder->arena, ARENA_SIZE))
		return true;
	decoder_free(decoder);
	return false;
}

void decoder_free(struct decoder *decoder)
{
	path_cache_free(decoder->cache);
	arena_free(&decoder->arena);
	*decoder = (struct decoder){0};
}

void decoded_release(struct decoded *decoded)
{
	path_place_release(&decoded->place);
	path_place_release(&decoded->to_place);
}

/*
 * What we do for the task with this memory, it must be able to read itself: /proc/TID/mem shows us pages that it has no
 * access to, and has none of those that a handler in the tree is yet to fill.
 */
static bool acts_for_task(const struct reading *reading)
{
	enum handling handling = reading->out->handling;

	if (!reading->decoder->for_acting)
		return false;
	return handling == HANDLING_perform || handling == HANDLING_connect || handling == HANDLING_bind ||
	       handling == HANDLING_exec;
}

void decoded_look_again(struct decoder *decoder, const struct target *target, struct decoded *decoded)
{
	struct effect *effect = decoded->effects;

	decoded_release(decoded);
	path_forget(decoder->cache);
	path_resolve_held(decoder->cache, target, &decoded->request, &decoder->arena, &effect->object, &decoded->facts,
			  &decoded->place);
	if (decoded->to_request.path.data)
		path_resolve_held(decoder->cache, target, &decoded->to_request, &decoder->arena, &effect->to,
				  &decoded->to_facts, &decoded->to_place);
}

bool reading_memory(struct reading *reading, uint64_t address, void *out, size_t size)
{
	const struct target *target = reading->target;
	int error = EFAULT;

	if (target->memory >= 0)
		error = acts_for_task(reading) ? memory_read_as_task(target->memory, target->tid, address, out, size)
					       : memory_read(target->memory, address, out, size);
	if (error == 0)
		return true;
	reading->out->unreadable++;
	return false;
}

struct bytes reading_string(struct reading *reading, uint64_t address, size_t limit)
{
	struct arena *arena = reading_arena(reading);
	size_t before = arena->used;
	char *text = arena_alloc(arena, limit);

	ssize_t length = -EFAULT;
	if (text && reading->target->memory >= 0)
		length = acts_for_task(reading) ? memory_read_string_as_task(reading->target->memory,
									     reading->target->tid, address, text, limit)
						: memory_read_string(reading->target->memory, address, text, limit);
	if (length < 0) {
		arena->used = before;
		/* Too long is the caller's own error, which the kernel will report; anything else is our blindness. */
		if (length == -ENAMETOOLONG)
			reading_add_text(reading, "too_long", reading->row->name);
		else
			reading->out->unreadable++;
		return BYTES_NONE;
	}
	/* Give back what the limit reserved and the text did not need. */
	size_t used = (size_t)length + 1;
	arena->used -= limit - used;
	return (struct bytes){text, (size_t)length};
}

struct bytes reading_bytes(struct reading *reading, uint64_t address, size_t size)
{
	char *data = arena_alloc(reading_arena(reading), size + 1);

	if (!data)
		reading->out->unreadable++;
	if (!data || !reading_memory(reading, address, data, size))
		return BYTES_NONE;
	data[size] = 0;
	return (struct bytes){data, size};
}

struct effect_value *reading_value(struct reading *reading, const char *name, enum effect_value_type type)
{
	static struct effect_value overflow; /* written to by nobody who reads it */
	struct effect *effect = reading->effect;

	if (effect->value_count >= EFFECT_VALUE_LIMIT)
		return &overflow;
	struct effect_value *value = &effect->values[effect->value_count++];
	*value = (struct effect_value){.name = name, .type = type};
	return value;
}

void reading_add_int(struct reading *reading, const char *name, int64_t number)
{
	reading_value(reading, name, VALUE_INT)->number = number;
}

void reading_add_uint(struct reading *reading, const char *name, uint64_t number)
{
	reading_value(reading, name, VALUE_UINT)->unsigned_number = number;
}

void reading_add_text(struct reading *reading, const char *name, const char *text)
{
	reading_value(reading, name, VALUE_TEXT)->text = text;
}

void reading_add_bytes(struct reading *reading, const char *name, struct bytes bytes)
{
	if (bytes.data)
		reading_value(reading, name, VALUE_BYTES)->bytes = bytes;
}

void reading_add_hex(struct reading *reading, const char *name, uint64_t value)
{
	reading_add_bytes(reading, name, arena_format(reading_arena(reading), "0x%llx", (unsigned long long)value));
}

void reading_add_flag(struct reading *reading, const char *flag)
{
	struct effect *effect = reading->effect;

	effect->has_flags = true;
	if (effect->flag_count < EFFECT_FLAG_LIMIT)
		effect->flags[effect->flag_count++] = flag;
}

void reading_add_flags(struct reading *reading, enum flag_set set, uint64_t word)
{
	struct effect *effect = reading->effect;
	uint64_t rest = 0;

	effect->has_flags = true;
	effect->flag_count +=
	    flags_names(set, word, effect->flags + effect->flag_count, EFFECT_FLAG_LIMIT - effect->flag_count, &rest);
	effect->flags_rest |= rest;
}

size_t reading_effects(struct reading *reading, size_t count)
{
	struct decoded *out = reading->out;

	if (count > EFFECTS_LIMIT)
		count = EFFECTS_LIMIT;
	struct effect *effects = arena_alloc(reading_arena(reading), count * sizeof(*effects));
	if (!effects || count == 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		effects[i] = out->effects[0];
	out->effects = effects;
	out->count = count;
	reading->effect = effects;
	return count;
}

/* The flags of an open, wherever its row has them; creat(2) has them in its name. */
static void find_open_flags(struct reading *reading, size_t index)
{
	struct open_how how = {0};
	uint64_t size;

	switch (reading->row->args[index].kind) {
	case ARG_open_flags:
		reading->open_flags = (uint32_t)reading_arg(reading, index);
		reading->out->how.flags = reading->open_flags;
		break;
	case ARG_mode:
		reading->out->how.mode = (uint32_t)reading_arg(reading, index);
		break;
	case ARG_open_how:
		size = reading_arg(reading, index + 1);
		if (reading_memory(reading, reading_arg(reading, index), &how, size < sizeof(how) ? size : sizeof(how)))
			reading->open_flags = how.flags;
		reading->out->how = how;
		break;
	default:
		break;
	}
}

/* What stands behind a path but decides how it is resolved. */
static void read_ahead(struct reading *reading)
{
	reading->open_flags = O_CREAT | O_WRONLY | O_TRUNC;
	reading->out->how.flags = reading->open_flags;
	for (size_t i = 0; i < SYSCALL_ARGS && reading->row->args[i].name; i++) {
		find_open_flags(reading, i);
		if (classes[reading->row->args[i].kind] != CLASS_AT_FLAGS)
			continue;
		reading->at_flags = reading_arg(reading, i);
		reading->has_at_flags = true;
		reading->out->at_flags = (uint32_t)reading->at_flags;
	}
}

/* Messages last: each becomes an effect with all that the other arguments say. */
static void read_arguments(struct reading *reading)
{
	size_t messages = SYSCALL_ARGS;

	for (size_t i = 0; i < SYSCALL_ARGS && reading->row->args[i].name; i++) {
		enum arg_class class = classes[reading->row->args[i].kind];
		if (class == CLASS_MSGHDR || class == CLASS_MMSGHDR)
			messages = i;
		else
			readers[class](reading, i);
	}
	if (messages < SYSCALL_ARGS)
		readers[classes[reading->row->args[messages].kind]](reading, messages);
}

static void choose_effect(struct reading *reading)
{
	const struct syscall_variant *variant = syscall_variant_find(reading->row, reading->stop->args);

	reading->out->variant = variant;
	reading->out->handling = variant ? variant->handling : reading->row->handling;
	reading->effect->kind = variant ? variant->effect : reading->row->effect;
}

enum decode_state decode(struct decoder *decoder, const struct target *target, const struct stop *stop,
			 const struct syscall_row *row, struct decoded *out)
{
	arena_reset(&decoder->arena);
	path_forget(decoder->cache);
	*out = (struct decoded){.effects = arena_alloc(&decoder->arena, sizeof(struct effect)), .count = 1, .row = row};
	out->place.directory = out->to_place.directory = -1;
	memset(out->effects, 0, sizeof(struct effect));
	struct reading reading = {
	    .decoder = decoder,
	    .target = target,
	    .stop = stop,
	    .row = row,
	    .out = out,
	    .effect = out->effects,
	    .base = PATH_BASE_CWD,
	};
	out->effects->syscall = row->name;
	out->effects->how = HOW_observed;
	choose_effect(&reading);
	read_ahead(&reading);
	read_arguments(&reading);
	specials[row->special](&reading);
	/* A file without a name is known by the descriptor that comes back. */
	if (out->effects->kind == EFFECT_file_create && !out->request.path.data)
		out->opens = true;
	for (size_t i = 0; i < out->count; i++)
		reading_delegates(&reading, &out->effects[i]);
	reading_note_trust(out->effects);
	if (out->count == 0)
		return DECODE_NOTHING;
	return out->unreadable ? DECODE_UNREADABLE : DECODE_EFFECTS;
}
