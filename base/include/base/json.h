/*
 * The one JSON writer. Output is compact, and canonical (RFC 8785) for the values that it can write: keys must be added
 * in code point order, which is checked in debug builds (so a key must live as long as its container is open); numbers
 * are integers; larger ones are decimal strings. Nesting deeper than JSON_DEPTH_LIMIT, or ending what was not begun,
 * sets `failed` of the buffer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum { JSON_DEPTH_LIMIT = 32 };

struct json {
	struct buf *out; /* borrowed */
	unsigned depth;
	bool first[JSON_DEPTH_LIMIT];
	bool keyed[JSON_DEPTH_LIMIT];            /* an object, for the checks */
	bool last_foreign[JSON_DEPTH_LIMIT];     /* the last key may have been written as <key>_b64 */
	struct bytes last_key[JSON_DEPTH_LIMIT]; /* for the order check */
};

void json_start(struct json *json, struct buf *out);

/*
 * The functions further down, for a key whose length is known: for a literal it is, when the program is compiled. Absent
 * where there is no key.
 */
void json_at_open(struct json *json, struct bytes key, char bracket);
void json_at_text(struct json *json, struct bytes key, struct bytes text);
void json_at_word(struct json *json, struct bytes key, struct bytes word);
void json_at_bytes(struct json *json, struct bytes key, struct bytes bytes);
void json_at_int(struct json *json, struct bytes key, int64_t value);
void json_at_uint(struct json *json, struct bytes key, uint64_t value);
void json_at_uint_text(struct json *json, struct bytes key, uint64_t value);
void json_at_bool(struct json *json, struct bytes key, bool value);
void json_at_value(struct json *json, struct bytes key, struct bytes value);
/* For forms of others; ours leave out what is absent. */
void json_at_null(struct json *json, struct bytes key);

/*
 * Containers; `key` is NULL inside an array and at the top. Keys are constants of this program, of ASCII that needs no
 * escape: they are written as they are.
 */
static inline void json_begin_object(struct json *json, const char *key)
{
	json_at_open(json, bytes_of(key), '{');
}
void json_end_object(struct json *json);
static inline void json_begin_array(struct json *json, const char *key)
{
	json_at_open(json, bytes_of(key), '[');
}
void json_end_array(struct json *json);

/* Text that this program made: valid UTF-8, NUL-terminated. A byte that is not becomes U+FFFD. */
static inline void json_text(struct json *json, const char *key, const char *text)
{
	json_at_text(json, bytes_of(key), bytes_of(text));
}
/* The same for ASCII of ours that needs no escape, as a number in some form. */
static inline void json_word(struct json *json, const char *key, struct bytes word)
{
	json_at_word(json, bytes_of(key), word);
}
/* Foreign bytes: a string under `key` when they are UTF-8, else Base64 under `key`_b64. Absent bytes write nothing. */
static inline void json_bytes(struct json *json, const char *key, struct bytes bytes)
{
	json_at_bytes(json, bytes_of(key), bytes);
}
/* A foreign array element: a string, or {"b64":"..."}; null when absent. */
void json_element(struct json *json, struct bytes bytes);
/* Integers whose magnitude exceeds 2^53 - 1 are written as decimal strings. */
static inline void json_int(struct json *json, const char *key, int64_t value)
{
	json_at_int(json, bytes_of(key), value);
}
static inline void json_uint(struct json *json, const char *key, uint64_t value)
{
	json_at_uint(json, bytes_of(key), value);
}
/* Always a decimal string (inode numbers, digests as numbers, cookies). */
static inline void json_uint_text(struct json *json, const char *key, uint64_t value)
{
	json_at_uint_text(json, bytes_of(key), value);
}
static inline void json_bool(struct json *json, const char *key, bool value)
{
	json_at_bool(json, bytes_of(key), value);
}
/* A value that is canonical JSON already (base/jcs.h), as it is. Absent bytes write nothing. */
static inline void json_value(struct json *json, const char *key, struct bytes value)
{
	json_at_value(json, bytes_of(key), value);
}
