/*
 * The stop record and the back-end interface: what a supervisor gets from the kernel, and the two things it can do.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* One call of one task that waits for an answer. */
struct stop {
	uint64_t cookie; /* the kernel's id of this notification */
	pid_t tid;       /* in the monitor's pid namespace */
	uint32_t arch;   /* AUDIT_ARCH_* */
	int number;
	uint64_t args[6];
	uint64_t received_ns; /* CLOCK_MONOTONIC */
};

enum stop_answer {
	ANSWER_CONTINUE, /* the kernel makes the call */
	ANSWER_ERROR,    /* the call returns -value */
	ANSWER_VALUE,    /* the call returns value */
};

enum receive_state {
	RECEIVE_STOP,  /* one stop to handle */
	RECEIVE_AGAIN, /* nothing: interrupted, or the caller was gone already */
	RECEIVE_ENDED, /* no task carries the filter any more */
	RECEIVE_FAILED,
};

/* A back end: `receive` blocks until a task stops; `answer` lets it go on (false: it was gone). */
struct backend {
	enum receive_state (*receive)(void *self, struct stop *stop, struct err *err);
	bool (*answer)(void *self, const struct stop *stop, enum stop_answer answer, int64_t value);
	/* Still the same call of the same task? Ask between reading its memory and acting on what was read. */
	bool (*still_waiting)(void *self, const struct stop *stop);
	/* Does a stop wait to be received? */
	bool (*pending)(void *self);
	/*
	 * Give the task a copy of our descriptor, under its lowest free number; the call still waits for its answer. That
	 * number, or a negative errno. NULL in a back end that cannot.
	 */
	int (*give)(void *self, const struct stop *stop, int fd, bool close_on_exec);
	void *self;
};
