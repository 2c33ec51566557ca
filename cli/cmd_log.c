#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "command.h"
#include "ledger/claim.h"
#include "ledger/host_log.h"
#include "ledger/verify.h"
#include "options.h"
#include "render.h"

static int print_head(const char *home)
{
	CLEANUP_BUF struct buf head = {.limit = NOTE_SIZE_LIMIT};
	struct err err = {.number = 0};
	struct host_log *log = host_log_open(home, &err);

	bool good = log && host_log_head(log, &head, &err);
	host_log_close(log);
	return good ? render_out(stdout, &head) : render_error(&err);
}

static bool read_head(const char *path, struct buf *out, struct err *err)
{
	int fd CLEANUP_FD = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	char *to = buf_reserve(out, NOTE_SIZE_LIMIT);
	ssize_t size = fd < 0 || !to ? -1 : fd_read_full(fd, to, NOTE_SIZE_LIMIT);

	if (size < 0)
		return err_set(err, errno, "head: %s", path);
	buf_commit(out, (size_t)size);
	return true;
}

struct listing {
	struct buf *out;
	size_t count;
};

static void list_run(void *context, const char *run)
{
	enum { SHOWN = 20 };
	struct listing *listing = context;

	if (listing->count++ < SHOWN) {
		buf_append_text(listing->out, "  never ended  ");
		text_for_terminal(listing->out, bytes_of(run));
		buf_append_char(listing->out, '\n');
	}
}

static void write_json(const struct log_verification *found, struct buf *out)
{
	struct json json;

	json_start(&json, out);
	json_begin_object(&json, NULL);
	json_text(&json, "class", record_class_name(claim_class(CLAIM_log, CLASS_external)));
	json_uint(&json, "entries", found->entries);
	if (found->head[0])
		json_text(&json, "head", found->head);
	json_uint(&json, "never_ended", found->never_ended);
	json_uint(&json, "runs", found->runs);
	json_text(&json, "schema", "assure.log-verify/1");
	json_text(&json, "verdict", verdict_name(found->verdict));
	json_bytes(&json, "why", found->why[0] ? bytes_of(found->why) : BYTES_NONE);
	json_end_object(&json);
	buf_append_char(out, '\n');
}

static int verify(const char *home, const char *since, bool as_json)
{
	CLEANUP_BUF struct buf head = {.limit = 2 * NOTE_SIZE_LIMIT}, out = {.limit = 1 << 16},
			       runs = {.limit = 1 << 16};
	struct listing listing = {.out = &runs};
	struct log_verification found;
	struct err err = {.number = 0};

	if (since && !read_head(since, &head, &err)) {
		(void)render_error(&err);
		return VERDICT_UNREADABLE;
	}
	verify_log(home, since ? buf_bytes(&head) : BYTES_NONE, list_run, &listing, &found);
	if (as_json) {
		write_json(&found, &out);
	} else if (found.verdict == VERDICT_INTACT) {
		buf_append_text(&out, "host log: intact");
		render_class(&out, stdout, claim_class(CLAIM_log, CLASS_external), NULL);
		buf_append_text(&out, ", ");
		render_counted(&out, found.entries, "entry", "entries");
		buf_append_text(&out, ", ");
		render_counted(&out, found.runs, "run", "runs");
		buf_append_format(&out, "; head %.8s%s%s\n", found.head, render_more(),
				  since ? ", and it begins with the head that was given" : "");
		buf_append_bytes(&out, buf_bytes(&runs));
		if (listing.count > 20)
			buf_append_format(&out, "  and %zu more\n", listing.count - 20);
	} else {
		buf_append_format(&out, "host log: %s",
				  found.verdict == VERDICT_TAMPERED ? "TAMPERED WITH" : "cannot be read");
		render_class(&out, stdout, claim_class(CLAIM_log, CLASS_external), NULL);
		buf_append_text(&out, ": ");
		text_for_terminal(&out, bytes_of(found.why));
		buf_append_char(&out, '\n');
	}
	int status = render_out(stdout, &out);
	return status == EXIT_OK ? (int)found.verdict : status;
}

static int run(int argc, char **argv)
{
	char home[PATH_MAX];
	bool json = false;
	const char *since = NULL;
	struct arguments rest = {.least = 1, .most = 1};
	struct err err = {.number = 0};
	int status;
	const struct option_row rows[] = {{.name = "json", .flag = &json}, {.name = "since", .text = &since}};

	if (!options_parse(&command_log, argc, argv, rows, 2, &rest, &status))
		return status;
	bool head = strcmp(rest.items[0], "head") == 0;
	if (!head && strcmp(rest.items[0], "verify") != 0)
		return options_mistake(&command_log, "head or verify is needed, not", rest.items[0]);
	if (head && (since || json))
		return options_mistake(&command_log, "head takes no options", rest.items[0]);
	if (!store_home(home, sizeof(home), false, &err))
		return render_error(&err);
	return head ? print_head(home) : verify(home, since, json);
}

const struct command command_log = {
    .name = "log",
    .usage = "log head | log verify [--since FILE] [--json]",
    .help = "The host log: which runs there were on this host.\n\n"
	    "  head            print its newest checkpoint. Keep it where this host cannot change\n"
	    "                  it (the output of a CI job, a commit): only then can it be shown\n"
	    "                  later that the log was not replaced as a whole\n"
	    "  verify          compute its tree anew, and list the runs that never ended\n"
	    "    --since FILE  the log must begin with this head (- is standard input)\n"
	    "    --json        one JSON object (assure.log-verify/1)\n\n"
	    "Exit status of verify: 0 intact, 1 tampered with, 3 unreadable.\n",
    .run = run,
};
