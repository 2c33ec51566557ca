/*
 * Server-sent events (HTML standard, section 9.2.6) read as they arrive, cut anywhere, without holding a line: only the data
 * is handed on, in pieces. Event names, ids, comments and retry times are passed over; what an event is stands in its data.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum { SSE_FIELD_SIZE = 8 };

struct sse_handler {
	/* A piece of an event's data: lines joined by a line feed. A view that holds during the call alone. */
	void (*data)(void *context, struct bytes piece);
	/* The event whose data came before is whole. */
	void (*dispatch)(void *context);
};

struct sse {
	const struct sse_handler *handler; /* borrowed */
	void *context;
	uint8_t state;
	bool carriage_return; /* the byte before was one: a line feed belongs to it */
	bool data;            /* the event has data */
	uint8_t field_size;
	char field[SSE_FIELD_SIZE];
};

void sse_begin(struct sse *sse, const struct sse_handler *handler, void *context);
void sse_feed(struct sse *sse, struct bytes bytes);
/* True when the stream may end here: the data of every event was handed over. What began and has no empty line is no event. */
bool sse_is_between(const struct sse *sse);
