#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "command.h"
#include "options.h"
#include "os/probe.h"
#include "render.h"

static const char *births(const struct probe_result results[PROBE_COUNT])
{
	return results[PROBE_connector].state == PROBE_OK ? "connector" : "marks";
}

static void append_json(struct buf *out, const struct probe_result results[PROBE_COUNT])
{
	struct json json;

	json_start(&json, out);
	json_begin_object(&json, NULL);
	json_text(&json, "births", births(results));
	json_bool(&json, "ok", probe_run_works(results));
	json_begin_array(&json, "probes");
	for (size_t i = 0; i < PROBE_COUNT; i++) {
		const struct probe_row *row = &probe_rows[i];
		json_begin_object(&json, NULL);
		json_bytes(&json, "detail", bytes_of(results[i].detail));
		json_text(&json, "follows", row->follows);
		json_text(&json, "id", row->id);
		json_text(&json, "name", row->name);
		json_text(&json, "purpose", row->purpose);
		json_bool(&json, "required", row->weight == PROBE_WEIGHT_required);
		json_text(&json, "state", probe_state_name(results[i].state));
		json_text(&json, "todo", row->todo);
		json_end_object(&json);
	}
	json_end_array(&json);
	json_text(&json, "schema", "assure.doctor/1");
	json_end_object(&json);
	buf_append_char(out, '\n');
}

/* A state of the host is a note; so is what could not be tried but is not needed. */
static const char *word_of(const struct probe_row *row, enum probe_state state, enum style *style)
{
	bool note =
	    row->weight == PROBE_WEIGHT_note || (state == PROBE_UNKNOWN && row->weight == PROBE_WEIGHT_optional);

	*style = note ? STYLE_DIM : state == PROBE_OK ? STYLE_GREEN : STYLE_YELLOW;
	if (note)
		return "note";
	if (state != PROBE_OK && row->weight == PROBE_WEIGHT_required)
		*style = STYLE_RED;
	return state == PROBE_OK ? "ok" : probe_state_name(state);
}

static void append_indented(struct buf *out, size_t columns, const char *label, const char *text)
{
	render_padded(out, BYTES(""), columns);
	buf_append_text(out, label);
	text_for_terminal(out, bytes_of(text));
	buf_append_char(out, '\n');
}

static void append_probe(struct buf *out, const struct probe_row *row, const struct probe_result *result,
			 size_t columns)
{
	enum { STATE_COLUMNS = 9 };
	enum style style;
	const char *word = word_of(row, result->state, &style);

	buf_append_text(out, render_style(stdout, style));
	render_padded(out, bytes_of(word), STATE_COLUMNS);
	buf_append_text(out, render_style(stdout, STYLE_PLAIN));
	render_padded(out, bytes_of(row->name), columns);
	text_for_terminal(out, bytes_of(result->detail));
	buf_append_char(out, '\n');
	if (result->state != PROBE_MISSING)
		return;
	append_indented(out, STATE_COLUMNS + columns, "follows: ", row->follows);
	append_indented(out, STATE_COLUMNS + columns, "to do:   ", row->todo);
}

static void append_conclusion(struct buf *out, const struct probe_result results[PROBE_COUNT])
{
	bool works = probe_run_works(results);
	const char *separator = ": ";
	bool any_missing = false;

	buf_append_text(out, render_style(stdout, STYLE_BOLD));
	buf_append_text(out, works ? "trace will work here" : "trace will not work here");
	buf_append_text(out, render_style(stdout, STYLE_PLAIN));
	for (size_t i = 0; i < PROBE_COUNT; i++)
		any_missing |= probe_rows[i].weight == PROBE_WEIGHT_required && results[i].state == PROBE_MISSING;
	/* What could not be tried is most often a consequence of what is missing. */
	enum probe_state reason = any_missing ? PROBE_MISSING : PROBE_UNKNOWN;
	for (size_t i = 0; !works && i < PROBE_COUNT; i++) {
		if (probe_rows[i].weight != PROBE_WEIGHT_required || results[i].state != reason)
			continue;
		buf_append_text(out, separator);
		buf_append_text(out, probe_rows[i].name);
		separator = ", ";
	}
	if (works && strcmp(births(results), "connector") == 0)
		buf_append_text(out, "; births: connector (lineage is exact)");
	else if (works)
		buf_append_text(out, "; births: marks (some parents are inferred)");
	buf_append_char(out, '\n');
}

static void append_screen(struct buf *out, const struct probe_result results[PROBE_COUNT])
{
	size_t columns = 0;

	for (size_t i = 0; i < PROBE_COUNT; i++)
		if (strlen(probe_rows[i].name) + 2 > columns)
			columns = strlen(probe_rows[i].name) + 2;
	for (size_t i = 0; i < PROBE_COUNT; i++)
		append_probe(out, &probe_rows[i], &results[i], columns);
	append_conclusion(out, results);
}

static int run(int argc, char **argv)
{
	struct probe_result results[PROBE_COUNT];
	struct arguments rest = {.most = 0};
	bool as_json = false;
	int status;
	const struct option_row rows[] = {{.name = "json", .flag = &as_json}};

	if (!options_parse(&command_doctor, argc, argv, rows, 1, &rest, &status))
		return status;
	probe_run_all(results);
	CLEANUP_BUF struct buf out = {.limit = 1 << 16};
	if (as_json)
		append_json(&out, results);
	else
		append_screen(&out, results);
	status = render_out(stdout, &out);
	return status == EXIT_OK && !probe_run_works(results) ? EXIT_FAILED : status;
}

const struct command command_doctor = {
    .name = "doctor",
    .usage = "doctor [--json]",
    .help = "Say what this host gives, and what follows.\n\n"
	    "  --json   one JSON object\n\n"
	    "Each thing that a run needs is done once, in a child. Exit status 0 when `assure trace` will work here, 1 "
	    "when\n"
	    "it will not.\n",
    .run = run,
};
