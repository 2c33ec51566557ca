/*
 * The screens over records that nobody of ours wrote: whatever a run's file holds, what comes out is text that a
 * terminal shows and does not obey, or a JSON document; and so are the errors.
 *
 * Input: which screen (1 byte), how many rows (1), the rows (see put_row()), then what meta says.
 */
#include <jansson.h>
#include <locale.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "command.h"
#include "fuzz.h"
#include "ledger/store.h"
#include "render.h"
#include "render_run.h"

#define RUN "0123456789ABCDEFGHJKMNPQRS"

static int folder = -1;
static const char home[] = PRIVATE_PLACE "/home";
static int errors = -1; /* what stands for standard error */
static FILE *error_stream;
static sqlite3 *db;
static sqlite3_stmt *insert, *insert_meta;

/* What came to standard output. */
struct written {
	char *text;
	size_t size;
};

static void prepare(void)
{
	static const char schema[] = "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA user_version=1;"
				     "CREATE TABLE meta(key, value); CREATE TABLE records(seq INTEGER PRIMARY KEY,"
				     " type, kind, how, state, process, pid, json);";
	char path[160];

	folder = private_place();
	need(mkdirat(folder, "home", 0700) == 0 && mkdirat(folder, "home/runs", 0700) == 0 &&
	     mkdirat(folder, "home/runs/" RUN, 0700) == 0);
	errors = memfd_create("errors", MFD_CLOEXEC);
	error_stream = errors < 0 ? NULL : fdopen(errors, "w");
	need(error_stream != NULL);
	need(setenv("ASSURE_HOME", home, 1) == 0);
	snprintf(path, sizeof(path), "%s/runs/" RUN "/run.sqlite", home);
	need(sqlite3_open(path, &db) == SQLITE_OK && sqlite3_exec(db, schema, NULL, NULL, NULL) == SQLITE_OK);
	need(sqlite3_prepare_v2(db, "INSERT INTO records VALUES(?,?,?,?,?,?,?,?)", -1, &insert, NULL) == SQLITE_OK);
	need(sqlite3_prepare_v2(db, "INSERT INTO meta VALUES(?,?)", -1, &insert_meta, NULL) == SQLITE_OK);
}
PREPARE_BY(prepare)

/* --- JSON that has the keys of records and values of any kind --- */

static const char *const keys[] = {
    "address",   "args",    "argv",   "argv_total", "as_given", "code",      "core",   "count", "cwd",     "cwd_b64",
    "delegated", "errno",   "exe",    "exe_b64",    "family",   "host_path", "image",  "kind",  "lineage", "local",
    "mode",      "mono_ns", "parent", "path",       "path_b64", "peer",      "pid",    "port",  "process", "protocol",
    "result",    "sig",     "signal", "state",      "status",   "syscall",   "target", "text",  "time",    "to",
};
enum { KEY_COUNT = sizeof(keys) / sizeof(keys[0]), DEPTH = 4 };

static void append_string(struct buf *out, struct bytes text)
{
	json_t *string = text_is_utf8(text) ? json_stringn(text.data ? text.data : "", text.size) : NULL;
	char *dumped = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;

	buf_append_text(out, dumped ? dumped : "\"\\u001b[2J\"");
	free(dumped);
	json_decref(string);
}

static void append_value(struct buf *out, struct input *input, unsigned depth);

/* Keys in order, so that none comes twice. */
static void append_object(struct buf *out, struct input *input, unsigned depth)
{
	bool first = true;

	buf_append_char(out, '{');
	for (size_t at = 0; input->size > 0; at++) {
		size_t step = take_number(input, 1) & 15;
		if (step == 15 || (at += step) >= KEY_COUNT)
			break;
		buf_append_format(out, "%s\"%s\":", first ? "" : ",", keys[at]);
		append_value(out, input, depth + 1);
		first = false;
	}
	buf_append_char(out, '}');
}

