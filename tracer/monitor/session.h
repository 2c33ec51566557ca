/*
 * Private to this room: the main thread's state.
 */
#pragma once

#include <poll.h>

#include "state.h"

/* What the main thread waits for, in the order of its poll set. */
enum wait_for { WAIT_KEEPER, WAIT_GUARDIAN, WAIT_CONNECTOR, WAIT_LISTENER, WAIT_EXITS, WAIT_WAKE, WAIT_SCRIBE, WAITS };

struct session {
	struct monitor *monitor;
	struct starting starting;
	struct pollfd waits[WAITS];
	int scribe; /* pidfd */
	bool agent_ended, detached, ended;
	bool births_rest;       /* they were drained just now */
	bool tree_was_ended;    /* by us */
	const char *why;        /* the run is incomplete because of this */
	uint64_t alive_note_ns; /* when to say who is still alive; 0: not */
};

/* begin.c: everything up to the command's first instruction. False with err->exit_status when it did not come to that. */
bool session_begin(struct session *session, struct err *err);
