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

/* Containers; `key` is NULL inside an array and at the top. */
void json_begin_object(struct json *json, const char *key);
void json_end_object(struct json *json);
void json_begin_array(struct json *json, const char *key);
void json_end_array(struct json *json);

/* Text that this program made: valid UTF-8, NUL-terminated. A byte that is not becomes U+FFFD. */
void json_text(struct json *json, const char *key, const char *text);
/* Foreign bytes: a string under `key` when they are UTF-8, else Base64 under `key`_b64. Absent bytes write nothing. */
void json_bytes(struct json *json, const char *key, struct bytes bytes);
/* A foreign array element: a string, or {"b64":"..."}; null when absent. */
void json_element(struct json *json, struct bytes bytes);
/* Integers whose magnitude exceeds 2^53 - 1 are written as decimal strings. */
void json_int(struct json *json, const char *key, int64_t value);
void json_uint(struct json *json, const char *key, uint64_t value);
/* Always a decimal string (inode numbers, digests as numbers, cookies). */
void json_uint_text(struct json *json, const char *key, uint64_t value);
void json_bool(struct json *json, const char *key, bool value);
