/*
 * Reading the result of a call from the task itself: PTRACE_SEIZE and PTRACE_INTERRUPT while it waits in its
 * notification, let the kernel make the call, look at the return register at the trap, detach. The task is traced for
 * that one call only, so that debuggers inside the tree keep working.
 *
 * ptrace belongs to the thread that seized: begin and finish must be called by the same thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum capture_outcome {
	CAPTURE_RETURNED, /* `value` is what the call returned (negative errno on failure); the task still stands */
	CAPTURE_EXECUTED, /* exec succeeded; the task stands before its first instruction */
	CAPTURE_RESTARTS, /* interrupted: it will be made again, or return EINTR; the task still stands */
	CAPTURE_DIED,     /* the task is gone; `wait_status` says how, if it was ours to reap */
	CAPTURE_STOPPED,  /* something else stopped it first; result unknown */
};

struct capture {
	pid_t tid;
	pid_t pid; /* after an exec: the thread group, under which the task goes on */
	int64_t value;
	int wait_status;
	int stop_signal; /* a job control stop was in effect at the trap; else 0 */
};

/* Seize and interrupt; false with errno when the task cannot be traced (a debugger has it, or it is not dumpable). */
bool capture_begin(struct capture *capture, pid_t tid, bool for_exec);
/*
 * Wait for the outcome; the answer to the notification must have been sent. After CAPTURE_RETURNED, CAPTURE_EXECUTED and
 * CAPTURE_RESTARTS the task stands still, to be looked at, until capture_release(); else it is on its way.
 */
enum capture_outcome capture_finish(struct capture *capture);
/* After CAPTURE_EXECUTED: the new program's stack pointer, and the size of its pointers. */
bool capture_stack(const struct capture *capture, uint64_t *pointer, unsigned *word);
/* Undo capture_begin() when the call was not let go after all. */
void capture_abort(struct capture *capture);
/* Let the task go on. */
void capture_release(struct capture *capture);
