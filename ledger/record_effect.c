#include <stdio.h>

#include "base/text.h"
#include "record_write.h"

/*
 * How an effect is made to fit. Every level is tried in turn: the agent chooses the lengths, and a record that does not
 * fit must never be a way not to be recorded. The last one fits whatever the effect holds.
 */
static const struct cut_level {
	size_t argv_budget;  /* bytes of encoded argv */
	size_t value_limit;  /* bytes of a text in args, and of a list's element */
	size_t list_limit;   /* elements of a list in args */
	size_t text_limit;   /* bytes of any other text */
	size_t script_limit; /* interpreters */
	bool drop_args;
} levels[] = {
    {SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX, false},
    {16384, SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX, false},
    {4096, 1024, 64, SIZE_MAX, 4, false},
    {4096, 0, 0, 1024, 4, true},
    {1024, 0, 0, 192, 4, true},
};

enum { LEVEL_COUNT = sizeof(levels) / sizeof(levels[0]) };

struct effect_writer {
	struct record_writer record;
	const struct effect *effect;
	const struct cut_level *level;
	struct argv_plan argv, image_argv;
	struct record_blobs *blobs; /* or NULL */
};

/* An entry of `args` under the key that it will really have. */
struct entry {
	const struct effect_value *value;
	struct bytes name;
	bool base64;
};

static int key_char(const struct entry *entry, size_t at)
{
	static const char suffix[] = "_b64";
	if (at < entry->name.size)
		return (unsigned char)entry->name.data[at];
	at -= entry->name.size;
	return entry->base64 && at < sizeof(suffix) ? suffix[at] : 0;
}

static int compare_entries(const struct entry *left, const struct entry *right)
{
	size_t at = left->name.size < right->name.size ? left->name.size : right->name.size;
	/* An empty name may have no data at all. */
	int order = at == 0 ? 0 : memcmp(left->name.data, right->name.data, at);
	while (order == 0) {
		int a = key_char(left, at), b = key_char(right, at);
		if (a == 0 && b == 0)
			break;
		order = a - b;
		at++;
	}
	return order;
}

/* Few, and nearly always in order already. Of two that have one name, the first stays the first. */
static void sort_entries(struct entry *entries, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct entry entry = entries[i];
		size_t at = i;
		for (; at > 0 && compare_entries(&entries[at - 1], &entry) > 0; at--)
			entries[at] = entries[at - 1];
		entries[at] = entry;
	}
}

static void write_list(struct effect_writer *writer, const struct effect_value *value)
{
	struct json *json = &writer->record.json;
	json_begin_array(json, value->name);
	for (size_t i = 0; i < value->list.count && i < writer->level->list_limit; i++) {
		struct bytes item = record_cut(value->list.items[i], writer->level->value_limit);
		json_element(json, item.size ? item : BYTES(""));
	}
	json_end_array(json);
}

static void write_numbers(struct effect_writer *writer, const struct effect_value *value)
{
	struct json *json = &writer->record.json;
	json_begin_array(json, value->name);
	for (size_t i = 0; i < value->numbers.count && i < writer->level->list_limit; i++)
		json_int(json, NULL, value->numbers.items[i]);
	json_end_array(json);
}

static void write_value(struct effect_writer *writer, const struct effect_value *value)
{
	struct json *json = &writer->record.json;
	switch (value->type) {
	case VALUE_INT:
		json_int(json, value->name, value->number);
		break;
	case VALUE_UINT:
		json_uint(json, value->name, value->unsigned_number);
		break;
	case VALUE_TEXT:
		json_text(json, value->name, value->text);
		break;
	case VALUE_BYTES:
		json_bytes(json, value->name, record_cut(value->bytes, writer->level->value_limit));
		break;
	case VALUE_LIST:
		write_list(writer, value);
		break;
	case VALUE_INT_LIST:
		write_numbers(writer, value);
		break;
	case VALUE_BOOL:
		json_bool(json, value->name, value->truth);
		break;
	}
}

/* What the level in force takes away from this effect. */
static void write_cut(struct effect_writer *writer)
{
	struct json *json = &writer->record.json;
	json_begin_array(json, "cut");
	if (writer->argv.cut || writer->image_argv.cut)
		json_text(json, NULL, "argv");
	if (writer->level->value_limit != SIZE_MAX && writer->effect->value_count > 0)
		json_text(json, NULL, "args");
	if (writer->level->text_limit != SIZE_MAX)
		json_text(json, NULL, "text");
	json_end_array(json);
}

static bool is_among(const struct entry *entries, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(entries[i].value->name, name) == 0)
			return true;
	return false;
}

