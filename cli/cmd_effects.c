#include <limits.h>

#include "base/clock.h"
#include "base/text.h"
#include "command.h"
#include "document.h"
#include "effect_text.h"
#include "glob.h"
#include "ledger/claim.h"
#include "options.h"
#include "render.h"
#include "report.h"

struct listing {
	const char *kind, *path;
	struct run_filter filter;
	bool as_json;
	struct arena arena;
	struct buf out;
	struct err err;
};

/* "file.write", "file", "file.", "file.*" */
static bool kind_matches(const char *wanted, const char *kind)
{
	size_t size = strlen(wanted);
	if (size > 0 && wanted[size - 1] == '*')
		size--;
	if (size > 0 && wanted[size - 1] == '.')
		size--;
	if (strncmp(wanted, kind, size) != 0)
		return false;
	return kind[size] == '\0' ? strlen(wanted) == size : kind[size] == '.';
}

static bool any_kind_matches(const char *wanted)
{
	for (unsigned i = 0; i < EFFECT_KIND_COUNT; i++)
		if (kind_matches(wanted, effect_kind_name((enum effect_kind)i)))
			return true;
	return false;
}

static bool path_matches(struct listing *listing, const struct document *effect)
{
	const struct document *to = document_get(effect, "to");
	const char *glob = listing->path;
	return glob_match(glob, document_bytes(effect, "path", &listing->arena)) ||
	       glob_match(glob, document_bytes(effect, "host_path", &listing->arena)) ||
	       glob_match(glob, document_bytes(to, "path", &listing->arena)) ||
	       glob_match(glob, document_bytes(to, "host_path", &listing->arena));
}

static void print_line(struct listing *listing, const struct document *effect, enum record_class class)
{
	struct buf *out = &listing->out;
	CLEANUP_BUF struct buf cell = {.limit = 1 << 20};
	CLEANUP_BUF struct buf label = {.limit = 1 << 10};
	const char *name = document_text(effect, "kind");
	render_clock(out, clock_parse(document_text(effect, "time")));
	buf_append_text(out, "  ");
	text_for_terminal(&label,
			  bytes_of(strcmp(effect_label(effect), "unknown") == 0 && name ? name : effect_label(effect)));
	render_padded(out, buf_bytes(&label), 12);
	effect_result_text(&cell, effect);
	const char *state = document_text(document_get(effect, "result"), "state");
	bool bad = state && (strcmp(state, "failed") == 0 || strcmp(state, "refused") == 0);
	buf_append_format(out, "  %s", bad ? render_style(stdout, STYLE_YELLOW) : "");
	render_padded(out, buf_bytes(&cell), 8);
	buf_append_format(out, "%s  %s", bad ? render_style(stdout, STYLE_PLAIN) : "", render_style(stdout, STYLE_DIM));
	render_padded(out, bytes_of(record_class_name(class)), 10);
	buf_append_format(out, "%s  ", render_style(stdout, STYLE_PLAIN));
	effect_object_text(out, effect, &listing->arena);
	buf_append_format(out, "  %s", render_style(stdout, STYLE_DIM));
	effect_process_text(out, effect, &listing->arena);
	buf_append_format(out, "%s\n", render_style(stdout, STYLE_PLAIN));
}

static bool show_effect(void *context, uint64_t seq, const struct record_head *head, struct bytes json)
{
	struct listing *listing = context;
	(void)seq;
	/* A kind that only a newer assure knows has no name here: its own is in the record. */
	if (listing->kind && head->kind < EFFECT_KIND_COUNT &&
	    !kind_matches(listing->kind, effect_kind_name((enum effect_kind)head->kind)))
		return true;
	struct document *effect = NULL;
	bool needs_parse = !listing->as_json || listing->path || (listing->kind && head->kind >= EFFECT_KIND_COUNT);
	buf_reset(&listing->out);
	arena_reset(&listing->arena);
	if (needs_parse && !(effect = document_parse(json, &listing->err)))
		return false;
	const char *name = document_text(effect, "kind");
	bool wanted = (!listing->path || path_matches(listing, effect)) &&
		      (!listing->kind || head->kind < EFFECT_KIND_COUNT || (name && kind_matches(listing->kind, name)));
	if (wanted && listing->as_json) {
		buf_append_bytes(&listing->out, json);
		buf_append_char(&listing->out, '\n');
	} else if (wanted) {
		print_line(listing, effect, claim_effect_class(claim_class_recorded(json), head->how));
	}
	document_free(effect);
	render_out(stdout, &listing->out);
	return !ferror(stdout);
}

static int list_effects(struct listing *listing, const char *which)
{
	char home[PATH_MAX];
	struct run *run = report_open(home, sizeof(home), which);
	int status = EXIT_OK;
	if (!run)
		return EXIT_FAILED;
	if (!arena_init(&listing->arena, 1 << 20))
		err_set(&listing->err, 0, "effects: out of memory");
	if (err_is_set(&listing->err) || !run_visit(run, &listing->filter, show_effect, listing, &listing->err) ||
	    err_is_set(&listing->err))
		status = render_error(&listing->err);
	run_close(run);
	arena_free(&listing->arena);
	buf_free(&listing->out);
	return status;
}

static int run(int argc, char **argv)
{
	struct listing listing = {.filter = {.by_type = true, .type = RECORD_effect}};
	struct arguments rest = {.least = 1, .most = 1};
	uint64_t pid = 0;
	int status;
	const struct option_row rows[] = {
	    {.name = "kind", .text = &listing.kind},
	    {.name = "path", .text = &listing.path},
	    {.name = "pid", .number = &pid, .given = &listing.filter.by_pid},
	    {.name = "failed", .flag = &listing.filter.failed_only},
	    {.name = "json", .flag = &listing.as_json},
	};
	if (!options_parse(&command_effects, argc, argv, rows, 5, &rest, &status))
		return status;
	if (listing.kind && !any_kind_matches(listing.kind))
		return options_mistake(&command_effects, "no such kind", listing.kind);
	if (pid > INT32_MAX)
		return options_mistake(&command_effects, "no process id", "pid");
	listing.filter.pid = (int32_t)pid;
	return list_effects(&listing, rest.items[0]);
}

const struct command command_effects = {
    .name = "effects",
    .usage = "effects RUN [--kind K] [--path GLOB] [--pid N] [--failed] [--json]",
    .help = "Print the effects of a run, one a line, in the order in which they were recorded.\n\n"
	    "  --kind K      only this kind (file.write) or family (file, file.*)\n"
	    "  --path GLOB   only effects whose path, second path or path on the host matches:\n"
	    "                * and ? do not cross a slash, ** does, [a-z] and [!a-z] are sets;\n"
	    "                a pattern without a slash is for the last part of the path\n"
	    "  --pid N       only effects of processes with this id\n"
	    "  --failed      only what failed or was refused\n"
	    "  --json        the records as stored, one JSON object a line (assure.effect/1)\n\n"
	    "A line: time, kind, result (ok, the error, ? when it was not seen), class, object, process.\n",
    .run = run,
};
