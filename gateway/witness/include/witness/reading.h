/*
 * What one side of an exchange says, read from a copy of its bytes as they pass: the calls that a model asks for, the results that
 * an agent sends back, and who is speaking. Pure: no clock, no descriptors. Nothing here can change what is passed on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "attribute/call.h"
#include "base/bytes.h"
#include "base/err.h"
#include "witness/dialect.h"

enum {
	READING_TEXT_SIZE = 256,
	READING_CALL_LIMIT = 256,     /* calls of one message */
	READING_KEPT_LIMIT = 1 << 20, /* bytes of one call's arguments or output; all of them are hashed */
	READING_HELD_LIMIT = 1 << 20, /* of a fragment that comes before it says whose it is */
	READING_TOOL_LIMIT = 128,
	READING_USAGE_LIMIT = 24,
	READING_USAGE_NAME_SIZE = 40,
};

/* A short foreign text. One that did not fit is `cut`, and never taken for an id or a name. */
struct reading_text {
	bool present, cut;
	uint16_t size;
	char data[READING_TEXT_SIZE];
};
struct bytes reading_text_bytes(const struct reading_text *text);

struct reading_facts {
	struct reading_text model;       /* asked for, or that answered */
	struct reading_text response_id; /* of an answer */
	struct reading_text stop;        /* why it ended, in the provider's word */
	bool stream;                     /* a request that asks for a stream */
	bool complete;                   /* the message is whole: what a dialect ends with was seen */
	bool failed;                     /* it says that it failed */
	bool malformed;                  /* something in it is not what the dialect says */
	bool lost;                       /* calls that were not read, because of a limit or memory */
	unsigned calls;                  /* calls or results that were told */
	unsigned tool_count;             /* of a request; names beyond the limit are left out */
	struct reading_text *tools;      /* owned by the reading */
	unsigned usage_count;
	struct reading_usage {
		char name[READING_USAGE_NAME_SIZE]; /* NUL-terminated; has "token" in it */
		uint64_t value;
	} usage[READING_USAGE_LIMIT];
};

/* Memory that the readings of one witness may keep in all. */
struct reading_budget {
	size_t used, limit;
};

enum reading_side { READING_REQUEST, READING_RESPONSE };

/*
 * Told of each call (begin: id, tool, arguments) of an answer and each result (end: id, failed, exit, output) of a request, in the
 * order in which they become whole. Views that hold during the call alone; `ordinal` counts the results of a request from 0.
 */
typedef void reading_told(void *context, struct call_sighting *sighting, unsigned ordinal);

struct reading;

/* The caller frees it. `budget` is borrowed. NULL when there is no memory. */
struct reading *reading_new(enum dialect dialect, enum reading_side side, struct reading_budget *budget,
			    reading_told *told, void *context);
void reading_free(struct reading *reading);
/* The next bytes, of the body without its encodings. */
void reading_feed(struct reading *reading, struct bytes bytes);
/* The body ends; `whole` is false when it was cut. The facts stand afterwards. */
void reading_finish(struct reading *reading, bool whole);
/* Something outside the reading keeps it from being read on (an encoding). */
void reading_spoil(struct reading *reading);
const struct reading_facts *reading_facts(const struct reading *reading);

/* The exit code that a tool's output names, in the forms that are known of agents' shells. */
bool reading_exit_code(struct bytes output, int *code);
