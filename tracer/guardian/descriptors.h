/*
 * Private to this room: the descriptors that the command inherits.
 */
#pragma once

#include <stdbool.h>

#include "ledger/record.h"

enum { DESCRIPTORS_LIMIT = 256 };

/* Those of this process that survive an exec, described; text lives in `arena`. Returns how many, at most `limit`. */
size_t descriptors_inherited(struct arena *arena, struct record_descriptor *out, size_t limit);

/* Descriptors that were closed before us must not become ours by accident: a log line would land in the run's file. */
void descriptors_hold_standard(bool closed[3]);
