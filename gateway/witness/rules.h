/*
 * Where a message says what, a table for each form that a message can have.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "witness/dialect.h"
#include "witness/reading.h"

enum rule_action {
	RULE_NONE,
	/* of the message */
	RULE_EVENT, /* what kind of message or event it is */
	RULE_MODEL,
	RULE_RESPONSE_ID,
	RULE_STOP,
	RULE_USAGE, /* its members are numbers */
	RULE_STREAM,
	RULE_TOOL,
	RULE_ERROR, /* there is an error, unless it is null */
	/* of an item: a call, a result, or something else that is let go */
	RULE_ITEM,
	RULE_KIND,
	RULE_ID,
	RULE_NAME,
	RULE_BODY,      /* raw: arguments, or a result that is no text */
	RULE_ARGUMENTS, /* text: all of them */
	RULE_DELTA,     /* text: some of them */
	RULE_INDEX,
	RULE_CHOICE,
	RULE_CHOICE_ITEM,
	RULE_OUTPUT,
	RULE_OUTPUT_ERROR, /* the same; that it is there says that the call failed */
	RULE_FAILED,       /* a result's truth value */
};

enum { RULE_PATH_LIMIT = 7 };

struct rule {
	uint8_t action, size;
	uint8_t path[RULE_PATH_LIMIT];
};

struct rules {
	const struct rule *rows;
	size_t count;
};

/* The tables of a dialect: a request, an event of a stream or an object of an array of them, a whole answer. */
struct rules rules_request(enum dialect dialect);
struct rules rules_event(enum dialect dialect);
struct rules rules_answer(enum dialect dialect);
