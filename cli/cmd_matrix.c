#include <limits.h>
#include <string.h>

#include "assure_build.h"
#include "base/json.h"
#include "base/text.h"
#include "matrix.h"
#include "options.h"
#include "render.h"
#include "report.h"

/* The lens of a run that asks for none. */
enum { DEFAULT_LENS = LENS_reads };

/* Where people read, and where what is piped is likely to be read. */
enum { LEAST_COLUMNS = 60, USUAL_COLUMNS = 80, MOST_COLUMNS = 100 };

enum {
	INDENT = 2,
	LABEL_COLUMNS = 13,
	STATE_COLUMNS = 14,
	CLASS_COLUMNS = 11,
	EFFECTS_COLUMNS = 9,
	REFUSED_COLUMNS = 8,
	EVENT_COLUMN = STATE_COLUMNS + CLASS_COLUMNS + EFFECTS_COLUMNS + REFUSED_COLUMNS
};

static const struct {
	const char *id, *text;
	enum style style;
} states[MATRIX_STATE_COUNT] = {
    [MATRIX_CAPTURED] = {"captured", "captured", STYLE_GREEN},
    [MATRIX_PARTLY] = {"partly", "in part", STYLE_YELLOW},
    [MATRIX_NOT_CAPTURED] = {"not_captured", "not captured", STYLE_YELLOW},
    [MATRIX_NOT_IN_RELEASE] = {"not_in_this_release", "not in this release", STYLE_DIM},
};

/* By enum run_state. */
static const char *const run_states[] = {"running", "complete", "incomplete"};

static size_t columns_of_screen(void)
{
	size_t width = render_width(stdout);

	if (width == 0)
		return USUAL_COLUMNS;
	return width < LEAST_COLUMNS ? LEAST_COLUMNS : width > MOST_COLUMNS ? MOST_COLUMNS : width;
}

/* ---- the screen ---- */

/* Words of an escaped text, broken where a line is full; it begins at column `at`, and so do the lines that follow. */
static void append_wrapped(struct buf *out, struct bytes escaped, size_t at)
{
	size_t width = columns_of_screen(), column = at;

	for (size_t begin = 0, end; begin < escaped.size; begin = end + 1) {
		for (end = begin; end < escaped.size && escaped.data[end] != ' '; end++)
			;
		struct bytes word = {escaped.data + begin, end - begin};
		size_t size = text_width(word);
		if (column > at && column + 1 + size > width) {
			buf_append_char(out, '\n');
			render_padded(out, BYTES(""), at);
			column = at;
		} else if (column > at) {
			buf_append_char(out, ' ');
			column++;
		}
		buf_append_bytes(out, word);
		column += size;
	}
	buf_append_char(out, '\n');
}

/* A label and a text of any origin, indented by `at`. */
static void append_field(struct buf *out, size_t at, const char *label, struct bytes text, enum style style)
{
	CLEANUP_BUF struct buf escaped = {.limit = 1 << 20};

	render_padded(out, BYTES(""), at);
	buf_append_text(out, render_style(stdout, style));
	render_padded(out, bytes_of(label), LABEL_COLUMNS);
	buf_append_text(out, render_style(stdout, STYLE_PLAIN));
	text_for_terminal(&escaped, text);
	append_wrapped(out, buf_bytes(&escaped), at + LABEL_COLUMNS);
}

static void append_words(struct buf *out, const char *label, const char *text)
{
	append_field(out, INDENT, label, bytes_of(text), STYLE_DIM);
}

static void append_styled(struct buf *out, enum style style, const char *text)
{
	buf_append_text(out, render_style(stdout, style));
	buf_append_text(out, text);
	buf_append_text(out, render_style(stdout, STYLE_PLAIN));
}

