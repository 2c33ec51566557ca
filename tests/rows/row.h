/*
 * What the programs in this folder share. Each makes calls of specs/syscalls.def, with success and with failure, and
 * says from what it saw itself (return values, stat, peers) which effects there must be: an oracle that knows nothing
 * of assure. tests/rows/run.py runs them under `assure trace --lens all` and compares.
 *
 * Expectations are JSON Lines on descriptor ROW_FD (or nowhere, when it is closed):
 *   {"row":"mkdir","outcome":"ok","effect":{"syscall":"mkdir","kind":"dir.create","path":"/...","ino":"12"}}
 * `outcome` is "ok", a symbolic errno, or "refused"; "unknown" effects are accepted only where the table lets go.
 * Keys of `effect` are paths into the record ("result.value", "args.name"); every one must be equal.
 *   {"row":"swapon","skip":"needs root"}       this half cannot be tested here, and why
 *   {"row":"shmget","absent":{"syscall":...}}  no such effect may be there
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <unistd.h>

enum { ROW_FD = 3 };

struct row_case {
	const char *row; /* name of the row in specs/syscalls.def */
	void (*run)(void);
};

/* The line being built. One at a time. */
static char row_line[65536];
static size_t row_used;

__attribute__((unused, format(printf, 1, 2))) static void row_put(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	int size = vsnprintf(row_line + row_used, sizeof(row_line) - row_used, format, arguments);
	va_end(arguments);
	if (size < 0 || (size_t)size >= sizeof(row_line) - row_used)
		abort();
	row_used += (size_t)size;
}

/* A JSON string of bytes that are ASCII but for what needs an escape. */
__attribute__((unused)) static void row_quote(const char *text)
{
	row_put("\"");
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			row_put("\\%c", *text);
		else if ((unsigned char)*text < 0x20)
			row_put("\\u%04x", (unsigned char)*text);
		else
			row_put("%c", *text);
	}
	row_put("\"");
}

/* Begin an expectation: `result` is the call's return value, errno is read when it is -1. */
__attribute__((unused)) static void row_expect(const char *row, const char *kind, long result)
{
	const char *outcome = result == -1 ? strerrorname_np(errno) : "ok";

	row_used = 0;
	row_put("{\"row\":\"%s\",\"outcome\":\"%s\",\"effect\":{\"syscall\":\"%s\",\"kind\":\"%s\"", row, outcome, row,
		kind);
}

__attribute__((unused)) static void row_text(const char *key, const char *value)
{
	row_put(",\"%s\":", key);
	row_quote(value);
}

__attribute__((unused)) static void row_number(const char *key, long long value)
{
	row_put(",\"%s\":%lld", key, value);
}

/* Any JSON. */
__attribute__((unused)) static void row_json(const char *key, const char *json)
{
	row_put(",\"%s\":%s", key, json);
}

/* "dev" and "ino" of what stat() says; prefix is "" or "to." and so on. */
__attribute__((unused)) static void row_inode(const char *prefix, const struct stat *status)
{
	row_put(",\"%sdev\":\"%u:%u\",\"%sino\":\"%llu\"", prefix, major(status->st_dev), minor(status->st_dev), prefix,
		(unsigned long long)status->st_ino);
}

__attribute__((unused)) static void row_done(void)
{
	row_put("}}\n");
	if (write(ROW_FD, row_line, row_used) < 0 && errno != EBADF)
		abort();
}

__attribute__((unused)) static void row_skip(const char *row, const char *reason)
{
	row_used = 0;
	row_put("{\"row\":\"%s\",\"skip\":", row);
	row_quote(reason);
	row_put("}\n");
	if (write(ROW_FD, row_line, row_used) < 0 && errno != EBADF)
		abort();
}

/* Absolute path of a name in the working directory, which is the runner's fresh folder. */
__attribute__((unused)) static const char *row_path(const char *name)
{
	static char paths[8][PATH_MAX];
	static unsigned next;
	char *out = paths[next++ % 8];
	char directory[PATH_MAX - NAME_MAX - 2];

	if (!getcwd(directory, sizeof(directory)))
		abort();
	snprintf(out, PATH_MAX, "%s/%s", directory, name);
	return out;
}

/* Run all cases, or those named on the command line. */
__attribute__((unused)) static int row_main(const struct row_case *cases, int argc, char **argv)
{
	for (const struct row_case *one = cases; one->row; one++) {
		bool wanted = argc < 2;
		for (int i = 1; i < argc; i++)
			wanted = wanted || strcmp(argv[i], one->row) == 0;
		if (wanted)
			one->run();
	}
	return 0;
}
