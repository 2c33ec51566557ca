#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/text.h"
#include "record_write.h"

void record_open(struct record_writer *writer, struct buf *out, struct record_head *head, enum record_type type)
{
	writer->out = out;
	writer->start = out->size;
	writer->text_limit = SIZE_MAX;
	writer->head = head;
	*head = (struct record_head){.type = (uint32_t)type};
	json_start(&writer->json, out);
	json_begin_object(&writer->json, NULL);
}

void record_rewind(struct record_writer *writer)
{
	writer->out->size = writer->start;
	writer->out->failed = false;
	json_start(&writer->json, writer->out);
	json_begin_object(&writer->json, NULL);
}

void record_schema(struct record_writer *writer)
{
	json_text(&writer->json, "schema", record_type_name((enum record_type)writer->head->type));
	/* Behind the comma that the next key will bring. */
	writer->head->seq_at = (uint32_t)(writer->out->size - writer->start + 1);
}

void record_time(struct record_writer *writer, const struct record_stamp *stamp)
{
	char text[31];
	clock_rfc3339(stamp->realtime_ns, text);
	json_word(&writer->json, "time", (struct bytes){text, sizeof(text) - 1});
}

bool record_finish(struct record_writer *writer)
{
	json_end_object(&writer->json);
	return !writer->out->failed && writer->out->size - writer->start <= RECORD_BODY_LIMIT;
}

struct bytes record_cut_long(struct bytes text, size_t limit)
{
	struct bytes cut = {text.data, limit};
	if (!text_is_utf8(text))
		return cut;
	while (cut.size > 0 && ((unsigned char)text.data[cut.size] & 0xc0) == 0x80)
		cut.size--;
	return cut;
}

size_t record_text_bound(struct bytes text)
{
	size_t escaped = 2;
	for (size_t i = 0; i < text.size; i++) {
		unsigned char c = (unsigned char)text.data[i];
		escaped += c < 0x20 || c == 0x7f ? 6 : c == '"' || c == '\\' ? 2 : 1;
	}
	size_t base64 = (text.size + 2) / 3 * 4 + sizeof("{\"b64\":\"\"}");
	return escaped > base64 ? escaped : base64;
}

void record_dev(struct record_writer *writer, const char *key, uint32_t dev_major, uint32_t dev_minor)
{
	char text[2 * sizeof("4294967295")];
	char *end = text_put_decimal(text, dev_major, text_decimal_size(dev_major));
	*end++ = ':';
	end = text_put_decimal(end, dev_minor, text_decimal_size(dev_minor));
	json_word(&writer->json, key, (struct bytes){text, (size_t)(end - text)});
}

const char *record_file_type(uint16_t type)
{
	switch (type & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "dir";
	case S_IFLNK:
		return "symlink";
	case S_IFBLK:
		return "block";
	case S_IFCHR:
		return "char";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	default:
		return NULL;
	}
}

void record_object(struct record_writer *writer, const struct effect_object *object, struct bytes text)
{
	struct json *json = &writer->json;
	record_text(writer, "as_given", object->as_given);
	if (object->has_inode)
		record_dev(writer, "dev", object->dev_major, object->dev_minor);
	record_text(writer, "host_path", object->host_path);
	if (object->has_inode)
		json_uint_text(json, "ino", object->ino);
	record_text(writer, "path", object->path);
	record_text(writer, "text", text);
	if (record_file_type(object->type))
		json_text(json, "type", record_file_type(object->type));
}

void record_peer(struct record_writer *writer, const char *key, const struct effect_peer *peer)
{
	struct json *json = &writer->json;
	if (!peer->present)
		return;
	json_begin_object(json, key);
	record_text(writer, "address", peer->address);
	record_text(writer, "family", peer->family);
	if (peer->object.path.data || peer->object.host_path.data || peer->object.has_inode) {
		json_begin_object(json, "object");
		record_object(writer, &peer->object, BYTES_NONE);
		json_end_object(json);
	}
	record_text(writer, "path", peer->path);
	if (peer->port >= 0)
		json_int(json, "port", peer->port);
	record_text(writer, "protocol", peer->protocol);
	json_end_object(json);
}

void record_status(struct record_writer *writer, int code, int signal, bool core)
{
	struct json *json = &writer->json;
	json_begin_object(json, "status");
	if (code >= 0)
		json_int(json, "code", code);
	if (signal >= 0) {
		char name[32];
		const char *known = sigabbrev_np(signal);
		if (known)
			snprintf(name, sizeof(name), "SIG%s", known);
		else
			snprintf(name, sizeof(name), "SIG%d", signal);
		json_bool(json, "core", core);
		json_text(json, "signal", name);
	}
	json_end_object(json);
}

struct argv_plan record_plan_argv(const struct bytes *argv, size_t count, uint64_t total, size_t budget)
{
	enum { HEAD = 256 }; /* bytes that are kept of the first argument that does not fit */
	struct argv_plan plan = {.total = total > count ? total : 0};
	bool unlimited = budget == SIZE_MAX; /* more than all memory holds: nothing has to be measured */
	for (size_t i = 0; i < count && !plan.cut; i++) {
		struct bytes element = argv[i];
		size_t bound = unlimited ? 0 : record_text_bound(element) + 1;
		if (bound > budget) {
			plan.cut = true;
			element = record_cut(element, HEAD);
			bound = record_text_bound(element) + 1;
		}
		if (bound > budget)
			break;
		budget -= bound;
		plan.count = i + 1;
		plan.last = element.size;
	}
	if (plan.cut && !plan.total)
		plan.total = count;
	return plan;
}

void record_argv(struct record_writer *writer, const struct bytes *argv, const struct argv_plan *plan)
{
	struct json *json = &writer->json;
	json_begin_array(json, "argv");
	for (size_t i = 0; i < plan->count; i++) {
		size_t size = i + 1 == plan->count ? plan->last : argv[i].size;
		json_element(json, size ? (struct bytes){argv[i].data, size} : BYTES(""));
	}
	json_end_array(json);
	if (plan->total)
		json_uint(json, "argv_total", plan->total);
}

bool record_seal(struct buf *out, const struct record_head *head, struct bytes body, uint64_t seq)
{
	size_t at = head->seq_at;
	if (seq >> 53) /* readers that hold numbers as doubles could not tell it from its neighbour */
		return false;
	if (body.size < 4 || body.size > RECORD_BODY_LIMIT || at < 2 || at >= body.size)
		return false;
	/* The head comes from the process that reads the agent's memory: it is checked, not believed. */
	if (body.data[0] != '{' || body.data[body.size - 1] != '}' || body.data[at] != '"' || body.data[at - 1] != ',')
		return false;
	buf_append(out, body.data, at);
	buf_append_text(out, "\"seq\":");
	text_decimal(out, seq);
	buf_append_char(out, ',');
	buf_append(out, body.data + at, body.size - at);
	return !out->failed;
}

void record_withheld(struct record_writer *writer, redactions withheld)
{
	struct json *json = &writer->json;

	if (withheld == 0)
		return;
	json_begin_array(json, "withheld");
	for (unsigned bit = 0; bit <= REDACTION_PATTERN; bit++) {
		bool said = false;
		for (unsigned before = 0; before < bit && !said; before++)
			said = withheld >> before & 1 && strcmp(redaction_name(before), redaction_name(bit)) == 0;
		if (withheld >> bit & 1 && !said)
			json_text(json, NULL, redaction_name(bit));
	}
	json_end_array(json);
}
