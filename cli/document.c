#include "document.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

/* `struct document` is never defined: it is the parser's value under a name that other files may use. */
static const json_t *as_json(const struct document *document)
{
	return (const json_t *)(const void *)document;
}

static const struct document *as_document(const json_t *json)
{
	return (const struct document *)(const void *)json;
}

struct document *document_parse(struct bytes text, struct err *err)
{
	json_error_t error;
	json_t *json =
	    json_loadb(text.data ? text.data : "", text.size, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
	if (!json) {
		err_set(err, 0, "read record: %s at byte %d", error.text, error.position);
		err_hint(err, "the run's file is damaged");
	}
	return (struct document *)(void *)json;
}

void document_free(struct document *document)
{
	json_decref((json_t *)(void *)document);
}

const struct document *document_get(const struct document *object, const char *key)
{
	return as_document(json_object_get(as_json(object), key));
}

size_t document_size(const struct document *array)
{
	return json_array_size(as_json(array));
}

const struct document *document_at(const struct document *array, size_t index)
{
	return as_document(json_array_get(as_json(array), index));
}

const char *document_text(const struct document *object, const char *key)
{
	return json_string_value(json_object_get(as_json(object), key));
}

bool document_uint(const struct document *object, const char *key, uint64_t *value)
{
	const json_t *found = json_object_get(as_json(object), key);
	if (json_is_integer(found) && json_integer_value(found) >= 0) {
		*value = (uint64_t)json_integer_value(found);
		return true;
	}
	const char *text = json_string_value(found);
	if (!text || *text < '0' || *text > '9')
		return false;
	char *end;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return *end == '\0' && errno == 0;
}

int64_t document_int(const struct document *object, const char *key, int64_t otherwise)
{
	const json_t *found = json_object_get(as_json(object), key);
	return json_is_integer(found) ? json_integer_value(found) : otherwise;
}

bool document_bool(const struct document *object, const char *key, bool otherwise)
{
	const json_t *found = json_object_get(as_json(object), key);
	return json_is_boolean(found) ? json_is_true(found) : otherwise;
}

static int base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static struct bytes decode(const json_t *text, struct arena *arena)
{
	const char *in = json_string_value(text);
	size_t size = json_string_length(text), used = 0;
	char *out = in ? arena_alloc(arena, size / 4 * 3 + 3) : NULL;
	uint32_t bits = 0;
	int have = 0;
	if (!out)
		return BYTES_NONE;
	for (size_t i = 0; i < size && in[i] != '='; i++) {
		int value = base64_value(in[i]);
		if (value < 0)
			return BYTES_NONE;
		bits = bits << 6 | (uint32_t)value;
		have += 6;
		if (have >= 8) {
			have -= 8;
			out[used++] = (char)(unsigned char)(bits >> have & 0xff);
		}
	}
	return (struct bytes){out, used};
}

static struct bytes string_bytes(const json_t *text)
{
	return (struct bytes){json_string_value(text), json_string_length(text)};
}

struct bytes document_bytes(const struct document *object, const char *key, struct arena *arena)
{
	char other[64];
	const json_t *found = json_object_get(as_json(object), key);
	if (json_is_string(found))
		return string_bytes(found);
	snprintf(other, sizeof(other), "%s_b64", key);
	return decode(json_object_get(as_json(object), other), arena);
}

struct bytes document_element(const struct document *value, struct arena *arena)
{
	const json_t *json = as_json(value);
	return json_is_string(json) ? string_bytes(json) : decode(json_object_get(json, "b64"), arena);
}

void document_dump(const struct document *value, struct buf *out)
{
	char *text = value ? json_dumps(as_json(value), JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
	if (text)
		buf_append_text(out, text);
	free(text);
}

void document_each(const struct document *object,
		   void (*visit)(void *context, const char *key, const struct document *value), void *context)
{
	json_t *json = (json_t *)(uintptr_t)(const void *)object;
	for (void *at = json_object_iter(json); at; at = json_object_iter_next(json, at))
		visit(context, json_object_iter_key(at), as_document(json_object_iter_value(at)));
}
