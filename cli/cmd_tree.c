#include <inttypes.h>
#include <limits.h>

#include "base/json.h"
#include "base/text.h"
#include "command.h"
#include "options.h"
#include "render.h"
#include "report.h"
#include "tree.h"

enum { SHOWN_DEPTH = 24 }; /* deeper processes stand under this indentation: the agent chooses the depth */

struct screen {
	const struct tree *tree;
	struct buf out;
	size_t width;
	bool more[SHOWN_DEPTH]; /* a sibling follows at this depth */
};

static void indent(struct screen *screen, struct buf *line, size_t depth, bool branch)
{
	bool lines = render_utf8();
	size_t shown = depth < SHOWN_DEPTH ? depth : SHOWN_DEPTH - 1;
	for (size_t i = 1; i <= shown; i++) {
		bool last = branch && i == shown;
		if (last)
			buf_append_text(line, screen->more[i] ? (lines ? "\u251c\u2500 " : "|- ")
							      : (lines ? "\u2514\u2500 " : "`- "));
		else
			buf_append_text(line, screen->more[i] ? (lines ? "\u2502  " : "|  ") : "   ");
	}
	if (branch && depth >= SHOWN_DEPTH)
		buf_append_format(line, "(%zu) ", depth);
}

static const struct tree_exec *last_exec(const struct tree_process *process)
{
	for (size_t i = process->exec_count; i > 0; i--)
		if (process->execs[i - 1].ok)
			return &process->execs[i - 1];
	return NULL;
}

static void append_facts(struct buf *out, const struct tree_process *process)
{
	if (process->status.data) {
		buf_append_text(out, render_dot());
		buf_append_bytes(out, process->status);
	}
	buf_append_text(out, render_dot());
	render_counted(out, process->effects, "effect", "effects");
	if (process->failed)
		buf_append_format(out, " (%" PRIu64 " failed)", process->failed);
	if (process->lineage[0] && strcmp(process->lineage, "birth") != 0 && strcmp(process->lineage, "root") != 0)
		buf_append_format(out, "%sby %s", render_dot(), process->lineage);
	render_class(out, stdout, process->class, NULL);
}

/* The command gives way when the line is too long, never the facts behind it. */
static void append_cut(struct screen *screen, struct buf *line, struct bytes text, size_t reserved)
{
	size_t used = text_width(buf_bytes(line)) + reserved;
	size_t room = screen->width == 0 ? 0 : screen->width > used + 8 ? screen->width - used : 8;
	render_cut(line, text, room);
}

static void print_exec(struct screen *screen, size_t depth, const struct tree_process *process,
		       const struct tree_exec *exec)
{
	CLEANUP_BUF struct buf line = {.limit = 1 << 20};
	CLEANUP_BUF struct buf image = {.limit = 1 << 16};
	indent(screen, &line, depth, false);
	buf_append_text(&line,
			depth < SHOWN_DEPTH - 1 && process->first_child ? (render_utf8() ? "\u2502  " : "|  ") : "   ");
	buf_append_text(&line, "exec ");
	/* Of the class of the process above it, which is the least of all that is told of it. */
	if (exec->image.data) {
		text_for_terminal(&image, exec->image);
		append_cut(screen, &line, buf_bytes(&image), 16);
		buf_append_text(&line, ": ");
	}
	append_cut(screen, &line, exec->command, strlen(exec->result) + 3);
	if (!exec->ok)
		buf_append_format(&line, "%s%s", render_dot(), exec->result);
	buf_append_bytes(&screen->out, buf_bytes(&line));
	buf_append_char(&screen->out, '\n');
}

static void print_process(struct screen *screen, size_t depth, const struct tree_process *process)
{
	CLEANUP_BUF struct buf line = {.limit = 1 << 20};
	CLEANUP_BUF struct buf command = {.limit = 1 << 20};
	CLEANUP_BUF struct buf facts = {.limit = 1 << 16};
	const struct tree_exec *exec = last_exec(process);
	indent(screen, &line, depth, true);
	buf_append_format(&line, "%" PRId64 " ", process->pid);
	if (exec) {
		buf_append_bytes(&command, exec->command);
	} else {
		text_for_terminal(&command, process->exe);
		buf_append_text(&command, command.size ? " (forked)" : "(forked)");
	}
	append_facts(&facts, process);
	append_cut(screen, &line, buf_bytes(&command), text_width(buf_bytes(&facts)));
	buf_append_bytes(&screen->out, buf_bytes(&line));
	buf_append_format(&screen->out, "%s", render_style(stdout, STYLE_DIM));
	buf_append_bytes(&screen->out, buf_bytes(&facts));
	buf_append_format(&screen->out, "%s\n", render_style(stdout, STYLE_PLAIN));
	/* One exec is the line above; of several, or one that failed, each is told. */
	if (process->exec_count > 1 || (process->exec_count == 1 && !exec))
		for (size_t i = 0; i < process->exec_count; i++)
			print_exec(screen, depth, process, &process->execs[i]);
}

