/*
 * Private to this room: telling a signal to the whole job from one to the guardian alone.
 *
 * kill(2) does not say which it was. A signal to the shell's job reaches the agent by itself, and relaying it would make
 * two of one: agents that end at the second Ctrl-C would end at the first. So a process without any other purpose sits
 * in the same process group; what it hears too was meant for the group.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct canary {
	pid_t pid;   /* -1: none; then nothing counts as meant for the group */
	int reports; /* what it heard */
};

/* Start it, in the caller's process group. Signals must be blocked already. A failure leaves it without a pid. */
void canary_start(struct canary *canary);
/* Did it hear this signal of this sender as well? Waits a moment for its report. */
bool canary_heard(struct canary *canary, int signal, pid_t sender);
void canary_end(struct canary *canary);
