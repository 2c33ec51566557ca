#include "matrix.h"

#include <string.h>

#include "ledger/claim.h"

const struct matrix_row matrix_rows[MATRIX_COUNT] = {
#define COVERAGE(identifier, status_, class_, lens_, event_, by_, boundary_, signed_, bypass_, proves_, not_) \
	[MATRIX_##identifier] = {.id = #identifier,                                                           \
				 .status = STATUS_##status_,                                                  \
				 .class = CLASS_##class_,                                                     \
				 .lens = LENS_##lens_,                                                        \
				 .event = (event_),                                                           \
				 .captured_by = (by_),                                                        \
				 .boundary = (boundary_),                                                     \
				 .signed_with = (signed_),                                                    \
				 .bypass = (bypass_),                                                         \
				 .proves = (proves_),                                                         \
				 .proves_not = (not_)},
#include "coverage.def"
};

const struct matrix_limit matrix_limits[] = {
#define COVERAGE_LIMIT(row, fact, effect, text) {MATRIX_##row, FACT_##fact, EFFECT_OF_##effect, (text)},
#include "coverage.def"
};

const size_t matrix_limit_count = sizeof(matrix_limits) / sizeof(matrix_limits[0]);

enum test { TEST_is, TEST_is_not, TEST_is_there };

