#include <limits.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "command.h"
#include "document.h"
#include "effect_text.h"
#include "ledger/claim.h"
#include "ledger/store.h"
#include "options.h"
#include "render.h"

struct listing {
	const char *home;
	struct buf out;
	struct json json;
	struct arena arena;
	bool as_json;
	size_t width;
};

static bool keep_record(void *context, uint64_t seq, const struct record_head *head, struct bytes json)
{
	struct document **document = context;
	(void)seq;
	(void)head;
	*document = document_parse(json, NULL);
	return false;
}

/* The record with which the run began, for its command; NULL when it cannot be had. */
static struct document *load_start(const char *home, const char *id)
{
	const struct run_filter filter = {.by_type = true, .type = RECORD_run_start};
	struct document *start = NULL;
	struct run *run = run_open(home, id, NULL);
	if (run)
		run_visit(run, &filter, keep_record, &start, NULL);
	run_close(run);
	return start;
}

static const char *state_name(enum run_state state)
{
	return state == RUN_RUNNING ? "running" : state == RUN_COMPLETE ? "complete" : "incomplete";
}

/* What its end and its number of effects are worth: of a run without a beginning nothing is certain. */
static const char *class_name(const struct document *start)
{
	return record_class_name(claim_class(CLAIM_count, claim_class_named(document_text(start, "class"))));
}

static void write_json(struct listing *listing, const struct run_summary *run, const struct document *start)
{
	struct json *json = &listing->json;
	const struct document *argv = document_get(start, "argv");
	char time[31];
	json_begin_object(json, NULL);
	json_begin_array(json, "argv");
	for (size_t i = 0; i < document_size(argv); i++)
		json_element(json, document_element(document_at(argv, i), &listing->arena));
	json_end_array(json);
	json_text(json, "class", class_name(start));
	json_uint(json, "effects", run->effects);
	if (run->ended_ns) {
		clock_rfc3339(run->ended_ns, time);
		json_text(json, "ended", time);
	}
	json_text(json, "id", run->id);
	if (run->name[0])
		json_bytes(json, "name", bytes_of(run->name));
	if (run->reason[0])
		json_bytes(json, "reason", bytes_of(run->reason));
	json_uint(json, "records", run->records);
	json_uint(json, "size", run->size);
	clock_rfc3339(run->started_ns, time);
	json_text(json, "started", time);
	json_text(json, "state", state_name(run->state));
	json_end_object(json);
}

static void write_line(struct listing *listing, const struct run_summary *run, const struct document *start)
{
	CLEANUP_BUF struct buf line = {.limit = 1 << 20};
	CLEANUP_BUF struct buf cell = {.limit = 1 << 20};
	size_t id_size = run_short_id(listing->home, run->id);
	render_padded(&line, (struct bytes){run->id, id_size}, 6);
	render_time(&cell, run->started_ns);
	buf_append_text(&line, "  ");
	render_padded(&line, buf_bytes(&cell), 19);
	buf_reset(&cell);
	int64_t took;
	if (!__builtin_sub_overflow(run->ended_ns, run->started_ns, &took) && took > 0)
		render_duration(&cell, (uint64_t)took);
	else
		buf_append_char(&cell, '-');
	buf_append_text(&line, "  ");
	render_padded(&line, buf_bytes(&cell), 7);
	buf_append_text(&line, "  ");
	render_padded(&line, bytes_of(state_name(run->state)), 10);
	buf_reset(&cell);
	render_count(&cell, run->effects);
	buf_append_text(&line, "  ");
	render_padded(&line, buf_bytes(&cell), 9);
	buf_append_text(&line, "  ");
	render_padded(&line, bytes_of(class_name(start)), 10);
	buf_append_text(&line, "  ");
	if (run->name[0]) {
		buf_append_char(&line, '[');
		text_for_terminal(&line, bytes_of(run->name));
		buf_append_text(&line, "] ");
	}
	if (start)
		effect_argv_text(&line, document_get(start, "argv"), &listing->arena);
	else
		text_for_terminal(&line, bytes_of(run->reason));
	render_cut(&listing->out, buf_bytes(&line), listing->width);
	buf_append_char(&listing->out, '\n');
}

static bool list_run(void *context, const struct run_summary *run)
{
	struct listing *listing = context;
	struct document *start = load_start(listing->home, run->id);
	arena_reset(&listing->arena);
	if (listing->as_json)
		write_json(listing, run, start);
	else
		write_line(listing, run, start);
	document_free(start);
	return true;
}

static void begin(struct listing *listing)
{
	if (listing->as_json) {
		json_start(&listing->json, &listing->out);
		json_begin_object(&listing->json, NULL);
		json_begin_array(&listing->json, "runs");
	} else {
		buf_append_format(
		    &listing->out,
		    "%sRUN     STARTED              TOOK     STATE       EFFECTS    CLASS       COMMAND%s\n",
		    render_style(stdout, STYLE_BOLD), render_style(stdout, STYLE_PLAIN));
	}
}

static void end(struct listing *listing)
{
	if (!listing->as_json)
		return;
	json_end_array(&listing->json);
	json_text(&listing->json, "schema", "assure.runs/1");
	json_end_object(&listing->json);
	buf_append_char(&listing->out, '\n');
}

static int run(int argc, char **argv)
{
	char home[PATH_MAX];
	struct listing listing = {.home = home, .width = render_width(stdout)};
	struct arguments rest = {.most = 0};
	struct err err = {.number = 0};
	int status = EXIT_OK;
	const struct option_row rows[] = {{.name = "json", .flag = &listing.as_json}};
	if (!options_parse(&command_runs, argc, argv, rows, 1, &rest, &status))
		return status;
	if (!arena_init(&listing.arena, 1 << 20))
		return EXIT_FAILED;
	begin(&listing);
	if (store_home(home, sizeof(home), false, &err) && run_list(home, list_run, &listing, &err)) {
		end(&listing);
		status = render_out(stdout, &listing.out);
	} else {
		status = render_error(&err);
	}
	buf_free(&listing.out);
	arena_free(&listing.arena);
	return status;
}

const struct command command_runs = {
    .name = "runs",
    .usage = "runs [--json]",
    .help = "List the runs on this host, the newest first.\n\n"
	    "  --json   one document of schema assure.runs/1\n",
    .run = run,
};
