#include <inttypes.h>
#include <limits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "command.h"
#include "effect_text.h"
#include "ledger/claim.h"
#include "options.h"
#include "render.h"
#include "report.h"

static void row(struct buf *out, const char *title)
{
	buf_append_format(out, "%s%-11s%s", render_style(stdout, STYLE_DIM), title, render_style(stdout, STYLE_PLAIN));
}

static void text_row(struct buf *out, const char *title, struct bytes text)
{
	if (!text.data || !text.size)
		return;
	row(out, title);
	text_for_terminal(out, text);
	buf_append_char(out, '\n');
}

static void end_claim(struct buf *out, enum claim claim, const struct report *report, const char *exposed)
{
	render_class(out, stdout, claim_class(claim, report->class), exposed);
	buf_append_char(out, '\n');
}

static void show_header(struct buf *out, const struct report *report, struct arena *arena)
{
	const struct run_summary *run = report->run;
	const struct document *start = report->start;
	row(out, "run");
	buf_append_format(out, "%s%.*s%s  (%s)\n", render_style(stdout, STYLE_BOLD), (int)report->short_id, run->id,
			  render_style(stdout, STYLE_PLAIN), run->id);
	text_row(out, "name", bytes_of(run->name));
	row(out, "command");
	effect_argv_text(out, document_get(start, "argv"), arena);
	buf_append_char(out, '\n');
	text_row(out, "in", document_bytes(start, "cwd", arena));
	row(out, "when");
	render_time(out, run->started_ns);
	buf_append_text(out, render_dot());
	render_duration(out, report->duration_ns);
	buf_append_char(out, '\n');
	row(out, "ended");
	report_state_text(out, report);
	end_claim(out, CLAIM_end, report, NULL);
	text_row(out, "host", document_bytes(start, "host", arena));
	text_row(out, "kernel", document_bytes(start, "kernel", arena));
	text_row(out, "lens", document_bytes(start, "lens", arena));
	text_row(out, "results", document_bytes(start, "results", arena));
	text_row(out, "back end", document_bytes(start, "backend", arena));
	text_row(out, "births", document_bytes(start, "births", arena));
	row(out, "seal");
	if (run->root[0])
		buf_append_format(out, "root %s", run->root);
	else
		buf_append_text(out, run->sealed ? "it cannot be read" : "none");
	end_claim(out, CLAIM_seal, report, report->exposed);
}

static void show_amount(struct buf *out, uint64_t count, const char *name)
{
	CLEANUP_BUF struct buf cell = {.limit = 64};
	if (!count)
		return;
	render_count(&cell, count);
	buf_append_text(out, "  ");
	for (size_t width = text_width(buf_bytes(&cell)); width < 10; width++)
		buf_append_char(out, ' ');
	buf_append_bytes(out, buf_bytes(&cell));
	buf_append_format(out, "  %s\n", name);
}

static void show_counts(struct buf *out, const struct report *report)
{
	buf_append_char(out, '\n');
	render_counted(out, report->effects, "effect", "effects");
	buf_append_text(out, render_dot());
	render_counted(out, report->processes, "process", "processes");
	end_claim(out, CLAIM_count, report, NULL);
	buf_append_text(out, "by kind");
	end_claim(out, CLAIM_count, report, NULL);
	for (unsigned i = 0; i <= EFFECT_KIND_COUNT; i++)
		show_amount(out, report->by_kind[i], effect_kind_name((enum effect_kind)i));
	buf_append_text(out, "by how they are known");
	end_claim(out, CLAIM_count, report, NULL);
	for (unsigned i = 0; i <= HOW_COUNT; i++)
		show_amount(out, report->by_how[i], effect_how_name((enum effect_how)i));
	buf_append_text(out, "by result");
	end_claim(out, CLAIM_count, report, NULL);
	for (unsigned i = 0; i <= RESULT_REFUSED; i++)
		show_amount(out, report->by_state[i], result_state_name((enum result_state)i));
	if (report->delegated) {
		buf_append_text(out, "asked of others, the request only");
		end_claim(out, CLAIM_count, report, NULL);
		show_amount(out, report->delegated, "delegated");
	}
	if (report->gaps) {
		buf_append_format(out, "%snot seen%s: ", render_style(stdout, STYLE_YELLOW),
				  render_style(stdout, STYLE_PLAIN));
		report_gaps_text(out, report);
		end_claim(out, CLAIM_gap, report, NULL);
	}
}

