/*
 * hostile_space MODE: pid namespaces, in which one number is the name of several processes.
 *   victim    signals a process whose number in the namespace is the host's number of the caller
 *   caller    signals a process whose number on the host is the caller's number in the namespace
 *   clone3    a child in namespaces of its own that makes the file made-by-child
 * Prints the number that was signalled; 77 when there can be no such namespace here.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t clone_with(uint64_t flags, pid_t wanted)
{
	struct clone_args arguments = {.flags = flags, .exit_signal = SIGCHLD};

	if (wanted) {
		arguments.set_tid = (uint64_t)(uintptr_t)&wanted;
		arguments.set_tid_size = 1;
	}
	return (pid_t)syscall(SYS_clone3, &arguments, sizeof(arguments));
}

/* Our number on the host, whose /proc this is. */
static pid_t host_number(void)
{
	char text[32] = "";

	return readlink("/proc/self", text, sizeof(text) - 1) > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

static void end_it(pid_t victim)
{
	if (kill(victim, SIGTERM) != 0)
		_exit(1);
	printf("%d\n", victim);
	fflush(stdout);
}

static int signal_namesake(void)
{
	pid_t victim = clone_with(0, host_number());

	if (victim < 0)
		return 77;
	if (victim == 0) {
		pause();
		_exit(0);
	}
	end_it(victim);
	return waitpid(victim, NULL, 0) != victim;
}

static int signal_as_namesake(void)
{
	int ends[2], status;
	pid_t number = 0;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return 1;
	pid_t victim = fork();
	if (victim == 0) {
		number = host_number();
		_exit(write(ends[1], &number, sizeof(number)) < 0 || pause());
	}
	if (read(ends[0], &number, sizeof(number)) != sizeof(number))
		return 1;
	pid_t caller = clone_with(0, number);
	if (caller < 0)
		return 77;
	if (caller == 0) {
		end_it(victim);
		_exit(0);
	}
	if (waitpid(caller, &status, 0) != caller || waitpid(victim, NULL, 0) != victim)
		return 1;
	return status != 0;
}

/* What a child ended with, that is the first in a pid namespace. */
static int in_namespace(int (*run)(void))
{
	uint64_t spaces = CLONE_NEWPID;
	int status;

	if (geteuid() != 0)
		spaces |= CLONE_NEWUSER;
	pid_t first = clone_with(spaces, 0);
	if (first == 0) {
		pid_t second = fork();
		if (second == 0)
			_exit(run());
		_exit(waitpid(second, &status, 0) == second && WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	if (first < 0)
		return 77;
	return waitpid(first, &status, 0) == first && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int child_in_namespaces(void)
{
	int status;
	pid_t child = clone_with(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET, 0);

	if (child == 0)
		_exit(open("made-by-child", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) < 0);
	if (child < 0)
		return 77;
	printf("%d\n", child);
	return waitpid(child, &status, 0) != child || status != 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (strcmp(mode, "victim") == 0)
		return in_namespace(signal_namesake);
	if (strcmp(mode, "caller") == 0)
		return in_namespace(signal_as_namesake);
	if (strcmp(mode, "clone3") == 0)
		return child_in_namespaces();
	return 64;
}
