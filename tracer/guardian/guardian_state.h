/*
 * Private to this room: what the guardian knows.
 */
#pragma once

#include <limits.h>
#include <signal.h>

#include "base/message.h"
#include "base/ring.h"
#include "canary.h"
#include "describe.h"
#include "guardian/guardian.h"
#include "os/filter.h"

struct guardian {
	const struct guardian_config *config;
	struct guardian_outcome *outcome;
	char program[PATH_MAX];
	struct filter filter;
	struct ring *ring;
	struct description about;
	sigset_t original_mask;
	struct sigaction original_child_action;
	int signals;
	struct canary canary;
	pid_t monitor, scribe;
	int monitor_socket, scribe_socket;
	int lifeline[2]; /* from the monitor to the scribe: ends with the monitor */
	pid_t agent;
	bool agent_ended, tree_ended, monitor_gone, scribe_gone;
	struct message message; /* the last one received */
};

/* start.c: from nothing to a running command. False when it did not come to that. */
bool guardian_start(struct guardian *guardian, struct err *err);