/* What it is, how this build stands to it, and what it can be worth. */
static void append_title(struct buf *out, const struct matrix_row *row)
{
	enum matrix_state state = matrix_state_of(row);

	buf_append_text(out, render_style(stdout, STYLE_BOLD));
	append_wrapped(out, bytes_of(row->event), 0);
	buf_append_text(out, render_style(stdout, STYLE_PLAIN));
	render_padded(out, BYTES(""), INDENT);
	append_styled(out, states[state].style, states[state].text);
	if (row->class != CLASS_none)
		buf_append_format(out, "%s%s%s at most", render_dot(), row->status == STATUS_later ? "later " : "",
				  record_class_name((enum record_class)row->class));
	if (row->lens != LENS_none)
		buf_append_format(out, "%sfrom lens %s on%s", render_dot(), lens_name((enum lens)row->lens),
				  row->lens == DEFAULT_LENS ? ", the default" : "");
	buf_append_char(out, '\n');
}

static void append_build(struct buf *out)
{
	for (size_t i = 0; i < MATRIX_COUNT; i++) {
		const struct matrix_row *row = &matrix_rows[i];
		append_title(out, row);
		if (row->status == STATUS_later) {
			append_words(out, "what shows", row->captured_by);
			append_words(out, "proves not", row->proves_not);
			continue;
		}
		append_words(out, "captured by", row->captured_by);
		append_words(out, "boundary", row->boundary);
		append_words(out, "signed with", row->signed_with);
		append_words(out, "bypassed by", row->bypass);
		append_words(out, "proves", row->proves);
		append_words(out, "proves not", row->proves_not);
		buf_append_char(out, '\n');
	}
	buf_append_text(out, "\nassure matrix RUN says what a run had of it.\n");
}

/* ---- the screen of a run ---- */

static void append_gaps(struct buf *out, const struct matrix_had *had)
{
	CLEANUP_BUF struct buf text = {.limit = 1 << 12};

	for (unsigned i = 0; i <= GAP_CODE_COUNT; i++) {
		if (!had->gap_records[i])
			continue;
		buf_append_format(&text, "%s%s %s", text.size > 0 ? ", " : "", gap_code_name((enum gap_code)i),
				  render_times());
		render_count(&text, had->gap_amounts[i]);
	}
	if (had->gaps)
		append_field(out, STATE_COLUMNS, "not seen", buf_bytes(&text), STYLE_YELLOW);
}

static const char *label_of(enum matrix_effect effect)
{
	return effect == EFFECT_OF_absent ? "because" : effect == EFFECT_OF_partly ? "limit" : "note";
}

/* Limits of the row itself; those of all rows stand in front of them, once. */
static void append_limits(struct buf *out, const struct matrix *matrix, enum matrix_id id)
{
	CLEANUP_BUF struct buf text = {.limit = 1 << 10};

	if (matrix->rows[id].lens_missing) {
		buf_append_format(&text, "the run did not ask for it: --lens %s",
				  lens_name((enum lens)matrix_rows[id].lens));
		append_field(out, STATE_COLUMNS, "because", buf_bytes(&text), STYLE_YELLOW);
	}
	for (size_t i = 0; i < matrix_limit_count; i++)
		if (matrix_limits[i].row == id && matrix_limit_holds(matrix, &matrix_limits[i], id))
			append_field(out, STATE_COLUMNS, label_of(matrix_limits[i].effect),
				     bytes_of(matrix_limits[i].text), STYLE_YELLOW);
}