static void write_args(struct effect_writer *writer)
{
	static const struct effect_value cut_value = {.name = "cut"};
	const struct effect *effect = writer->effect;
	struct entry entries[EFFECT_VALUE_LIMIT + 1];
	size_t count = 0;

	/* First, for it says what the record left out: no value of that name may stand in its place. */
	if (writer->level != &levels[0])
		entries[count++] = (struct entry){&cut_value, bytes_of(cut_value.name), false};
	for (size_t i = 0; i < effect->value_count && i < EFFECT_VALUE_LIMIT && !writer->level->drop_args; i++) {
		const struct effect_value *value = &effect->values[i];
		if (value->type == VALUE_BYTES && !value->bytes.data)
			continue;
		/* Two entries of one name would be an ambiguous document, however each is spelled. */
		if (is_among(entries, count, value->name))
			continue;
		bool base64 = value->type == VALUE_BYTES && !text_is_utf8(value->bytes);
		entries[count++] = (struct entry){value, bytes_of(value->name), base64};
	}
	if (count == 0)
		return;
	sort_entries(entries, count);
	json_begin_object(&writer->record.json, "args");
	for (size_t i = 0; i < count; i++) {
		if (entries[i].value == &cut_value)
			write_cut(writer);
		else
			write_value(writer, entries[i].value);
	}
	json_end_object(&writer->record.json);
}

/* A number with `bits` bits to each digit, zeros first, and what stands before it. */
static void write_digits(struct json *json, const char *key, struct bytes prefix, uint64_t value, unsigned bits,
			 unsigned least)
{
	char text[32]; /* 64 bits take 22 octal digits */
	char *end = text + sizeof(text), *start = end;
	for (unsigned digits = 0; value != 0 || digits < least; digits++, value >>= bits)
		*--start = "0123456789abcdef"[value & ((1U << bits) - 1)];
	start -= prefix.size;
	memcpy(start, prefix.data, prefix.size);
	json_word(json, key, (struct bytes){start, (size_t)(end - start)});
}

static void write_flags(struct json *json, const struct effect *effect)
{
	if (!effect->has_flags)
		return;
	json_begin_array(json, "flags");
	for (size_t i = 0; i < effect->flag_count && i < EFFECT_FLAG_LIMIT; i++)
		json_text(json, NULL, effect->flags[i]);
	if (effect->flags_rest)
		write_digits(json, NULL, BYTES("0x"), effect->flags_rest, 4, 1);
	json_end_array(json);
}

static void write_image(struct effect_writer *writer)
{
	struct record_writer *record = &writer->record;
	const struct effect_image *image = &writer->effect->image;
	if (!image->present)
		return;
	json_begin_object(&record->json, "image");
	if (image->has_argv)
		record_argv(record, image->argv, &writer->image_argv);
	record_text(record, "as_given", image->object.as_given);
	if (image->object.has_inode)
		record_dev(record, "dev", image->object.dev_major, image->object.dev_minor);
	record_text(record, "host_path", image->object.host_path);
	if (image->object.has_inode)
		json_uint_text(&record->json, "ino", image->object.ino);
	if (image->interpreter_count > 0) {
		json_begin_array(&record->json, "interpreters");
		for (size_t i = 0; i < image->interpreter_count && i < writer->level->script_limit; i++) {
			struct bytes item = record_cut(image->interpreters[i], record->text_limit);
			json_element(&record->json, item.size ? item : BYTES(""));
		}
		json_end_array(&record->json);
	}
	record_text(record, "path", image->object.path);
	record_text(record, "sha256", image->sha256);
	json_end_object(&record->json);
}

static void write_process(struct record_writer *record, const struct effect_process *process)
{
	json_begin_object(&record->json, "process");
	record_text(record, "exe", process->executable);
	json_uint(&record->json, "id", process->id);
	json_int(&record->json, "pid", process->pid);
	json_int(&record->json, "tid", process->tid);
	json_end_object(&record->json);
}

static void write_result(struct json *json, const struct effect_result *result)
{
	static const char *const by[] = {[BY_POLICY] = "policy", [BY_SELF] = "self", [BY_UNSUPPORTED] = "unsupported"};
	json_begin_object(json, "result");
	if (result->by > BY_NOBODY && (unsigned)result->by < sizeof(by) / sizeof(by[0]))
		json_text(json, "by", by[result->by]);
	if (result->undelivered)
		json_bool(json, "delivered", false);
	if (result->state == RESULT_FAILED || result->state == RESULT_REFUSED) {
		char text[24];
		const char *name = strerrorname_np(result->error);
		if (!name || result->error <= 0) {
			snprintf(text, sizeof(text), "%d", result->error);
			name = text;
		}
		json_text(json, "errno", name);
	}
	json_text(json, "state", result_state_name(result->state));
	if (result->has_value)
		json_int(json, "value", result->value);
	json_end_object(json);
}

static void write_target(struct record_writer *record, const struct effect_target *target)
{
	if (!target->present)
		return;
	json_begin_object(&record->json, "target");
	record_text(record, "exe", target->executable);
	if (target->id)
		json_uint(&record->json, "id", target->id);
	json_int(&record->json, "pid", target->pid);
	json_end_object(&record->json);
}

static bool has_object(const struct effect_object *object)
{
	return object->path.data || object->host_path.data || object->as_given.data || object->has_inode;
}

