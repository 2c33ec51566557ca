/*
 * endure_kills stopped WORKERS ROUNDS   processes that are stopped, continued and at last killed while they make things
 * endure_kills busy SPACE               a tree that makes files until somebody ends it; with `space`, also from within
 *                                       user and mount namespaces of its own
 * endure_kills spaced COUNT             COUNT files from within such namespaces
 */
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "endure.h"

enum { MOST_WORKERS = 64, BUSY = 3, SETTLE_TRIES = 2000, MOST_OF_ONE = 200000 };

static void make_for_ever(long number)
{
	for (long i = 0; i < MOST_OF_ONE; i++) {
		char name[64];
		if (endure_make("k", number, i) != 0)
			_exit(1);
		snprintf(name, sizeof(name), "d-%ld-%ld", number, i);
		if (mkdir(name, 0700) != 0)
			_exit(1);
	}
	for (;;)
		pause();
}

static unsigned random_next(void)
{
	static uint64_t state = 12345;

	state = state * 6364136223846793005U + 1442695040888963407U;
	return (unsigned)(state >> 33);
}

/* A stopped process has to be seen as stopped: a call in the middle does not keep it from that for ever. */
static bool stops(pid_t pid)
{
	siginfo_t info = {.si_pid = 0};

	for (int tries = 0; tries < SETTLE_TRIES; tries++) {
		if (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid == pid)
			return true;
		endure_nap(1000000);
	}
	return false;
}

static int stopped(long workers, long rounds)
{
	long stops_seen = 0, killed = 0, number = 0;
	pid_t pids[MOST_WORKERS];
	int status;

	for (long round = 0; round < rounds; round++) {
		for (long i = 0; i < workers; i++) {
			pids[i] = fork();
			if (pids[i] == 0)
				make_for_ever(number);
			if (pids[i] < 0)
				endure_die("fork");
			number++;
		}
		for (long i = 0; i < workers; i++) {
			endure_nap(random_next() % 2000000);
			kill(pids[i], SIGSTOP);
			stops_seen += stops(pids[i]);
			kill(pids[i], SIGCONT);
		}
		/* Some run when they are killed, some are stopped. */
		for (long i = 0; i < workers; i++) {
			endure_nap(random_next() % 1000000);
			if (i % 4 == 0)
				kill(pids[i], SIGSTOP);
			kill(pids[i], SIGKILL);
		}
		for (long i = 0; i < workers; i++)
			killed += waitpid(pids[i], &status, 0) == pids[i] && WIFSIGNALED(status) &&
				  WTERMSIG(status) == SIGKILL;
	}
	endure_say("stopped", stops_seen);
	endure_say("killed", killed);
	return 0;
}

static bool enter_space(void)
{
	return unshare((geteuid() == 0 ? 0 : CLONE_NEWUSER) | CLONE_NEWNS) == 0;
}

static int busy(bool space)
{
	for (long i = 0; i < BUSY; i++)
		if (fork() == 0)
			make_for_ever(i);
	if (fork() == 0) { /* in a session of its own, whose first process is gone */
		setsid();
		if (fork() == 0)
			make_for_ever(BUSY);
		_exit(0);
	}
	if (space && fork() == 0) {
		if (!enter_space())
			_exit(77);
		make_for_ever(BUSY + 1);
	}
	for (;;)
		pause();
}

static int spaced(long count)
{
	long made = 0, there = 0;

	if (!enter_space())
		return 77;
	for (long i = 0; i < count; i++) {
		int error = endure_make("p", 0, i);
		made += error == 0;
		there += error == EEXIST; /* the call was made twice */
		endure_nap(2000000);
	}
	endure_say("there", made + there);
	fprintf(stderr, "twice %ld\n", there);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "stopped") == 0) {
		long workers = endure_number(argv[2]);
		return workers > MOST_WORKERS ? 64 : stopped(workers, endure_number(argv[3]));
	}
	if (argc == 3 && strcmp(argv[1], "busy") == 0)
		return busy(strcmp(argv[2], "space") == 0);
	if (argc == 3 && strcmp(argv[1], "spaced") == 0)
		return spaced(endure_number(argv[2]));
	return 64;
}
