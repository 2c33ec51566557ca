/*
 * One stopped task as the decoder sees it. The descriptors belong to the monitor, which caches them per thread and
 * checks that they are still about the task that stopped.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "os/rights.h"

struct target {
	pid_t tid, pid;
	int task;                    /* O_PATH of /proc/TID */
	int memory;                  /* /proc/TID/mem, or -1: not readable by us */
	const struct rights *rights; /* its own; NULL when they could not be read */
	enum rights_standing standing;
	bool confined;            /* it may be under Landlock rules, which cannot be read back */
	bool plain;               /* same credentials, user namespace and confinement as ours: we may act for it */
	bool same_root;           /* root directory and mount namespace are the monitor's own */
	bool same_pids;           /* pid namespace is the monitor's own: numbers mean the same */
	bool same_mounts;         /* mount namespace is the monitor's own */
	int root;                 /* O_PATH of its root directory; AT_FDCWD when same_root */
	struct bytes root_path;   /* where that root lies, seen from ours */
	uint64_t mount_namespace; /* inode number; 0 when unknown */
	uint64_t pid_namespace;   /* inode number of the namespace that its own pids are of */
	uint64_t generation;      /* of the tree's mounts and roots; caches made under another one are void */
};
