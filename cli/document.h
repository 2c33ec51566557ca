/*
 * Reading stored JSON. The only file that knows the parser is document.c; JSON is written with base/json.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

/* A value inside a parsed document, or the document; NULL stands for "not there" and may be passed to every getter. */
struct document;

struct document *document_parse(struct bytes text, struct err *err);
void document_free(struct document *document);

const struct document *document_get(const struct document *object, const char *key);
/* Elements of an array. */
size_t document_size(const struct document *array);
const struct document *document_at(const struct document *array, size_t index);

/* A string that assure itself chose (a kind, a code). NULL when it is none. */
const char *document_text(const struct document *object, const char *key);
/* A number, also when it is written as a decimal string. */
bool document_uint(const struct document *object, const char *key, uint64_t *value);
int64_t document_int(const struct document *object, const char *key, int64_t otherwise);
bool document_bool(const struct document *object, const char *key, bool otherwise);
/* Bytes of `key` or `key`_b64; decoded ones live in `arena`. */
struct bytes document_bytes(const struct document *object, const char *key, struct arena *arena);
/* The same for an element of an array: a string or {"b64":…}. */
struct bytes document_element(const struct document *value, struct arena *arena);
/* Append the value as compact JSON. */
void document_dump(const struct document *value, struct buf *out);
/* Every key of an object in the document's order. */
void document_each(const struct document *object,
		   void (*visit)(void *context, const char *key, const struct document *value), void *context);