static void append_value(struct buf *out, struct input *input, unsigned depth)
{
	static const char *const words[] = {
	    "proc.exec", "proc.exit", "file.mode", "file.write", "ok",    "failed",
	    "refused",   "unknown",   "ENOENT",    "L3RtcC//",   "inet6", "2026-11-30T17:45:13.5Z",
	};
	unsigned form = (unsigned)take_number(input, 1);

	switch (form % 8) {
	case 0:
	case 1:
		if (depth < DEPTH) {
			append_object(out, input, depth);
			return;
		}
		break;
	case 2:
		buf_append_char(out, '[');
		for (unsigned i = 0; i < (form >> 4 & 3); i++) {
			buf_append_text(out, i ? "," : "");
			append_value(out, input, depth < DEPTH ? depth + 1 : DEPTH);
		}
		buf_append_char(out, ']');
		return;
	case 3:
		buf_append_format(out, "%lld", (long long)take_number(input, 1 + (form >> 4 & 7)));
		return;
	case 4:
		buf_append_text(out, form & 16 ? "true" : "false");
		return;
	case 5:
		append_string(out, bytes_of(words[take_number(input, 1) % (sizeof(words) / sizeof(words[0]))]));
		return;
	default:
		break;
	}
	append_string(out, take_short(input));
}

/* --- rows --- */

static void bind_text(sqlite3_stmt *row, int column, struct bytes text)
{
	sqlite3_bind_text(row, column, text.data ? text.data : "", (int)text.size, SQLITE_TRANSIENT);
}

static void bind_any(sqlite3_stmt *row, int column, struct input *input)
{
	switch (take_number(input, 1) % 4) {
	case 0:
		sqlite3_bind_null(row, column);
		break;
	case 1:
		sqlite3_bind_int64(row, column, (sqlite3_int64)take_number(input, 1));
		break;
	case 2:
		sqlite3_bind_int64(row, column, (sqlite3_int64)take_number(input, 8));
		break;
	default:
		bind_text(row, column, take_short(input));
	}
}

/* A word of the vocabulary, mostly. */
static void bind_word(sqlite3_stmt *row, int column, struct input *input, const char *(*name)(unsigned))
{
	unsigned choice = (unsigned)take_number(input, 1);

	if (choice < 200)
		bind_text(row, column, bytes_of(name(choice)));
	else
		bind_any(row, column, input);
}

static const char *type_name(unsigned at)
{
	return record_type_name((enum record_type)(at % RECORD_TYPE_COUNT));
}

static const char *kind_name(unsigned at)
{
	return effect_kind_name((enum effect_kind)(at % (EFFECT_KIND_COUNT + 1)));
}

static const char *how_name(unsigned at)
{
	return effect_how_name((enum effect_how)(at % HOW_COUNT));
}

static const char *state_name(unsigned at)
{
	return result_state_name((enum result_state)(at % 4));
}

static void put_row(struct input *input, int number)
{
	struct buf json CLEANUP_BUF = {.limit = 1 << 16};
	unsigned form = (unsigned)take_number(input, 1);

	sqlite3_reset(insert);
	sqlite3_clear_bindings(insert);
	sqlite3_bind_int64(insert, 1, number);
	bind_word(insert, 2, input, type_name);
	bind_word(insert, 3, input, kind_name);
	bind_word(insert, 4, input, how_name);
	bind_word(insert, 5, input, state_name);
	sqlite3_bind_int64(insert, 6, (sqlite3_int64)(take_number(input, 1) & 7));
	sqlite3_bind_int64(insert, 7, (sqlite3_int64)take_number(input, 1));
	if (form % 16 == 0) {
		bind_any(insert, 8, input);
	} else if (form & 1) {
		append_object(&json, input, 0);
		sqlite3_bind_blob(insert, 8, json.data, (int)json.size, SQLITE_TRANSIENT);
	} else {
		struct bytes raw = take_bytes(input, take_number(input, 2));
		sqlite3_bind_blob(insert, 8, raw.data ? raw.data : "", (int)raw.size, SQLITE_TRANSIENT);
	}
	need(sqlite3_step(insert) == SQLITE_DONE);
	sqlite3_reset(insert);
}

