/*
 * Bytes that arrive in pieces: all of them hashed and counted, a bounded part kept.
 */
#pragma once

#include "attribute/call.h"
#include "base/digest.h"
#include "witness/reading.h"

struct gathered {
	bool begun, failed;
	uint64_t size;
	struct hasher *hasher; /* owned, made at the first piece */
	struct buf kept;
	size_t charged; /* to the budget */
};

void gathered_add(struct gathered *gathered, struct reading_budget *budget, struct bytes piece);
/* Forget what was gathered, keeping its memory. */
void gathered_reset(struct gathered *gathered, struct reading_budget *budget);
void gathered_free(struct gathered *gathered, struct reading_budget *budget);
/* What was gathered (nothing, if nothing was), and no more pieces. False when it could not be hashed. */
bool gathered_end(struct gathered *gathered, struct call_bytes *out);
