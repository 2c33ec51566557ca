#include "base/json.h"

#include <assert.h>
#include <inttypes.h>

#include "base/text.h"

static const char json_foreign_suffix[] = "_b64";
/* Above this a reader that holds numbers as doubles (RFC 8785 assumes one) would read another number. */
static const uint64_t json_integer_max = ((uint64_t)1 << 53) - 1;

static unsigned json_level(const struct json *json)
{
	return json->depth < JSON_DEPTH_LIMIT ? json->depth : JSON_DEPTH_LIMIT - 1;
}

static void json_escape(struct buf *out, unsigned char c)
{
	switch (c) {
	case '"':
		buf_append_text(out, "\\\"");
		break;
	case '\\':
		buf_append_text(out, "\\\\");
		break;
	case '\b':
		buf_append_text(out, "\\b");
		break;
	case '\t':
		buf_append_text(out, "\\t");
		break;
	case '\n':
		buf_append_text(out, "\\n");
		break;
	case '\f':
		buf_append_text(out, "\\f");
		break;
	case '\r':
		buf_append_text(out, "\\r");
		break;
	default: {
		/* Not by printf: names full of control characters must not be a way to slow us down. */
		const char escape[] = {'\\', 'u', '0', '0', (char)('0' + (c >> 4)), "0123456789abcdef"[c & 15]};
		buf_append(out, escape, sizeof(escape));
		break;
	}
	}
}

/* Runs that need no escape are appended at once: nearly every string is one run. */
static void json_string(struct buf *out, struct bytes text)
{
	buf_append_char(out, '"');
	size_t run = 0;
	for (size_t i = 0; i < text.size;) {
		unsigned char c = (unsigned char)text.data[i];
		uint32_t code_point;
		size_t size =
		    c < 0x80 ? 1 : text_utf8_decode((struct bytes){text.data + i, text.size - i}, &code_point);
		if (size != 0 && c >= 0x20 && c != '"' && c != '\\') {
			i += size;
			continue;
		}
		buf_append(out, text.data + run, i - run);
		if (size == 0)
			buf_append_text(out, "\xef\xbf\xbd");
		else
			json_escape(out, c);
		run = ++i;
	}
	if (text.size > run)
		buf_append(out, text.data + run, text.size - run);
	buf_append_char(out, '"');
}

static int json_key_compare(struct bytes a, struct bytes b)
{
	int order = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
	return order ? order : (a.size > b.size) - (a.size < b.size);
}

/*
 * True when `key` follows the key before it, in either form that that one may have been written in: whether the output
 * is canonical must not depend on the agent's bytes, nor be found out only when they are not UTF-8.
 */
__attribute__((unused)) /* without asserts */
static bool
json_key_follows(const struct json *json, struct bytes key)
{
	unsigned level = json_level(json);
	struct bytes last = json->last_key[level];
	if (!last.data)
		return true;
	if (json_key_compare(last, key) >= 0)
		return false;
	if (!json->last_foreign[level] || !bytes_start_with(key, last))
		return true;
	struct bytes rest = {key.data + last.size, key.size - last.size};
	return json_key_compare(bytes_of(json_foreign_suffix), rest) < 0;
}

static void json_key_check(struct json *json, const char *key, bool foreign)
{
	unsigned level = json_level(json);
	assert(json->out->failed || json->keyed[level] == (key != NULL));
	if (!key)
		return;
	assert(json->out->failed || json_key_follows(json, bytes_of(key)));
	json->last_key[level] = bytes_of(key);
	json->last_foreign[level] = foreign;
}

/* Write what comes before a value: the comma, and the key with its suffix. */
static void json_before(struct json *json, const char *key, const char *suffix)
{
	unsigned level = json_level(json);
	assert(json->out->failed || json->depth > 0 || json->first[0]);
	if (!json->first[level])
		buf_append_char(json->out, ',');
	json->first[level] = false;
	if (!key)
		return;
	json_string(json->out, bytes_of(key));
	if (*suffix && !json->out->failed) {
		json->out->size--; /* reopen the string */
		buf_append_text(json->out, suffix);
		buf_append_char(json->out, '"');
	}
	buf_append_char(json->out, ':');
}

static void json_value(struct json *json, const char *key)
{
	json_key_check(json, key, false);
	json_before(json, key, "");
}

static void json_open(struct json *json, const char *key, char c, bool keyed)
{
	json_value(json, key);
	buf_append_char(json->out, c);
	if (++json->depth >= JSON_DEPTH_LIMIT)
		json->out->failed = true;
	unsigned level = json_level(json);
	json->first[level] = true;
	json->keyed[level] = keyed;
	json->last_foreign[level] = false;
	json->last_key[level] = BYTES_NONE;
}

static void json_close(struct json *json, char c, bool keyed)
{
	if (json->depth == 0 || (json->depth < JSON_DEPTH_LIMIT && json->keyed[json->depth] != keyed)) {
		json->out->failed = true;
		return;
	}
	json->depth--;
	buf_append_char(json->out, c);
}

void json_start(struct json *json, struct buf *out)
{
	*json = (struct json){.out = out, .first = {true}};
}

void json_begin_object(struct json *json, const char *key)
{
	json_open(json, key, '{', true);
}

void json_end_object(struct json *json)
{
	json_close(json, '}', true);
}

void json_begin_array(struct json *json, const char *key)
{
	json_open(json, key, '[', false);
}

void json_end_array(struct json *json)
{
	json_close(json, ']', false);
}

void json_text(struct json *json, const char *key, const char *text)
{
	json_value(json, key);
	json_string(json->out, bytes_of(text));
}

static void json_base64(struct json *json, struct bytes bytes)
{
	buf_append_char(json->out, '"');
	text_base64(json->out, bytes);
	buf_append_char(json->out, '"');
}

void json_bytes(struct json *json, const char *key, struct bytes bytes)
{
	assert(key);
	json_key_check(json, key, true);
	if (!bytes.data)
		return;
	if (text_is_utf8(bytes)) {
		json_before(json, key, "");
		json_string(json->out, bytes);
		return;
	}
	json_before(json, key, json_foreign_suffix);
	json_base64(json, bytes);
}

void json_element(struct json *json, struct bytes bytes)
{
	json_value(json, NULL);
	if (!bytes.data) {
		buf_append_text(json->out, "null");
	} else if (text_is_utf8(bytes)) {
		json_string(json->out, bytes);
	} else {
		buf_append_text(json->out, "{\"b64\":");
		json_base64(json, bytes);
		buf_append_char(json->out, '}');
	}
}

void json_int(struct json *json, const char *key, int64_t value)
{
	if (value >= 0) {
		json_uint(json, key, (uint64_t)value);
		return;
	}
	json_value(json, key);
	bool exact = value >= -(int64_t)json_integer_max;
	buf_append_format(json->out, exact ? "%" PRId64 : "\"%" PRId64 "\"", value);
}

void json_uint(struct json *json, const char *key, uint64_t value)
{
	if (value > json_integer_max) {
		json_uint_text(json, key, value);
		return;
	}
	json_value(json, key);
	buf_append_format(json->out, "%" PRIu64, value);
}

void json_uint_text(struct json *json, const char *key, uint64_t value)
{
	json_value(json, key);
	buf_append_format(json->out, "\"%" PRIu64 "\"", value);
}

void json_bool(struct json *json, const char *key, bool value)
{
	json_value(json, key);
	buf_append_text(json->out, value ? "true" : "false");
}
