/*
 * The control of the benchmarks: the filter of a lens, and a supervisor that lets every call go on without a look. What
 * assure costs above this is its own work; what this costs is the kernel's price of a notification.
 *
 *     bare_supervisor --lens LENS [--filter-alone] -- COMMAND [ARG…]
 *     bare_supervisor --lens LENS --list
 *
 * --filter-alone: the same program, but what would be notified is allowed. --list: the calls of that lens.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/filter.h"

enum { USAGE = 64, FAILED = 125, NOT_FOUND = 127 };

struct options {
	enum lens lens;
	bool filter_alone, list;
	char **command;
};

_Noreturn static void fail(const char *what)
{
	fprintf(stderr, "bare_supervisor: %s: %s\n", what, strerror(errno));
	exit(FAILED);
}

static bool read_options(char **argv, struct options *options)
{
	bool lens = false;

	for (argv++; *argv; argv++) {
		if (strcmp(*argv, "--lens") == 0 && argv[1])
			lens = lens_find(*++argv, &options->lens);
		else if (strcmp(*argv, "--filter-alone") == 0)
			options->filter_alone = true;
		else if (strcmp(*argv, "--list") == 0)
			options->list = true;
		else if (strcmp(*argv, "--") == 0 && argv[1]) {
			options->command = argv + 1;
			break;
		} else
			return false;
	}
	return lens && (options->list || options->command);
}

static void list_calls(enum lens lens)
{
	for (size_t i = 0; i < syscall_row_count; i++)
		if (syscall_number(&syscall_rows[i]) >= 0 && syscall_rows[i].lens <= lens)
			puts(syscall_rows[i].name);
}

static void run_command(char **command)
{
	execvp(command[0], command);
	fprintf(stderr, "bare_supervisor: %s: %s\n", command[0], strerror(errno));
	_exit(NOT_FOUND);
}

/* The same instructions walked, and nobody asked. */
static void run_under_filter_alone(struct filter *filter, char **command)
{
	for (size_t i = 0; i < filter->count; i++)
		if (filter->instructions[i].code == (BPF_RET | BPF_K) &&
		    filter->instructions[i].k == SECCOMP_RET_USER_NOTIF)
			filter->instructions[i].k = SECCOMP_RET_ALLOW;
	const struct sock_fprog program = {filter->count, filter->instructions};
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0 &&
	    (errno != EACCES || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	     syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0))
		fail("installing the filter");
	run_command(command);
}

static void *let_everything_go(void *argument)
{
	const int listener = *(const int *)argument;

	for (;;) {
		struct seccomp_notif request = {0};
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) {
			/* ENOENT: the caller was killed; newer kernels also say it when nobody is left. */
			if (errno == EINTR || errno == ENOENT)
				continue;
			fail("receiving");
		}
		struct seccomp_notif_resp response = {.id = request.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
		(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
	}
	return NULL;
}

/* The listener's number comes through memory: a call that passes it on could itself wait for an answer. */
static int take_listener(pid_t child, const atomic_int *number)
{
	int pidfd = pidfd_open(child, 0);

	if (pidfd < 0)
		fail("pidfd_open");
	while (atomic_load(number) == 0)
		sched_yield();
	if (atomic_load(number) < 0)
		exit(FAILED);
	int listener = pidfd_getfd(pidfd, atomic_load(number), 0);
	if (listener < 0)
		fail("taking the listener");
	close(pidfd);
	return listener;
}

static void run_supervised(const struct filter *filter, char **command)
{
	atomic_int *number = mmap(NULL, sizeof(*number), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (number == MAP_FAILED)
		fail("mmap");
	pid_t child = fork();
	if (child == 0) {
		struct err err = {0};
		bool no_new_privs;
		int listener = filter_install(filter, &no_new_privs, &err);
		atomic_store(number, listener < 0 ? -1 : listener);
		if (listener < 0)
			fprintf(stderr, "bare_supervisor: %s\n", err.text);
		else
			run_command(command);
		_exit(FAILED);
	}
	int listener = take_listener(child, number);
	pthread_t thread;
	int status;
	if (pthread_create(&thread, NULL, let_everything_go, &listener) != 0)
		fail("starting a thread");
	if (waitpid(child, &status, 0) != child)
		fail("waitpid");
	exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int main(int argc, char **argv)
{
	struct options options = {0};
	struct filter filter;
	struct err err = {0};

	(void)argc;
	if (!read_options(argv, &options)) {
		fputs("usage: bare_supervisor --lens LENS [--filter-alone] (--list | -- COMMAND [ARG...])\n", stderr);
		return USAGE;
	}
	if (options.list) {
		list_calls(options.lens);
		return 0;
	}
	if (!filter_build(&filter, options.lens, &err)) {
		fprintf(stderr, "bare_supervisor: %s\n", err.text);
		return FAILED;
	}
	if (options.filter_alone)
		run_under_filter_alone(&filter, options.command);
	else
		run_supervised(&filter, options.command);
	return FAILED;
}