static void fill(struct input *input)
{
	static const char *const meta[] = {"name",     "reason",  "started_ns", "ended_ns",
					   "complete", "records", "effects"};
	int rows = (int)(take_number(input, 1) & 15);

	need(sqlite3_exec(db, "BEGIN; DELETE FROM records; DELETE FROM meta", NULL, NULL, NULL) == SQLITE_OK);
	for (int i = 0; i < rows; i++)
		put_row(input, i);
	for (size_t i = 0; i < sizeof(meta) / sizeof(meta[0]) && input->size > 0; i++) {
		sqlite3_reset(insert_meta);
		bind_text(insert_meta, 1, bytes_of(meta[i]));
		bind_any(insert_meta, 2, input);
		need(sqlite3_step(insert_meta) == SQLITE_DONE);
	}
	sqlite3_reset(insert_meta);
	need(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK);
}

/* --- screens --- */

/* What stands at a run's end. */
static int show_end(int count, char **arguments)
{
	struct err err = {.number = 0};
	struct run *run = run_open(home, "0123", &err);

	(void)count;
	(void)arguments;
	bool good = run && render_run_screen(stdout, home, run, &err);
	run_close(run);
	return good ? EXIT_OK : render_error(&err);
}

static const struct command command_end = {.name = "end", .run = show_end};

static const struct screen {
	const struct command *command;
	const char *arguments[4];
	enum { SHOWN, DOCUMENT, AS_STORED } form;
} screens[] = {
    {&command_show, {"show", "0123"}, SHOWN},
    {&command_show, {"show", "0123", "--json"}, DOCUMENT},
    {&command_tree, {"tree", "0123"}, SHOWN},
    {&command_tree, {"tree", "0123", "--json"}, DOCUMENT},
    {&command_effects, {"effects", "0123"}, SHOWN},
    {&command_effects, {"effects", "0123", "--path", "**/*a*"}, SHOWN},
    {&command_effects, {"effects", "0123", "--json"}, AS_STORED},
    {&command_runs, {"runs"}, SHOWN},
    {&command_runs, {"runs", "--json"}, DOCUMENT},
    {&command_end, {"end"}, SHOWN},
};

static void check_document(const struct written *out)
{
	json_error_t error;
	json_t *json = json_loadb(out->text, out->size, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);

	need(json != NULL);
	json_decref(json);
}

/* Errors are written to a descriptor: a file in memory, read back and emptied. */
static struct bytes take_errors(void)
{
	static char text[8192];
	ssize_t size = pread(errors, text, sizeof(text), 0);

	need(size >= 0 && ftruncate(errors, 0) == 0 && lseek(errors, 0, SEEK_SET) == 0);
	return (struct bytes){text, (size_t)size};
}

static void show(const struct screen *screen)
{
	char copies[4][16], *arguments[5] = {NULL};
	struct written out = {NULL, 0};
	FILE *own_out = stdout, *own_errors = stderr;
	int count = 0;

	for (; count < 4 && screen->arguments[count]; count++) {
		snprintf(copies[count], sizeof(copies[count]), "%s", screen->arguments[count]);
		arguments[count] = copies[count];
	}
	stdout = open_memstream(&out.text, &out.size);
	stderr = error_stream;
	need(stdout != NULL);
	int status = screen->command->run(count, arguments);
	fclose(stdout);
	fflush(stderr);
	stdout = own_out;
	stderr = own_errors;
	struct bytes said = take_errors();
	need(status == EXIT_OK || (status == EXIT_FAILED && said.size > 0));
	need(is_shown(said, true));
	if (screen->form == SHOWN)
		need(is_shown((struct bytes){out.text, out.size}, true));
	else if (screen->form == DOCUMENT && status == EXIT_OK)
		check_document(&out);
	free(out.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	unsigned which = (unsigned)take_number(&input, 1);
	struct open_set before = open_now();

	(void)setlocale(LC_CTYPE, which & 128 ? "C" : "C.UTF-8");
	fill(&input);
	show(&screens[which % 128 % (sizeof(screens) / sizeof(screens[0]))]);
	need_same_open(&before);
	return 0;
}
