/*
 * JSON read as it arrives: cut anywhere, without memory that grows with the document. A tree (as jansson makes) needs the
 * whole text, costs a multiple of it, and has lost the exact bytes of a value, which is what the digests are over.
 *
 * Where a value stands is a path of steps: the word of a member's name (words.def), SCAN_ELEMENT for an element of an
 * array, SCAN_OTHER for a name that no dialect looks at. Values whose *containers* have such a name are passed over: only
 * their form is checked. Nothing is said of numbers' form, control characters in strings, or names that occur twice: what the witness
 * reads is what was said, not whether it should have been said so.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum scan_word {
	SCAN_OTHER,
#define WORD(identifier) WORD_##identifier,
#include "words.def"
#undef WORD
	SCAN_WORD_COUNT,
	SCAN_ELEMENT = 0xff,
};

enum { SCAN_DEPTH_LIMIT = 128, SCAN_NAME_SIZE = 48, SCAN_TOKEN_SIZE = 64 };

enum scan_kind { SCAN_OBJECT, SCAN_ARRAY, SCAN_STRING, SCAN_TOKEN /* number, true, false, null */ };

/* What is wanted of a value that begins. */
enum {
	SCAN_PASS = 0,
	SCAN_TAKE = 1, /* a string's or a token's content; of a container, that it ended */
	SCAN_RAW = 2,  /* the bytes of the value as they stand, whatever it is; not within another such value */
};

struct scan;

/* Pieces are views that hold during the call alone. */
struct scan_handler {
	/* A value begins at the scan's path. Returns what is wanted of it. */
	unsigned (*begin)(void *context, const struct scan *scan, enum scan_kind kind);
	/* A piece of a string that is taken, escapes resolved; or a whole token. `last` also with an empty piece. */
	void (*text)(void *context, const struct scan *scan, struct bytes piece, bool last);
	/* A container that is taken ended; the path is its own again. */
	void (*end)(void *context, const struct scan *scan);
	/* A piece of a value that is taken raw. */
	void (*raw)(void *context, struct bytes piece, bool last);
};

struct scan {
	const struct scan_handler *handler; /* borrowed */
	void *context;
	unsigned depth;                  /* open containers: the value's path is step[0 … depth-1] */
	uint8_t step[SCAN_DEPTH_LIMIT];  /* within each open container, where we are */
	uint8_t level[SCAN_DEPTH_LIMIT]; /* of each open container: is it an array, is it taken */
	unsigned passed;                 /* depth of the outermost container that is passed over; 0 when none is */
	uint8_t state;
	bool want_text, in_name;
	bool raw;
	unsigned raw_depth;
	uint16_t unit; /* of a \u escape: what was read of it */
	uint8_t unit_digits;
	uint16_t high; /* a high surrogate that waits for its other half */
	uint8_t name_size;
	bool name_long;
	char name[SCAN_NAME_SIZE]; /* of the innermost member */
	uint8_t token_size;
	char token[SCAN_TOKEN_SIZE];
};

/* Begin a document. */
void scan_begin(struct scan *scan, const struct scan_handler *handler, void *context);
/* Read on. False when the document is broken or too deep; all further bytes are then ignored. */
bool scan_feed(struct scan *scan, struct bytes bytes);
/* The document ends here: true when it was one whole value. */
bool scan_end(struct scan *scan);
/* True when nothing but white space was read. */
bool scan_is_empty(const struct scan *scan);
/* The name of the innermost member, cut to what is kept. */
struct bytes scan_name(const struct scan *scan);
