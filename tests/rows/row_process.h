/*
 * For rows about processes: a second process that waits, one that gives up its privileges, one that makes a call which
 * cannot be taken back.
 */
#pragma once

#include "row.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <linux/capability.h>

enum { ROW_NOBODY = 65534, ROW_NO_PROCESS = INT_MAX };

/* A child that waits until its parent says so, or is gone. */
struct row_idle {
	pid_t pid;
	int hold; /* closing it ends the child */
	int pidfd;
};

__attribute__((noreturn, unused)) static void row_give_up(const char *what)
{
	perror(what);
	exit(1);
}

/* Where nobody listens, a pipe of ours must not get the number that expectations are written to. */
__attribute__((constructor)) static void row_keep_descriptor(void)
{
	if (fcntl(ROW_FD, F_GETFD) >= 0)
		return;
	int null = open("/dev/null", O_WRONLY);
	if (null < 0 || dup2(null, ROW_FD) != ROW_FD)
		row_give_up("/dev/null");
	if (null != ROW_FD)
		close(null);
}

__attribute__((unused)) static int row_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			row_give_up("waitpid");
	return status;
}

/* Run a case in a process of its own. */
__attribute__((unused)) static void row_apart(void (*run)(void))
{
	pid_t pid = fork();

	if (pid < 0)
		row_give_up("fork");
	if (pid == 0) {
		run();
		_exit(0);
	}
	if (row_wait(pid) != 0) {
		fprintf(stderr, "a case that ran apart came to a bad end\n");
		exit(1);
	}
}

/* From here on an ordinary user without any capability, whoever started the program. */
__attribute__((unused)) static void row_be_nobody(void)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct caps[2] = {{0}};

	if (geteuid() == 0 &&
	    (setresgid(ROW_NOBODY, ROW_NOBODY, ROW_NOBODY) != 0 || setresuid(ROW_NOBODY, ROW_NOBODY, ROW_NOBODY) != 0))
		row_give_up("setresuid");
	/* What follows may be harmful to the machine if it were allowed. */
	if (syscall(SYS_capset, &head, caps) != 0 || geteuid() == 0)
		row_give_up("capset");
}

/* `guarded`: closed to processes that are not allowed to trace everything. */
__attribute__((unused)) static struct row_idle row_idle_start(bool guarded)
{
	int hold[2], ready[2];
	char byte;

	if (pipe(hold) != 0 || pipe(ready) != 0)
		row_give_up("pipe");
	pid_t pid = fork();
	if (pid < 0)
		row_give_up("fork");
	if (pid == 0) {
		close(hold[1]);
		if (prctl(PR_SET_DUMPABLE, guarded ? 0 : 1) != 0 || write(ready[1], "", 1) != 1)
			_exit(1);
		while (read(hold[0], &byte, 1) < 0 && errno == EINTR)
			;
		_exit(0);
	}
	close(hold[0]);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		row_give_up("a child that should wait");
	close(ready[0]);
	return (struct row_idle){pid, hold[1], (int)syscall(SYS_pidfd_open, pid, 0)};
}

__attribute__((unused)) static int row_idle_end(struct row_idle *idle)
{
	close(idle->hold);
	if (idle->pidfd >= 0)
		close(idle->pidfd);
	return row_wait(idle->pid);
}

/* A flag word that the record gives as hexadecimal text. */
__attribute__((unused)) static void row_hex(const char *key, unsigned long value)
{
	row_put(",\"%s\":\"0x%lx\"", key, value);
}

/* No effect of the row may match; `keys` is what else stands between the braces. */
__attribute__((format(printf, 2, 3), unused)) static void row_no_effect(const char *row, const char *keys, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, keys);
	vsnprintf(text, sizeof(text), keys, arguments);
	va_end(arguments);
	row_used = 0;
	row_put("{\"row\":\"%s\",\"absent\":{\"syscall\":\"%s\"%s%s}}\n", row, row, *text ? "," : "", text);
	if (write(ROW_FD, row_line, row_used) < 0 && errno != EBADF)
		abort();
}

/* The half that should have succeeded did not. */
__attribute__((unused)) static void row_wanted(const char *row, long result, const char *needs)
{
	if (result == -1)
		row_skip(row, needs);
}