/* One line, which says whether, what it is worth at most, how many effects there were and how many were refused. */
static void append_row(struct buf *out, const struct matrix *matrix, enum matrix_id id)
{
	const struct matrix_row *row = &matrix_rows[id];
	const struct matrix_had *had = &matrix->rows[id];
	CLEANUP_BUF struct buf effects = {.limit = 64}, refused = {.limit = 64};
	const char *state = states[had->state].text;

	buf_append_text(out, render_style(stdout, states[had->state].style));
	render_padded(out, bytes_of(state), STATE_COLUMNS);
	buf_append_text(out, render_style(stdout, STYLE_PLAIN));
	if (had->state == MATRIX_NOT_IN_RELEASE) {
		render_padded(out, BYTES(""), EVENT_COLUMN - strlen(state));
		append_wrapped(out, bytes_of(row->event), EVENT_COLUMN);
		return;
	}
	if (had->has_kinds) {
		render_count(&effects, had->effects);
		render_count(&refused, had->refused);
	}
	render_padded(out, bytes_of(had->class == CLASS_none ? "" : record_class_name((enum record_class)had->class)),
		      CLASS_COLUMNS);
	render_padded(out, buf_bytes(&effects), EFFECTS_COLUMNS);
	render_padded(out, buf_bytes(&refused), REFUSED_COLUMNS);
	append_wrapped(out, bytes_of(row->event), EVENT_COLUMN);
	append_limits(out, matrix, id);
	append_gaps(out, had);
	/* A claim never without what goes around it. */
	if (had->state != MATRIX_NOT_CAPTURED)
		append_field(out, STATE_COLUMNS, "bypassed by", bytes_of(row->bypass), STYLE_DIM);
}

static void append_start(struct buf *out, const struct matrix *matrix, const char *label, const char *key,
			 struct arena *arena)
{
	struct bytes text = document_bytes(matrix->records[RECORD_run_start], key, arena);

	append_field(out, 0, label, text.data ? text : BYTES("not known"), STYLE_DIM);
}

static void append_state(struct buf *out, const struct matrix *matrix)
{
	CLEANUP_BUF struct buf text = {.limit = 1 << 12};

	append_field(out, 0, "run", bytes_of(matrix->run->id), STYLE_DIM);
	if (matrix->run->name[0])
		append_field(out, 0, "name", bytes_of(matrix->run->name), STYLE_DIM);
	buf_append_text(&text, run_states[matrix->run->state]);
	if (matrix->run->reason[0])
		buf_append_format(&text, ": %s", matrix->run->reason);
	append_field(out, 0, "state", buf_bytes(&text), STYLE_DIM);
}

/* What holds for each row that is captured. */
static void append_for_all(struct buf *out, const struct matrix *matrix)
{
	for (size_t i = 0; i < matrix_limit_count; i++)
		if (matrix_limits[i].row == MATRIX_any && matrix->facts[matrix_limits[i].fact])
			append_field(out, 0, "all rows", bytes_of(matrix_limits[i].text), STYLE_YELLOW);
	if (matrix->strangers)
		append_field(out, 0, "all rows", BYTES("there are effects of kinds that this build does not know"),
			     STYLE_YELLOW);
}

static void append_header(struct buf *out, const struct matrix *matrix, struct arena *arena)
{
	CLEANUP_BUF struct buf number = {.limit = 64}, class = {.limit = 64};

	append_state(out, matrix);
	append_start(out, matrix, "lens", "lens", arena);
	append_start(out, matrix, "results", "results", arena);
	append_start(out, matrix, "back end", "backend", arena);
	append_start(out, matrix, "births", "births", arena);
	append_field(out, 0, "io_uring", bytes_of(matrix->facts[FACT_io_uring_allowed] ? "allowed" : "refused"),
		     STYLE_DIM);
	buf_append_format(&number, "%lld", (long long)document_int(matrix->records[RECORD_run_start], "uid", -1));
	append_field(out, 0, "user id", buf_bytes(&number), STYLE_DIM);
	buf_append_format(&class, "%s at most", record_class_name(matrix->class));
	append_field(out, 0, "class", buf_bytes(&class), STYLE_DIM);
	append_start(out, matrix, "host key", "host_key", arena);
	if (matrix->facts[FACT_exposed])
		append_start(out, matrix, "key exposed", "key_exposed", arena);
	append_for_all(out, matrix);
}

