/*
 * Private to this room: one worker, which handles one stop at a time.
 */
#pragma once

#include "state.h"

struct worker {
	struct monitor *monitor;
	struct decoder decoder;
	bool rejoined;       /* counted as one that receives: the rest of this stop takes no time */
	bool may_perform;    /* umask and working directory are its own */
	struct buf body;     /* records are encoded here, outside the lock */
	struct thread spare; /* for a stop whose cache slots are all taken */
};

/* Before a wait that is known to be long: somebody else receives meanwhile. */
void workers_hand_over(struct monitor *monitor);
/* Count the caller as one that receives, because it soon will be. False when there are enough. */
bool workers_rejoin(struct monitor *monitor);
/* A call of this kind was let go without a look: what is remembered of threads may be over. */
void worker_note_passed(struct monitor *monitor, const struct syscall_row *row);
/* Explain the stop, act on it, record it, let the task go on. */
void worker_handle(struct worker *worker, const struct stop *stop);
/* Write down the effects of a stop, and what of it could not be read. */
void worker_record(struct worker *worker, const struct stop *stop, struct thread *thread, struct decoded *decoded);
