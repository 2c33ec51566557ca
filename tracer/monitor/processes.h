/*
 * Private to this room: the processes of the tree, by pid, and what is remembered about each. Guarded by the state lock.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "ledger/record.h"
#include "namespaces.h"
#include "read_set.h"

struct process {
	uint64_t id, parent;
	pid_t pid, parent_pid, session, group;
	uint64_t start_ticks; /* 0 until it was looked up */
	enum lineage lineage;
	unsigned references;
	unsigned threads; /* alive, as far as births tell */
	bool leader_exited;
	int leader_status;
	bool ended;
	unsigned captures;       /* threads that a worker holds to read a result */
	uint64_t free_until_ns;  /* somebody is about to trace it: no thread may be held until then */
	bool refresh;            /* its session or group may have changed */
	atomic_bool exec_unseen; /* it may have executed a program without our seeing it happen; no lock */
	int pidfd;               /* watched for the exit when there is no connector; -1 otherwise */
	char *executable;        /* owned */
	size_t executable_size;
	uint64_t executable_ns;       /* when it was learned at the stop of an exec; CLOCK_MONOTONIC */
	unsigned execs_seen;          /* stopped at, and not yet told of by the connector, which comes later */
	uint64_t refreshed_ns;        /* when program, session and group were looked up last; CLOCK_MONOTONIC */
	bool told_by_birth;           /* program, session and group are those that its parent had then */
	struct namespaces namespaces; /* its own; before it was seen, what its parent said of its children */
	bool confined;                /* one of its threads, or an ancestor, put itself under Landlock rules */
	bool seen;                    /* at least one of its calls stopped */
	bool namespaces_stale;        /* it changed them: that was an effect of its own */
	unsigned namespaces_changes;  /* how often it did */
	unsigned announced_children;  /* whom it put into other namespaces by a clone(2) that was recorded */
	struct read_set reads;
	char dns[256];        /* the last names that it asked for; NUL-terminated, escaped by nobody */
	struct process *next; /* in its bucket */
};

enum { PROCESS_BUCKETS = 1024, PROCESSES_LIMIT = 65536, ENDED_BUCKETS = 8192 };

/* Who had this number last: orphans of a session may be seen long after its maker ended. */
struct ended {
	pid_t pid;
	uint64_t id;
};

struct processes {
	struct process *buckets[PROCESS_BUCKETS];
	struct ended ended[ENDED_BUCKETS]; /* by pid; the later one stays */
	uint64_t last_id;
	size_t count;
	uint64_t total;
};

/* The living process with this pid, or NULL. */
struct process *processes_find(struct processes *processes, pid_t pid);
/* A new one; NULL when out of memory or past the limit. The table holds one reference. */
struct process *processes_add(struct processes *processes, pid_t pid);
/* Take it out of the table and drop the table's reference. */
void processes_remove(struct processes *processes, struct process *process);
/*
 * The id of the process that made this session or process group, alive or not; 0 when it is none of the tree. Its number
 * is not given out again while the session or group has a member.
 */
uint64_t processes_maker(struct processes *processes, pid_t number);
void process_unref(struct process *process);
void process_set_executable(struct process *process, struct bytes executable);
struct bytes process_executable(const struct process *process);
