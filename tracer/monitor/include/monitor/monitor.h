/*
 * The monitor: the process that reads the agent's memory, answers the kernel and writes the records. No network, no key.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/redact.h"
#include "base/ring.h"
#include "ledger/record.h"
#include "os/filter.h"
#include "os/table.h"

enum monitor_births { BIRTHS_CONNECTOR, BIRTHS_MARKS };

struct monitor_config {
	const char *program; /* absolute or relative path to execute; resolved already */
	char *const *argv;   /* of the command; argv[0] as the user gave it */
	char *const *environment;
	const struct filter *filter;
	enum lens lens;
	enum results results;
	bool hash_images;
	bool io_uring_allowed;
	const struct redactor *redactor; /* of what is recorded */
	struct ring *ring;
	int guardian_socket;
	int lifeline; /* to be held until the end, by the monitor alone */
	pid_t guardian, scribe, guardian_group;
	const char *state;                             /* the state folder, absolute */
	const sigset_t *original_mask;                 /* what the agent gets back */
	const struct sigaction *original_child_action; /* and what it was told to do about SIGCHLD */
	uint64_t start_mono_ns;                        /* the run's time zero */
	enum record_class class;                       /* of what it records */
	struct record_run_start *run_start;            /* filled by the guardian but for what the monitor finds out */
};

/* The monitor's whole life; call in its own process, right after fork. Returns the exit status. */
int monitor_main(const struct monitor_config *config);