static void append_run(struct buf *out, const struct matrix *matrix, struct arena *arena)
{
	append_header(out, matrix, arena);
	buf_append_char(out, '\n');
	buf_append_text(out, render_style(stdout, STYLE_BOLD));
	render_padded(out, BYTES("THIS RUN"), STATE_COLUMNS);
	render_padded(out, BYTES("AT MOST"), CLASS_COLUMNS);
	render_padded(out, BYTES("EFFECTS"), EFFECTS_COLUMNS);
	render_padded(out, BYTES("REFUSED"), REFUSED_COLUMNS);
	buf_append_format(out, "WHAT%s\n", render_style(stdout, STYLE_PLAIN));
	for (unsigned i = 0; i < MATRIX_COUNT; i++)
		append_row(out, matrix, (enum matrix_id)i);
	buf_append_text(out, "\nassure matrix says how each is captured, what it proves, and what it does not.\n"
			     "This is what the run says of itself: assure verify checks it.\n");
}

/* ---- JSON ---- */

static void json_gaps(struct json *json, const struct matrix_had *had)
{
	json_begin_array(json, "gaps");
	for (unsigned i = 0; i <= GAP_CODE_COUNT; i++) {
		if (!had->gap_records[i])
			continue;
		json_begin_object(json, NULL);
		json_text(json, "code", gap_code_name((enum gap_code)i));
		json_uint(json, "count", had->gap_amounts[i]);
		json_uint(json, "records", had->gap_records[i]);
		json_end_object(json);
	}
	json_end_array(json);
}

static void json_how(struct json *json, const struct matrix_had *had)
{
	static const enum effect_how order[] = {HOW_declared, HOW_observed, HOW_performed, HOW_verified};

	json_begin_object(json, "by_how");
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		json_uint(json, effect_how_name(order[i]), had->by_how[order[i]]);
	json_end_object(json);
}

static void json_limits(struct json *json, const struct matrix *matrix, enum matrix_id id)
{
	json_begin_array(json, "limits");
	if (matrix->rows[id].lens_missing) {
		json_begin_object(json, NULL);
		json_text(json, "fact", "lens");
		json_text(json, "text", "the run did not ask for it");
		json_end_object(json);
	}
	for (size_t i = 0; i < matrix_limit_count; i++) {
		if (!matrix_limit_holds(matrix, &matrix_limits[i], id))
			continue;
		json_begin_object(json, NULL);
		json_text(json, "fact", matrix_fact_name(matrix_limits[i].fact));
		json_text(json, "text", matrix_limits[i].text);
		json_end_object(json);
	}
	json_end_array(json);
}

/* `matrix` is NULL for the build. */
static void json_row(struct json *json, enum matrix_id id, const struct matrix *matrix)
{
	const struct matrix_row *row = &matrix_rows[id];
	const struct matrix_had *had = matrix && row->status == STATUS_here ? &matrix->rows[id] : NULL;
	int class = matrix ? matrix->rows[id].class : row->class;

	json_begin_object(json, NULL);
	json_text(json, "boundary", row->boundary);
	if (had && had->has_kinds)
		json_how(json, had);
	json_text(json, "bypass", row->bypass);
	json_text(json, "captured_by", row->captured_by);
	if (class != CLASS_none)
		json_text(json, "class", record_class_name((enum record_class) class));
	json_bool(json, "default", row->lens <= DEFAULT_LENS);
	if (had && had->has_kinds)
		json_uint(json, "effects", had->effects);
	json_text(json, "event", row->event);
	if (had)
		json_gaps(json, had);
	json_text(json, "id", row->id);
	if (had && had->class != CLASS_none && matrix->facts[FACT_exposed])
		json_bytes(json, "key_exposed",
			   bytes_of(document_text(matrix->records[RECORD_run_start], "key_exposed")));
	if (row->lens != LENS_none)
		json_text(json, "lens", lens_name((enum lens)row->lens));
	if (had)
		json_limits(json, matrix, id);
	json_text(json, "proves", row->proves);
	json_text(json, "proves_not", row->proves_not);
	if (had && had->has_kinds)
		json_uint(json, "refused", had->refused);
	json_text(json, "signed_with", row->signed_with);
	json_text(json, "state", states[matrix ? matrix->rows[id].state : matrix_state_of(row)].id);
	json_end_object(json);
}

