/*
 * What the screens about a whole run are made of: its first and last record, and counts.
 */
#pragma once

#include "document.h"
#include "ledger/store.h"

struct report {
	const struct run_summary *run;
	size_t short_id;              /* characters of the id that suffice */
	struct document *start, *end; /* owned; NULL when the run has none */
	uint64_t effects, processes, gaps, delegated;
	uint64_t by_kind[EFFECT_KIND_COUNT + 1]; /* the last: kinds of a newer assure */
	uint64_t by_how[HOW_COUNT + 1];
	uint64_t by_state[RESULT_REFUSED + 1];
	uint64_t gap_records[GAP_CODE_COUNT + 1], gap_amounts[GAP_CODE_COUNT + 1];
	enum record_class class
	    ; /* of the weakest record that was counted: what a claim about all of them is worth at most */
	const char *exposed;  /* how others could use the key; NULL: they could not. Of `start` */
	uint64_t duration_ns; /* of the run; until the last record when it has no end */
};

bool report_load(struct report *report, const char *home, struct run *run, struct err *err);
void report_free(struct report *report);
/* "running", "exit 0", "SIGKILL", "incomplete: …" */
void report_state_text(struct buf *out, const struct report *report);
/* "2 births_lost, 1 memory ×40" */
void report_gaps_text(struct buf *out, const struct report *report);
/* True when the record may name a delegate; never wrongly false. Cheaper than parsing. */
bool report_may_be_delegated(struct bytes json);
/* Open the state folder and the run; the error is printed. NULL and a printed error otherwise. */
struct run *report_open(char *home, size_t home_size, const char *which);