/* The last line says how to see more. */
static void show_more(struct buf *out, const struct report *report)
{
	int size = (int)report->short_id;
	const char *id = report->run->id;
	buf_append_format(out, "\nassure tree %.*s%sassure effects %.*s", size, id, render_dot(), size, id);
	if (report->by_state[RESULT_FAILED] + report->by_state[RESULT_REFUSED])
		buf_append_text(out, " [--failed]");
	buf_append_char(out, '\n');
}

static void json_counts(struct json *json, const struct report *report)
{
	json_begin_object(json, "by_how");
	for (unsigned i = 0; i < HOW_COUNT; i++) {
		static const enum effect_how order[] = {HOW_declared, HOW_observed, HOW_performed, HOW_verified};
		json_uint(json, effect_how_name(order[i]), report->by_how[order[i]]);
	}
	json_end_object(json);
	/* A list: the table's order is not that of names. */
	json_begin_array(json, "by_kind");
	for (unsigned i = 0; i <= EFFECT_KIND_COUNT; i++) {
		if (!report->by_kind[i])
			continue;
		json_begin_object(json, NULL);
		json_uint(json, "count", report->by_kind[i]);
		json_text(json, "kind", effect_kind_name((enum effect_kind)i));
		json_end_object(json);
	}
	json_end_array(json);
	json_begin_object(json, "by_result");
	json_uint(json, "failed", report->by_state[RESULT_FAILED]);
	json_uint(json, "ok", report->by_state[RESULT_OK]);
	json_uint(json, "refused", report->by_state[RESULT_REFUSED]);
	json_uint(json, "unknown", report->by_state[RESULT_UNKNOWN]);
	json_end_object(json);
}

static void json_gaps(struct json *json, const struct report *report)
{
	json_begin_array(json, "gaps");
	for (unsigned i = 0; i <= GAP_CODE_COUNT; i++) {
		if (!report->gap_records[i])
			continue;
		json_begin_object(json, NULL);
		json_text(json, "code", gap_code_name((enum gap_code)i));
		json_uint(json, "count", report->gap_amounts[i]);
		json_uint(json, "records", report->gap_records[i]);
		json_end_object(json);
	}
	json_end_array(json);
}

static void json_status(struct json *json, const struct document *status)
{
	if (!status)
		return;
	json_begin_object(json, "status");
	if (document_int(status, "code", -1) >= 0)
		json_int(json, "code", document_int(status, "code", -1));
	if (document_text(status, "signal")) {
		json_bool(json, "core", document_bool(status, "core", false));
		json_bytes(json, "signal", bytes_of(document_text(status, "signal")));
	}
	json_end_object(json);
}

static void json_field(struct json *json, const struct report *report, const char *key, struct arena *arena)
{
	json_bytes(json, key, document_bytes(report->start, key, arena));
}