static void json_run(struct json *json, const struct matrix *matrix, struct arena *arena)
{
	const struct document *start = matrix->records[RECORD_run_start];

	json_begin_object(json, "run");
	json_bytes(json, "backend", document_bytes(start, "backend", arena));
	json_bytes(json, "births", document_bytes(start, "births", arena));
	json_text(json, "class", record_class_name(matrix->class));
	json_bytes(json, "host_key", document_bytes(start, "host_key", arena));
	json_text(json, "id", matrix->run->id);
	json_bool(json, "io_uring_allowed", matrix->facts[FACT_io_uring_allowed]);
	json_bytes(json, "key_exposed", document_bytes(start, "key_exposed", arena));
	json_bytes(json, "lens", document_bytes(start, "lens", arena));
	if (matrix->run->name[0])
		json_bytes(json, "name", bytes_of(matrix->run->name));
	if (matrix->run->reason[0])
		json_bytes(json, "reason", bytes_of(matrix->run->reason));
	json_bytes(json, "results", document_bytes(start, "results", arena));
	json_text(json, "state", run_states[matrix->run->state]);
	json_int(json, "uid", document_int(start, "uid", -1));
	json_uint(json, "unknown_effects", matrix->strangers);
	json_end_object(json);
}

static void append_json(struct buf *out, const struct matrix *matrix, struct arena *arena)
{
	struct json json;

	json_start(&json, out);
	json_begin_object(&json, NULL);
	json_text(&json, "build", ASSURE_BUILD);
	json_begin_array(&json, "rows");
	for (unsigned i = 0; i < MATRIX_COUNT; i++)
		json_row(&json, (enum matrix_id)i, matrix);
	json_end_array(&json);
	if (matrix)
		json_run(&json, matrix, arena);
	json_text(&json, "schema", "assure.matrix/1");
	json_text(&json, "version", ASSURE_VERSION);
	json_end_object(&json);
	buf_append_char(out, '\n');
}

/* ---- the command ---- */

static int print_build(bool as_json)
{
	CLEANUP_BUF struct buf out = {.limit = 1 << 20};

	if (as_json)
		append_json(&out, NULL, NULL);
	else
		append_build(&out);
	return render_out(stdout, &out);
}

static int print_run(const char *which, bool as_json)
{
	char home[PATH_MAX];
	struct matrix matrix;
	struct arena arena;
	struct err err = {.number = 0};
	struct run *run = report_open(home, sizeof(home), which);
	int status = EXIT_FAILED;

	if (!run)
		return status;
	if (!arena_init(&arena, 1 << 20)) {
		err_set(&err, 0, "matrix: out of memory");
		status = render_error(&err);
	} else if (!matrix_load(&matrix, run, &err)) {
		status = render_error(&err);
	} else {
		CLEANUP_BUF struct buf out = {.limit = 1 << 22};
		if (as_json)
			append_json(&out, &matrix, &arena);
		else
			append_run(&out, &matrix, &arena);
		status = render_out(stdout, &out);
		matrix_free(&matrix);
	}
	arena_free(&arena);
	run_close(run);
	return status;
}

static int run(int argc, char **argv)
{
	struct arguments rest = {.most = 1};
	bool as_json = false;
	int status;
	const struct option_row rows[] = {{.name = "json", .flag = &as_json}};

	if (!options_parse(&command_matrix, argc, argv, rows, 1, &rest, &status))
		return status;
	return rest.count ? print_run(rest.items[0], as_json) : print_build(as_json);
}

const struct command command_matrix = {
    .name = "matrix",
    .usage = "matrix [RUN] [--json]",
    .help =
	"Say what is covered, what it proves, and what it does not.\n\n"
	"  --json   one document of schema assure.matrix/1\n\n"
	"Without RUN of this build; with RUN what that run had: captured, in part or not, why, what it is worth at\n"
	"most, what was refused and what was not seen.\n",
    .run = run,
};
