/*
 * The control of the benchmarks: the filter of a lens, and a supervisor that lets every call go on without a look. What
 * assure costs above this is its own work; what this costs is the kernel's price of a notification.
 *
 *     bare_supervisor --lens LENS [--filter-alone | --exec-check] -- COMMAND [ARG…]
 *     bare_supervisor --lens LENS --list
 *
 * --filter-alone: the same program, but what would be notified is allowed. --exec-check: an exec is stopped before the new
 * image's first instruction, and that image and its argv are asked for: the least that a checked exec can cost. --list: the
 * calls of that lens.
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
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/filter.h"

enum { USAGE = 64, FAILED = 125, NOT_FOUND = 127 };

struct options {
	enum lens lens;
	bool filter_alone, exec_check, list;
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
		else if (strcmp(*argv, "--exec-check") == 0)
			options->exec_check = true;
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

struct supervisor {
	int listener;
	bool exec_check;
};

static bool is_exec(const struct seccomp_notif *request)
{
	return request->data.nr == SYS_execve || request->data.nr == SYS_execveat;
}

static bool begin_check(pid_t task)
{
	return ptrace(PTRACE_SEIZE, task, NULL, (void *)(uintptr_t)PTRACE_O_TRACEEXEC) == 0 &&
	       ptrace(PTRACE_INTERRUPT, task, NULL, NULL) == 0;
}

/* The image by device and inode, and the page of the stack that holds argc and argv. */
static void end_check(pid_t task)
{
	enum { STACK = 4096 };
	struct __ptrace_syscall_info info;
	char name[64], stack[STACK];
	struct stat image;
	int status;

	if (waitpid(task, &status, __WALL) != task || !WIFSTOPPED(status))
		return;
	if (status >> 16 == PTRACE_EVENT_EXEC &&
	    ptrace(PTRACE_GET_SYSCALL_INFO, task, (void *)sizeof(info), &info) > 0) {
		struct iovec mine = {stack, STACK}, theirs = {(void *)(uintptr_t)info.stack_pointer, STACK};
		(void)snprintf(name, sizeof(name), "/proc/%d/exe", task);
		if (stat(name, &image) != 0 || process_vm_readv(task, &mine, 1, &theirs, 1, 0) <= 0)
			fail("looking at the image");
	}
	(void)ptrace(PTRACE_DETACH, task, NULL, NULL);
}

static void *let_everything_go(void *argument)
{
	const struct supervisor *supervisor = argument;
	const int listener = supervisor->listener;

	for (;;) {
		struct seccomp_notif request = {0};
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) {
			/* ENOENT: the caller was killed; newer kernels also say it when nobody is left. */
			if (errno == EINTR || errno == ENOENT)
				continue;
			fail("receiving");
		}
		struct seccomp_notif_resp response = {.id = request.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
		bool check = supervisor->exec_check && is_exec(&request) && begin_check((pid_t)request.pid);
		(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
		if (check)
			end_check((pid_t)request.pid);
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

static void run_supervised(const struct filter *filter, bool exec_check, char **command)
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
	struct supervisor supervisor = {take_listener(child, number), exec_check};
	pthread_t thread;
	int status;
	if (pthread_create(&thread, NULL, let_everything_go, &supervisor) != 0)
		fail("starting a thread");
	if (waitpid(child, &status, __WNOTHREAD) != child)
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
		fputs("usage: bare_supervisor --lens LENS [--filter-alone | --exec-check] (--list | -- COMMAND "
		      "[ARG...])\n",
		      stderr);
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
		run_supervised(&filter, options.exec_check, options.command);
	return FAILED;
}
