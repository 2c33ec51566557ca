/*
 * Descriptors of another task, shared with it: what is done through the copy is done to the task's own open file.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A copy of descriptor `fd` from the table of thread `tid` of process `pid`; -1 with errno when there is none, it may not
 * be had, or it is not known whether the thread has a table of its own.
 */
int descriptor_copy(pid_t tid, pid_t pid, int fd);

/* A socket that must not make us wait. */
struct unblocked {
	uint64_t cookie; /* the kernel's name of the socket */
	bool ours;       /* it blocks; O_NONBLOCK was set by us, for this moment only */
};

/*
 * Make a shared socket non-blocking until unblock_end(), which must follow. Whoever does this to one socket at the same
 * time shares in it, so that nobody takes our O_NONBLOCK for the agent's. False when it cannot be done.
 */
bool unblock_begin(int socket, struct unblocked *unblocked);
/* Take back what was set, and nothing else: other flags may have changed meanwhile. */
void unblock_end(int socket, const struct unblocked *unblocked);
