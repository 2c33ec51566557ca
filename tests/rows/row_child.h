/*
 * For rows that would change the machine: a child with namespaces of its own, and checks of what peers saw.
 */
#pragma once

#include <sched.h>
#include <sys/wait.h>

#include "row.h"

/* The program's own assumption: when it does not hold, no expectation of it is worth anything. */
#define row_must(condition) ((condition) ? (void)0 : row_broken(#condition, __LINE__))

__attribute__((unused, noreturn)) static void row_broken(const char *what, int line)
{
	fprintf(stderr, "line %d: not so: %s (%s)\n", line, what, strerror(errno));
	_exit(2);
}

__attribute__((unused)) static void row_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	/* What does not work here shows in what needs it. */
	if (write(fd, text, strlen(text)) < 0)
		errno = 0;
	close(fd);
}

/* Namespaces of these types; for others than root in a user namespace in which the caller is root. */
__attribute__((unused)) static bool row_unshare(int namespaces)
{
	char text[64];
	uid_t user = geteuid();
	gid_t group = getegid();

	if (user == 0)
		return unshare(namespaces) == 0;
	if (unshare(namespaces | CLONE_NEWUSER) != 0)
		return false;
	row_write_file("/proc/self/setgroups", "deny");
	snprintf(text, sizeof(text), "0 %u 1", user);
	row_write_file("/proc/self/uid_map", text);
	snprintf(text, sizeof(text), "0 %u 1", group);
	row_write_file("/proc/self/gid_map", text);
	return true;
}

/* Run it in a child, which may do to its namespaces what it likes. */
__attribute__((unused)) static void row_in_child(const char *row, int namespaces, void (*run)(void))
{
	int status;
	pid_t child = fork();

	row_must(child >= 0);
	if (child == 0) {
		alarm(20);
		if (namespaces && !row_unshare(namespaces))
			row_skip(row, "no namespaces of its own here");
		else
			run();
		_exit(0);
	}
	row_must(waitpid(child, &status, 0) == child);
	row_must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The start of a line that says what must not be recorded; more keys may follow, and row_done(). */
__attribute__((unused)) static void row_absent(const char *row)
{
	row_used = 0;
	row_put("{\"row\":\"%s\",\"absent\":{\"syscall\":\"%s\"", row, row);
}

__attribute__((unused)) static void row_hex(const char *key, unsigned long value)
{
	row_put(",\"%s\":\"0x%lx\"", key, value);
}

/* What a call returned, where the record has it: a positive number. */
__attribute__((unused)) static void row_value(long result)
{
	if (result > 0)
		row_number("result.value", result);
}