static const struct {
	const char *name;
	enum record_type record;
	const char *field;
	enum test test;
	const char *value;
} facts[FACT_COUNT] = {
#define COVERAGE_FACT(identifier, record, field, test, value) \
	[FACT_##identifier] = {#identifier, RECORD_##record, (field), TEST_##test, (value)},
#include "coverage.def"
};

/* A kind that stands twice is a warning, and so an error; that none is missing is checked below. */
static const enum matrix_id row_of_kind[EFFECT_KIND_COUNT] = {
#define COVERAGE_KIND(row, kind) [EFFECT_##kind] = MATRIX_##row,
#include "coverage.def"
};

enum {
	KINDS_LISTED = 0
#define COVERAGE_KIND(row, kind) +1
#include "coverage.def"
};

_Static_assert((int)KINDS_LISTED == (int)EFFECT_KIND_COUNT, "each kind of effects.def stands once in coverage.def");

static const struct {
	enum gap_code code;
	enum matrix_id row;
} gap_rows[] = {
#define COVERAGE_GAP(code, row) {GAP_##code, MATRIX_##row},
#include "coverage.def"
};

static const struct {
	enum special special;
	enum matrix_id row;
} special_rows[] = {
#define COVERAGE_SPECIAL(special, row) {SPECIAL_##special, MATRIX_##row},
#include "coverage.def"
};

/* Which effects a call can have by the value of an argument. */
static const struct {
	const char *call;
	enum effect_kind kind;
} variants[] = {
#define VARIANT(syscall, argument, mask, value, effect, handling) {#syscall, EFFECT_##effect},
#include "variants.def"
#undef VARIANT
};

enum {
	GAP_ROWS = sizeof(gap_rows) / sizeof(gap_rows[0]),
	SPECIAL_ROWS = sizeof(special_rows) / sizeof(special_rows[0]),
	VARIANTS = sizeof(variants) / sizeof(variants[0])
};

const char *matrix_fact_name(enum matrix_fact fact)
{
	return facts[fact].name;
}

enum matrix_state matrix_state_of(const struct matrix_row *row)
{
	static const enum matrix_state states[] = {
	    [STATUS_here] = MATRIX_CAPTURED,
	    [STATUS_never] = MATRIX_NOT_CAPTURED,
	    [STATUS_later] = MATRIX_NOT_IN_RELEASE,
	};
	return states[row->status];
}

/* ---- reading the run ---- */

/* Rows of all that a call can do; false when nothing is known of it. */
static bool rows_of_call(const char *call, bool rows[MATRIX_COUNT])
{
	bool any = false;

	for (size_t i = 0; call && i < syscall_row_count; i++) {
		if (strcmp(syscall_rows[i].name, call) != 0)
			continue;
		any = true;
		rows[row_of_kind[syscall_rows[i].effect]] = true;
		for (size_t j = 0; j < SPECIAL_ROWS; j++)
			if (special_rows[j].special == syscall_rows[i].special)
				rows[special_rows[j].row] = true;
	}
	for (size_t i = 0; any && i < VARIANTS; i++)
		if (strcmp(variants[i].call, call) == 0)
			rows[row_of_kind[variants[i].kind]] = true;
	return any;
}

/* Rows that a gap is about. A code that the table does not know could be about any. */
static void rows_of_gap(enum gap_code code, const char *call, bool rows[MATRIX_COUNT])
{
	bool any = true;

	for (size_t i = 0; i < GAP_ROWS; i++) {
		if (gap_rows[i].code != code || gap_rows[i].row == MATRIX_any)
			continue;
		rows[gap_rows[i].row] = true;
		any = false;
	}
	if (any && !rows_of_call(call, rows))
		for (size_t i = 0; i < MATRIX_COUNT; i++)
			rows[i] = matrix_rows[i].status == STATUS_here;
}

static void add_gap(struct matrix *matrix, const struct document *gap)
{
	const char *name = document_text(gap, "code");
	bool rows[MATRIX_COUNT] = {false};
	unsigned code = 0;
	uint64_t amount = 0;

	while (code < GAP_CODE_COUNT && (!name || strcmp(gap_code_name((enum gap_code)code), name) != 0))
		code++;
	/* One that cannot be counted is one at least. */
	if (!document_uint(gap, "count", &amount) || amount == 0)
		amount = 1;
	rows_of_gap((enum gap_code)code, document_text(gap, "syscall"), rows);
	for (size_t i = 0; i < MATRIX_COUNT; i++) {
		struct matrix_had *had = &matrix->rows[i];
		if (!rows[i])
			continue;
		had->gaps++;
		had->gap_records[code]++;
		had->gap_amounts[code] += amount;
	}
}

/* A refused call that has no name is one that the table does not know. */
static bool is_foreign(const struct record_head *head, struct bytes json)
{
	if (head->kind != EFFECT_kernel_other || head->state != RESULT_REFUSED)
		return false;
	struct document *effect = document_parse(json, NULL);
	bool foreign = effect && !document_get(effect, "syscall");
	document_free(effect);
	return foreign;
}

static void add_effect(struct matrix *matrix, const struct record_head *head, struct bytes json)
{
	if (head->kind >= EFFECT_KIND_COUNT) {
		matrix->strangers++;
		return;
	}
	enum matrix_id id = is_foreign(head, json) ? MATRIX_foreign_calls : row_of_kind[head->kind];
	struct matrix_had *had = &matrix->rows[id];
	had->effects++;
	had->refused += head->state == RESULT_REFUSED;
	had->by_how[head->how < HOW_COUNT ? head->how : HOW_COUNT]++;
}

struct loading {
	struct matrix *matrix;
	struct err *err;
};

static bool load_record(void *context, uint64_t seq, const struct record_head *head, struct bytes json)
{
	struct loading *loading = context;
	struct matrix *matrix = loading->matrix;
	enum record_type type = (enum record_type)head->type;
	(void)seq;

	if (type == RECORD_effect) {
		add_effect(matrix, head, json);
		return true;
	}
	if (type != RECORD_run_start && type != RECORD_gap && type != RECORD_closing && type != RECORD_recovery)
		return true;
	struct document *document = document_parse(json, loading->err);
	if (!document)
		return false;
	if (type == RECORD_gap) {
		add_gap(matrix, document);
	} else if (!matrix->records[type]) {
		matrix->records[type] = document;
		return true;
	}
	document_free(document);
	return true;
}

/* ---- what follows ---- */

static bool holds(const struct matrix *matrix, enum matrix_fact fact)
{
	const struct document *value = document_get(matrix->records[facts[fact].record], facts[fact].field);
	const char *text = document_text(matrix->records[facts[fact].record], facts[fact].field);
	CLEANUP_BUF struct buf other = {.limit = 1 << 10};

	if (facts[fact].test == TEST_is_there)
		return value != NULL;
	if (text)
		buf_append_text(&other, text);
	else
		document_dump(value, &other);
	bool same = value && bytes_equal(buf_bytes(&other), bytes_of(facts[fact].value));
	return same == (facts[fact].test == TEST_is);
}

bool matrix_limit_holds(const struct matrix *matrix, const struct matrix_limit *limit, enum matrix_id id)
{
	return matrix->facts[limit->fact] && !matrix->rows[id].lens_missing && matrix_rows[id].status == STATUS_here &&
	       (limit->row == id || limit->row == MATRIX_any);
}

static void conclude_row(struct matrix *matrix, enum matrix_id id)
{
	const struct matrix_row *row = &matrix_rows[id];
	struct matrix_had *had = &matrix->rows[id];

	had->state = matrix_state_of(row);
	had->class = CLASS_none;
	if (row->status != STATUS_here)
		return;
	had->lens_missing = (int)matrix->lens < row->lens;
	had->state = had->lens_missing ? MATRIX_NOT_CAPTURED : had->gaps ? MATRIX_PARTLY : MATRIX_CAPTURED;
	for (size_t i = 0; i < matrix_limit_count; i++) {
		const struct matrix_limit *limit = &matrix_limits[i];
		if (!matrix_limit_holds(matrix, limit, id) || limit->effect == EFFECT_OF_says)
			continue;
		enum matrix_state state = limit->effect == EFFECT_OF_absent ? MATRIX_NOT_CAPTURED : MATRIX_PARTLY;
		had->state = state > had->state ? state : had->state;
	}
	/* A claim is worth no more than the weakest that it rests on. */
	if (had->state != MATRIX_NOT_CAPTURED)
		had->class = row->class < (int)matrix->class ? row->class : (int)matrix->class;
}

static void conclude(struct matrix *matrix)
{
	const struct document *start = matrix->records[RECORD_run_start];
	const char *lens = document_text(start, "lens");

	matrix->class = claim_class_named(document_text(start, "class"));
	if (!lens || !lens_find(lens, &matrix->lens))
		matrix->lens = LENS_changes;
	for (unsigned i = 0; i < FACT_COUNT; i++)
		matrix->facts[i] = holds(matrix, (enum matrix_fact)i);
	for (size_t i = 0; i < EFFECT_KIND_COUNT; i++)
		matrix->rows[row_of_kind[i]].has_kinds = true;
	matrix->rows[MATRIX_foreign_calls].has_kinds = true;
	for (unsigned i = 0; i < MATRIX_COUNT; i++)
		conclude_row(matrix, (enum matrix_id)i);
}

bool matrix_load(struct matrix *matrix, struct run *run, struct err *err)
{
	struct loading loading = {.matrix = matrix, .err = err};

	*matrix = (struct matrix){.run = run_get_summary(run)};
	bool good = run_visit(run, NULL, load_record, &loading, err) && !err_is_set(err);
	if (good && !matrix->records[RECORD_run_start]) {
		err_set(err, 0, "matrix: %s: the run has no first record, which says what it had", matrix->run->id);
		good = false;
	}
	if (good)
		conclude(matrix);
	else
		matrix_free(matrix);
	return good;
}

void matrix_free(struct matrix *matrix)
{
	for (size_t i = 0; i < RECORD_TYPE_COUNT; i++) {
		document_free(matrix->records[i]);
		matrix->records[i] = NULL;
	}
}
