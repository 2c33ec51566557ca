/*
 * The coverage matrix (specs/coverage.def) as values, and what one run had of it.
 */
#pragma once

#include "command.h"
#include "document.h"
#include "ledger/store.h"
#include "os/table.h"

enum matrix_id {
#define COVERAGE(identifier, ...) MATRIX_##identifier,
#include "coverage.def"
	MATRIX_COUNT,
	MATRIX_any = MATRIX_COUNT
};

enum matrix_fact {
#define COVERAGE_FACT(identifier, ...) FACT_##identifier,
#include "coverage.def"
	FACT_COUNT
};

enum matrix_status { STATUS_here, STATUS_never, STATUS_later };
enum matrix_effect { EFFECT_OF_absent, EFFECT_OF_partly, EFFECT_OF_says };

/* A class besides those of classes.def: there is no record that could have one. */
enum { CLASS_none = -1, LENS_none = LENS_COUNT };

struct matrix_row {
	const char *id;
	enum matrix_status status;
	int class; /* enum record_class, or CLASS_none */
	int lens;  /* enum lens, or LENS_none */
	const char *event, *captured_by, *boundary, *signed_with, *bypass, *proves, *proves_not;
};

extern const struct matrix_row matrix_rows[MATRIX_COUNT];

struct matrix_limit {
	enum matrix_id row; /* or MATRIX_any */
	enum matrix_fact fact;
	enum matrix_effect effect;
	const char *text;
};

extern const struct matrix_limit matrix_limits[];
extern const size_t matrix_limit_count;

enum matrix_state { MATRIX_CAPTURED, MATRIX_PARTLY, MATRIX_NOT_CAPTURED, MATRIX_NOT_IN_RELEASE, MATRIX_STATE_COUNT };

/* What a run had of a row. */
struct matrix_had {
	enum matrix_state state;
	bool lens_missing; /* the run did not ask for it */
	int class;         /* at most */
	bool has_kinds;    /* effects can be of this row */
	uint64_t effects, refused, by_how[HOW_COUNT + 1];
	uint64_t gaps, gap_records[GAP_CODE_COUNT + 1],
	    gap_amounts[GAP_CODE_COUNT + 1]; /* the last: of a newer assure */
};

struct matrix {
	const struct run_summary *run;
	struct document *records[RECORD_TYPE_COUNT]; /* owned: the run's own, one a type; NULL when there is none */
	bool facts[FACT_COUNT];
	enum lens lens;
	enum record_class class;
	uint64_t strangers; /* effects of a kind that this build does not know */
	struct matrix_had rows[MATRIX_COUNT];
};

/* How a row stands in this build, whatever the run. */
enum matrix_state matrix_state_of(const struct matrix_row *row);
const char *matrix_fact_name(enum matrix_fact fact);
bool matrix_load(struct matrix *matrix, struct run *run, struct err *err);
void matrix_free(struct matrix *matrix);
/* Whether the limit holds for this row of the run. */
bool matrix_limit_holds(const struct matrix *matrix, const struct matrix_limit *limit, enum matrix_id id);
