/*
 * What the programs in this folder share. Each makes calls whose arguments somebody else changes meanwhile, and finds
 * out from the world (which name is there, which listener was reached, which program runs) what each call did.
 * tests/races/run.py runs them alone and under `assure trace`, and compares.
 *
 * A line for each call, JSON, on standard output:
 *   {"call":"mkdir","syscall":"mkdirat","tid":7,"outcome":"a","errno":0,"is":{"path":"/...","ino?":"12"}}
 * `is` says what the record of the call has to have under a dotted key: this value, one of a list of values, or, for
 * null, nothing. A record without the key does not say what was done, which makes it an unknown one, but for a key with
 * a question mark.
 *   {"call":"setxattr","skip":"no user attributes here"}   this call cannot be tested here, and why
 */
#pragma once

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	RACE_SKIP = 77,
	RACE_STACK = 65536,
	RACE_TEXT = 512,
	RACE_LONGEST_SPIN = 12,
	RACE_LONGEST_NAP_NS = 100000,
	RACE_PATIENCE = 100000,
	RACE_PACED = 16,
};

/* Memory that one side writes while the other's call reads it. */
struct race_area {
	atomic_int stop;
	atomic_long flips;
	/* Aligned, so that each store is seen whole or not at all: no call reads half of it. */
	_Alignas(64) char text[RACE_TEXT];
	_Alignas(64) char other[RACE_TEXT];
};

enum race_flipper { RACE_THREAD, RACE_PEER, RACE_SHARED };

typedef void (*race_flip)(struct race_area *area, unsigned number);

struct race_flipping {
	enum race_flipper by;
	race_flip flip;
	struct race_area *area;
	pthread_t thread;
	pid_t process, parent;
	void *stack;
};

__attribute__((unused, noreturn)) static void race_die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

__attribute__((unused, noreturn)) static void race_skip(const char *what)
{
	printf("{\"call\":\"all\",\"skip\":\"%s: %s\"}\n", what, strerror(errno));
	fflush(stdout);
	exit(RACE_SKIP);
}

__attribute__((unused)) static long race_number(const char *text)
{
	char *end;
	long number = strtol(text, &end, 10);

	if (*end || number < 1) {
		fprintf(stderr, "not a number: %s\n", text);
		exit(64);
	}
	return number;
}

__attribute__((unused)) static struct race_area *race_map(enum race_flipper by)
{
	int fd = -1, flags = MAP_PRIVATE | MAP_ANONYMOUS;

	if (by == RACE_SHARED) {
		fd = memfd_create("race", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, sizeof(struct race_area)) != 0)
			race_die("memfd_create");
		flags = MAP_SHARED;
	}
	struct race_area *area = mmap(NULL, sizeof(*area), PROT_READ | PROT_WRITE, flags, fd, 0);
	if (area == MAP_FAILED)
		race_die("mmap");
	if (fd >= 0)
		close(fd);
	return area;
}

/* Pseudo-random numbers with no state but the caller's: a peer has no thread-local storage of its own. */
__attribute__((unused)) static unsigned race_random(uint64_t *state)
{
	*state = *state * 6364136223846793005U + 1442695040888963407U;
	return (unsigned)(*state >> 33);
}

/* From nothing to tens of microseconds: as long as a call takes, and as long as a look at it takes. */
__attribute__((unused)) static void race_spin(unsigned random)
{
	for (volatile unsigned left = 1U << random % RACE_LONGEST_SPIN; left; left--)
		;
}

/* Now and then: a flip that is recorded itself keeps the tracer from the call that it should change. */
__attribute__((unused)) static void race_nap(unsigned random)
{
	struct timespec time = {.tv_nsec = (long)(random % RACE_LONGEST_NAP_NS)};

	nanosleep(&time, NULL);
}

static int race_flip_until_stopped(void *given)
{
	struct race_flipping *flipping = given;
	uint64_t state = (uint64_t)(uintptr_t)given;

	while (!atomic_load_explicit(&flipping->area->stop, memory_order_relaxed)) {
		flipping->flip(flipping->area, race_random(&state));
		atomic_fetch_add_explicit(&flipping->area->flips, 1, memory_order_relaxed);
		race_spin(race_random(&state));
	}
	return 0;
}

static int race_flip_in_process(void *given)
{
	const struct race_flipping *flipping = given;

	/* It must not spin for ever when the caller is killed. */
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	return getppid() == flipping->parent ? race_flip_until_stopped(given) : 0;
}

/* Until the next flip. Not for ever: who flips may have been killed. */
__attribute__((unused)) static void race_let_flip(const struct race_area *area)
{
	long before = atomic_load(&area->flips);

	for (int i = 0; i < RACE_PATIENCE && atomic_load(&area->flips) == before; i++)
		sched_yield();
}

/*
 * Before a call: in some of the rounds what comes up does not hang on the last one, however rarely who flips gets to
 * run. Not in all: just after a flip is when the next one is the farthest away.
 */
__attribute__((unused)) static void race_pace(const struct race_area *area, long number)
{
	if (number % RACE_PACED == 0)
		race_let_flip(area);
}

static void *race_flip_in_thread(void *given)
{
	race_flip_until_stopped(given);
	return NULL;
}

__attribute__((unused)) static void race_start(struct race_flipping *flipping)
{
	flipping->parent = getpid();
	atomic_store(&flipping->area->stop, 0);
	atomic_store(&flipping->area->flips, 0);
	if (flipping->by == RACE_THREAD) {
		if (pthread_create(&flipping->thread, NULL, race_flip_in_thread, flipping) != 0)
			race_die("pthread_create");
	} else if (flipping->by == RACE_PEER) {
		flipping->stack = malloc(RACE_STACK);
		if (!flipping->stack)
			race_die("malloc");
		flipping->process =
		    clone(race_flip_in_process, (char *)flipping->stack + RACE_STACK, CLONE_VM | SIGCHLD, flipping);
	} else {
		flipping->process = fork();
		if (flipping->process == 0)
			_exit(race_flip_in_process(flipping));
	}
	if (flipping->by != RACE_THREAD && flipping->process < 0)
		race_die("flipper");
	race_let_flip(flipping->area);
}

__attribute__((unused)) static void race_stop(struct race_flipping *flipping)
{
	atomic_store(&flipping->area->stop, 1);
	if (flipping->by == RACE_THREAD)
		pthread_join(flipping->thread, NULL);
	else if (waitpid(flipping->process, NULL, 0) != flipping->process)
		race_die("waitpid");
	free(flipping->stack);
}

/* What a call did: the begin of its line. `result` and errno are the call's; keys of `is` follow until race_end. */
__attribute__((unused)) static void race_begin(const char *call, const char *name, pid_t tid, const char *outcome,
					       int error)
{
	printf("{\"call\":\"%s\",\"syscall\":\"%s\",\"tid\":%d,\"outcome\":\"%s\",\"errno\":%d,\"is\":{\"syscall\":"
	       "\"%s\"",
	       call, name, tid, outcome, error, name);
}

__attribute__((unused, format(printf, 2, 3))) static void race_is(const char *key, const char *format, ...)
{
	va_list arguments;

	printf(",\"%s\":", key);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
}

__attribute__((unused)) static void race_end(void)
{
	puts("}}");
}
