/*
 * The processes that act for parts of the tree in other namespaces (specs/PROCESSES.md).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/rights.h"

enum { PERFORMERS_LIMIT = 8 };

struct performer {
	uint64_t user_namespace, mount_namespace; /* inode numbers; 0: a free place */
	struct rights rights;                     /* whose file ids and groups it has */
	atomic_int pid;                           /* 0 when it has ended */
	int socket;
	bool refused; /* it cannot be had: not tried again for these */
	uint64_t last_use;
	pthread_mutex_t lock; /* one order at a time; its holder may use the socket */
};

struct performers {
	pthread_mutex_t lock; /* who stands where */
	uint64_t clock;
	struct performer all[PERFORMERS_LIMIT];
};

void performers_init(struct performers *performers);
/* Is it one of ours? */
bool performers_has(const struct performers *performers, pid_t pid);
/* Does a process of the tree live in these namespaces still? */
typedef bool (*performers_needed)(void *context, uint64_t user_namespace, uint64_t mount_namespace);
/* End all of them, and wait until they are gone: whoever reaps orphans would be left with them. */
void performers_stop(struct performers *performers);
/* End those that nobody needs. */
void performers_end(struct performers *performers, performers_needed needed, void *context);