/* Keys from "args" to "kind". */
static void write_first_half(struct effect_writer *writer)
{
	struct record_writer *record = &writer->record;
	const struct effect *effect = writer->effect;
	struct json *json = &record->json;
	write_args(writer);
	if (effect->has_argv)
		record_argv(record, effect->argv, &writer->argv);
	record_text(record, "as_given", effect->object.as_given);
	record_blob_keys(record, writer->blobs);
	json_text(json, "class", record_class_name(effect->stamp.class));
	record_text(record, "cwd", effect->cwd);
	record_text(record, "delegated", effect->delegated);
	if (effect->object.has_inode)
		record_dev(record, "dev", effect->object.dev_major, effect->object.dev_minor);
	write_flags(json, effect);
	record_text(record, "host_path", effect->object.host_path);
	json_text(json, "how", effect_how_name(effect->how));
	write_image(writer);
	if (effect->object.has_inode)
		json_uint_text(json, "ino", effect->object.ino);
	json_text(json, "kind", effect_kind_name(effect->kind));
}

/* Keys from "local" to "type". */
static void write_second_half(struct effect_writer *writer)
{
	struct record_writer *record = &writer->record;
	const struct effect *effect = writer->effect;
	struct json *json = &record->json;
	json_text(json, "lane", record_lane_name(effect->stamp.lane));
	record_peer(record, "local", &effect->local);
	if (effect->has_mode)
		write_digits(json, "mode", BYTES(""), effect->mode, 3, 4);
	json_uint(json, "mono_ns", effect->stamp.mono_ns);
	record_text(record, "note", effect->note);
	record_text(record, "path", effect->object.path);
	record_peer(record, "peer", &effect->peer);
	write_process(record, &effect->process);
	write_result(json, &effect->result);
	record_schema(record);
	if (effect->has_status)
		record_status(record, effect->status_code, effect->status_signal, effect->status_core);
	if (effect->syscall)
		json_text(json, "syscall", effect->syscall);
	write_target(record, &effect->target);
	record_time(record, &effect->stamp);
	if (has_object(&effect->to) || effect->to_text.data) {
		json_begin_object(json, "to");
		record_object(record, &effect->to, effect->to_text);
		json_end_object(json);
	}
	if (record_file_type(effect->object.type))
		json_text(json, "type", record_file_type(effect->object.type));
	record_withheld(record, effect->withheld);
}

static void keep_value(struct effect_writer *writer, const struct effect_value *value)
{
	const struct cut_level *level = writer->level;
	bool cut = level->drop_args;

	if (value->type == VALUE_BYTES && (cut || value->bytes.size > level->value_limit))
		record_blob_text(writer->blobs, "args", value->name, value->bytes);
	if (value->type != VALUE_LIST)
		return;
	cut = cut || value->list.count > level->list_limit;
	for (size_t i = 0; i < value->list.count && !cut; i++)
		cut = value->list.items[i].size > level->value_limit;
	if (cut)
		record_blob_list(writer->blobs, "args", value->name, value->list.items, value->list.count);
}

static void keep_text(struct effect_writer *writer, const char *field, const char *name, struct bytes text)
{
	if (text.size > writer->level->text_limit)
		record_blob_text(writer->blobs, field, name, text);
}

/* What this level cuts, whole. */
static void keep_blobs(struct effect_writer *writer)
{
	const struct effect *effect = writer->effect;

	record_blobs_reset(writer->blobs);
	if (writer->argv.cut)
		record_blob_list(writer->blobs, "argv", NULL, effect->argv, effect->argv_count);
	if (writer->image_argv.cut)
		record_blob_list(writer->blobs, "image", "argv", effect->image.argv, effect->image.argv_count);
	keep_text(writer, "path", NULL, effect->object.path);
	keep_text(writer, "as_given", NULL, effect->object.as_given);
	keep_text(writer, "to", "path", effect->to.path);
	keep_text(writer, "to", "text", effect->to_text);
	for (size_t i = 0; i < effect->value_count && i < EFFECT_VALUE_LIMIT; i++)
		keep_value(writer, &effect->values[i]);
}

bool record_effect(struct buf *out, struct record_head *head, const struct effect *effect, struct record_blobs *blobs)
{
	struct effect_writer writer;
	if (out->failed)
		return false;
	writer.effect = effect;
	writer.blobs = blobs;
	writer.argv = writer.image_argv = (struct argv_plan){0};
	record_open(&writer.record, out, head, RECORD_effect);
	head->kind = (uint32_t)effect->kind;
	head->how = (uint32_t)effect->how;
	head->state = (uint32_t)effect->result.state;
	head->pid = effect->process.pid;
	head->process = effect->process.id;

	for (size_t i = 0; i < LEVEL_COUNT; i++) {
		if (i > 0)
			record_rewind(&writer.record);
		writer.level = &levels[i];
		writer.record.text_limit = levels[i].text_limit;
		if (effect->has_argv)
			writer.argv = record_plan_argv(effect->argv, effect->argv_count, effect->argv_total,
						       levels[i].argv_budget);
		if (effect->image.has_argv)
			writer.image_argv = record_plan_argv(effect->image.argv, effect->image.argv_count,
							     effect->image.argv_total, levels[i].argv_budget);
		if (i > 0 && blobs)
			keep_blobs(&writer);
		write_first_half(&writer);
		write_second_half(&writer);
		if (record_finish(&writer.record))
			return true;
	}
	return false;
}
