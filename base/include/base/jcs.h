/*
 * Canonical JSON (RFC 8785). base/json.h writes it; this brings foreign documents into the form, and says of one whether it
 * has it.
 */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"
#include "base/err.h"

enum { JCS_DEPTH_LIMIT = 64, JCS_NUMBER_SIZE = 32 };

/* A number as ECMAScript prints it (Number::toString), NUL-terminated. False for what JSON cannot hold. */
bool jcs_number(double value, char out[JCS_NUMBER_SIZE]);

/*
 * One document that is byte for byte what jcs_write() would make of it. In one pass, without memory; numbers that are no
 * plain integers below 2^53 cost more.
 */
bool jcs_is_canonical(struct bytes document);

/*
 * The value of a member of an object in a canonical document, as it is written there (a string with its quotes and escapes).
 * Absent when the document is no object or has no such member. `key` is plain ASCII.
 */
struct bytes jcs_member(struct bytes document, const char *key);

/* Append what such a string stands for. False when the value is none, or is not in canonical form. */
bool jcs_string(struct bytes value, struct buf *out);

/* The next element of an array in a canonical document: `rest` begins as the array, and goes on behind each. */
bool jcs_element(struct bytes *rest, struct bytes *out);
/* The next member of an object, in the same way; `key` as it stands between its quotes. */
bool jcs_pair(struct bytes *rest, struct bytes *key, struct bytes *value);

/*
 * Append the canonical form of a JSON text (RFC 8259). Refused: duplicate keys, lone surrogates, text that is not UTF-8,
 * numbers beyond the range of a double, nesting beyond JCS_DEPTH_LIMIT, anything behind the value.
 */
bool jcs_write(struct bytes document, struct buf *out, struct err *err);

/*
 * The same in the order of ECMAScript's JSON.stringify, where members whose names are array indices (0 to 2^32 - 2) come
 * first, by number, whatever else orders them: the others by UTF-16 code units (what SignedEnvelopes sign), or as they
 * were given (what is hashed of an envelope as a whole). The name __proto__ is refused: who reads it there may lose it.
 */
enum jcs_order { JCS_RFC8785, JCS_ECMA_SORTED, JCS_ECMA_GIVEN };
bool jcs_write_as(struct bytes document, enum jcs_order order, struct buf *out, struct err *err);
