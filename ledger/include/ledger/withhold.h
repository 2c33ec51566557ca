/*
 * Secrets taken out of what is about to be encoded, so that no bytes of them are ever on the ring or the disk. Views that
 * change point into `arena` afterwards; where it is full the whole value becomes "[withheld]". What was withheld is noted
 * in the value and said by its record.
 */
#pragma once

#include "base/redact.h"
#include "ledger/record.h"

void withhold_effect(const struct redactor *redactor, struct arena *arena, struct effect *effect);
void withhold_run_start(const struct redactor *redactor, struct arena *arena, struct record_run_start *start);
void withhold_process(const struct redactor *redactor, struct arena *arena, struct record_process *process);
/* `items`: those of `reads`, which are changed. */
void withhold_reads(const struct redactor *redactor, struct arena *arena, struct record_reads *reads,
		    struct record_reads_item *items);