static void show_json(struct buf *out, const struct report *report, struct arena *arena)
{
	static const char *const states[] = {"running", "complete", "incomplete"};
	const struct run_summary *run = report->run;
	const struct document *argv = document_get(report->start, "argv");
	struct json json;
	char time[31];
	json_start(&json, out);
	json_begin_object(&json, NULL);
	json_begin_array(&json, "argv");
	for (size_t i = 0; i < document_size(argv); i++)
		json_element(&json, document_element(document_at(argv, i), arena));
	json_end_array(&json);
	json_field(&json, report, "backend", arena);
	json_field(&json, report, "births", arena);
	json_counts(&json, report);
	json_text(&json, "class", record_class_name(report->class));
	json_field(&json, report, "cwd", arena);
	json_uint(&json, "delegated", report->delegated);
	json_uint(&json, "duration_ns", report->duration_ns);
	json_uint(&json, "effects", report->effects);
	if (run->ended_ns) {
		clock_rfc3339(run->ended_ns, time);
		json_text(&json, "ended", time);
	}
	json_gaps(&json, report);
	json_field(&json, report, "host", arena);
	json_text(&json, "id", run->id);
	json_field(&json, report, "kernel", arena);
	json_field(&json, report, "key_exposed", arena);
	json_field(&json, report, "lens", arena);
	if (run->name[0])
		json_bytes(&json, "name", bytes_of(run->name));
	json_uint(&json, "processes", report->processes);
	if (run->reason[0])
		json_bytes(&json, "reason", bytes_of(run->reason));
	json_field(&json, report, "results", arena);
	json_text(&json, "schema", "assure.show/1");
	if (run->root[0]) {
		json_begin_object(&json, "seal");
		json_text(&json, "class", record_class_name(claim_class(CLAIM_seal, report->class)));
		json_text(&json, "root", run->root);
		json_end_object(&json);
	}
	clock_rfc3339(run->started_ns, time);
	json_text(&json, "started", time);
	json_text(&json, "state", states[run->state]);
	json_status(&json, document_get(report->end, "status"));
	json_end_object(&json);
	buf_append_char(out, '\n');
}

static int show(const char *which, bool as_json)
{
	char home[PATH_MAX];
	struct err err = {.number = 0};
	struct report report;
	struct arena arena = {.used = 0};
	CLEANUP_BUF struct buf out = {.limit = 0};
	struct run *run = report_open(home, sizeof(home), which);
	if (!run)
		return EXIT_FAILED;
	if (!arena_init(&arena, 1 << 20) || !report_load(&report, home, run, &err)) {
		run_close(run);
		arena_free(&arena);
		return render_error(&err);
	}
	if (as_json) {
		show_json(&out, &report, &arena);
	} else {
		show_header(&out, &report, &arena);
		show_counts(&out, &report);
		show_more(&out, &report);
	}
	report_free(&report);
	run_close(run);
	arena_free(&arena);
	return render_out(stdout, &out);
}

/* As it is: for a file or a pipe. A terminal shows what may be shown. */
static int show_blob(const char *which, const char *digest)
{
	char home[PATH_MAX];
	struct err err = {.number = 0};
	CLEANUP_BUF struct buf blob = {.limit = RECORD_BLOB_LIMIT}, text = {.limit = 0};
	struct run *run = report_open(home, sizeof(home), which);
	if (!run)
		return EXIT_FAILED;
	bool found = run_blob(run, digest, &blob, &err);
	run_close(run);
	if (!found)
		return render_error(&err);
	if (!isatty(STDOUT_FILENO))
		return render_out(stdout, &blob);
	text_for_terminal(&text, buf_bytes(&blob));
	buf_append_char(&text, '\n');
	return render_out(stdout, &text);
}

static int run(int argc, char **argv)
{
	bool as_json = false;
	const char *digest = NULL;
	int status;
	const struct option_row rows[] = {{.name = "json", .flag = &as_json}, {.name = "blob", .text = &digest}};
	struct arguments rest = {.least = 1, .most = 1};
	if (!options_parse(&command_show, argc, argv, rows, 2, &rest, &status))
		return status;
	return digest ? show_blob(rest.items[0], digest) : show(rest.items[0], as_json);
}

const struct command command_show = {
    .name = "show",
    .usage = "show RUN [--json] [--blob DIGEST]",
    .help = "Say what is known of a run: command, end, host, counts, and what was not seen.\n\n"
	    "  --json          one document of schema assure.show/1\n"
	    "  --blob DIGEST   what was too long for a record, by the digest that the record has of it\n\n"
	    "RUN is 4 or more of the first characters of a run's id, its name, or \"last\".\n",
    .run = run,
};