/* Depth first without recursion: how deep it goes is the agent's choice. */
static void print_from(struct screen *screen, size_t root)
{
	const struct tree *tree = screen->tree;
	size_t depth = 0, at = root;
	CLEANUP_BUF struct buf stack = {.limit = 0};
	for (;;) {
		const struct tree_process *process = &tree->items[at];
		if (depth > 0 && depth < SHOWN_DEPTH)
			screen->more[depth] = process->next != 0;
		print_process(screen, depth, process);
		size_t next = process->first_child;
		if (next) {
			buf_append(&stack, &at, sizeof(at));
			depth++;
		} else {
			while (depth > 0 && !(next = tree->items[at].next)) {
				depth--;
				stack.size -= sizeof(at);
				memcpy(&at, stack.data + stack.size, sizeof(at));
			}
			if (depth == 0)
				return;
		}
		at = next - 1;
	}
}

static void print_tree(struct screen *screen)
{
	for (size_t i = 0; i < screen->tree->count; i++)
		if (!screen->tree->items[i].has_parent)
			print_from(screen, i);
}

static void json_execs(struct json *json, const struct tree_process *process)
{
	json_begin_array(json, "execs");
	for (size_t i = 0; i < process->exec_count; i++) {
		const struct tree_exec *exec = &process->execs[i];
		json_begin_object(json, NULL);
		json_bytes(json, "command", exec->command);
		json_bytes(json, "image", exec->image);
		json_text(json, "result", exec->result);
		json_uint(json, "seq", exec->seq);
		json_end_object(json);
	}
	json_end_array(json);
}

/* A flat list, in the order in which they became known: nesting would be as deep as the agent likes. */
static void print_json(struct buf *out, const struct tree *tree, const char *id)
{
	struct json json;
	json_start(&json, out);
	json_begin_object(&json, NULL);
	json_text(&json, "id", id);
	json_begin_array(&json, "processes");
	for (size_t i = 0; i < tree->count; i++) {
		const struct tree_process *process = &tree->items[i];
		json_begin_object(&json, NULL);
		json_text(&json, "class", record_class_name(process->class));
		json_uint(&json, "effects", process->effects);
		json_bytes(&json, "exe", process->exe);
		json_execs(&json, process);
		json_uint(&json, "failed", process->failed);
		json_uint(&json, "id", process->id);
		if (process->lineage[0])
			json_text(&json, "lineage", process->lineage);
		if (process->parent)
			json_uint(&json, "parent", process->parent);
		json_int(&json, "pid", process->pid);
		json_bytes(&json, "status", process->status);
		json_end_object(&json);
	}
	json_end_array(&json);
	json_text(&json, "schema", "assure.tree/1");
	json_end_object(&json);
	buf_append_char(out, '\n');
}

static int show(const char *which, bool as_json)
{
	char home[PATH_MAX];
	struct err err = {.number = 0};
	struct tree tree;
	struct run *run = report_open(home, sizeof(home), which);
	if (!run)
		return EXIT_FAILED;
	if (!tree_load(&tree, run, &err)) {
		run_close(run);
		return render_error(&err);
	}
	struct screen screen = {.tree = &tree, .width = render_width(stdout)};
	if (as_json)
		print_json(&screen.out, &tree, run_get_summary(run)->id);
	else
		print_tree(&screen);
	int status = render_out(stdout, &screen.out);
	buf_free(&screen.out);
	tree_free(&tree);
	run_close(run);
	return status;
}

static int run(int argc, char **argv)
{
	bool as_json = false;
	int status;
	const struct option_row rows[] = {{.name = "json", .flag = &as_json}};
	struct arguments rest = {.least = 1, .most = 1};
	if (!options_parse(&command_tree, argc, argv, rows, 1, &rest, &status))
		return status;
	return show(rest.items[0], as_json);
}

const struct command command_tree = {
    .name = "tree",
    .usage = "tree RUN [--json]",
    .help = "Print the processes of a run as a tree: command, end, number of effects.\n\n"
	    "  --json   one document of schema assure.tree/1\n\n"
	    "\"by parent\", \"by session\", \"by group\", \"by inferred\" say how a process is known to belong\n"
	    "to the tree when the kernel did not report its birth.\n",
    .run = run,
};
