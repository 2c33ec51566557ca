/*
 * What is done about a stopped call: refuse it, let the kernel make it, or let it and read the result.
 *
 * In two steps, so that the record is written while the task still waits: act_begin() brings about what is known of the
 * result, act_end() lets the task go on.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "act/performers.h"
#include "act/protect.h"
#include "decode/decode.h"
#include "os/capture.h"
#include "os/stop.h"

struct actor {
	const struct backend *backend;
	const struct protection *protection;
	bool io_uring_allowed;
	enum results results;
	const struct rights *rights; /* our own */
	/*
	 * What the tree did that makes acting for it visible: fanotify events say who acted, inotify events come in an
	 * order that we could change, and a lease makes others wait.
	 */
	atomic_bool fanotify, inotify, leases;
	struct performers *performers; /* in other namespaces */
	/*
	 * The kernel drops what a set-user-id or capable program would gain when its tracer lacks CAP_SYS_PTRACE: such an
	 * exec is let go then.
	 */
	bool keeps_privilege;
};

enum act_pending { PENDING_CONTINUE, PENDING_ERROR, PENDING_VALUE, PENDING_RELEASE, PENDING_NOTHING };

struct act {
	/* set by the caller */
	const struct stop *stop;
	const struct target *target;
	struct decoder *decoder;
	struct decoded *decoded;
	int *umask;       /* of the task as it was last read, or -1: the next one who reads it leaves it here */
	bool may_perform; /* the calling thread can carry out orders */
	bool never_wait;  /* the last try to read this thread's result was interrupted: let this one go */
	/* Called while the kernel executes a program, which takes it a while; or NULL. */
	void (*meanwhile)(void *context);
	void *context;

	/* set by act_begin() */
	enum act_pending pending;
	int64_t value;
	struct capture capture;
	bool executed;    /* an exec succeeded; the program is that of `capture.pid` now */
	bool died;        /* the task ended meanwhile; capture.wait_status says how */
	bool restarts;    /* interrupted by us, and made again: the next stop is the same call */
	bool interrupted; /* the call will be made again, or returned EINTR: not known which */
	bool vanished;    /* it was gone before it could be answered */
};

/* Make the calling thread one that can act for others. False: what it is given is verified instead. */
bool act_prepare_thread(void);
/* Choose by the handling and carry it out as far as the result; fills the effects' `how` and `result`. */
void act_begin(const struct actor *actor, struct act *act);
/* Let the task go on. */
void act_end(const struct actor *actor, struct act *act);
/* Answer a call that no row explains with an error. */
void act_refuse(const struct actor *actor, const struct stop *stop, int error);
