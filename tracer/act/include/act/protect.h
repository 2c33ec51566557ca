/*
 * What the tree may not do to us (tracer.md section 6): signal, trace or limit our processes, and touch the state
 * folder. It narrows what a hostile tree can do during the run; it is not a boundary against the same user outside.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "act/performers.h"
#include "base/bytes.h"
#include "decode/decode.h"
#include "os/stop.h"

struct protection {
	pid_t guardian, monitor, keeper, scribe;
	pid_t guardian_group;                          /* the agent's own process group at its start: the shell's job */
	struct bytes state;                            /* the state folder, absolute, seen from our root */
	uint64_t state_device, state_ino, state_mount; /* what the folder is, however it may be called */
	atomic_bool scoped;     /* a process of the tree is under Landlock, which may limit whom it may signal */
	uint64_t pid_namespace; /* inode of our pid namespace */
	const struct performers *performers;
	const struct rights *rights;    /* our own */
	uint64_t ring_device, ring_ino; /* the memory that records pass through */
};

enum protect_verdict {
	PROTECT_PASS,
	PROTECT_REFUSE,  /* answer with `error` */
	PROTECT_PERFORM, /* a signal to a group that we belong to: send it to the others */
};

enum protect_verdict protect_check(const struct protection *protection, struct path_cache *cache,
				   const struct stop *stop, const struct target *target, const struct decoded *decoded,
				   int *error);

/* Send what kill(2) asked for to every process that it names but ours. Returns 0 or an errno value, as kill would. */
int protect_signal_others(const struct protection *protection, const struct target *target, int64_t pid, int signal);
