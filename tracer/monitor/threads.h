/*
 * Private to this room: the threads that stopped lately, with descriptors of their /proc folders. Opening these costs as
 * much as the rest of a notification, so they are kept; a thread id that was given out again is noticed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decode/target.h"
#include "os/procfs.h"
#include "processes.h"

struct thread {
	struct target target;
	struct process *process; /* referenced; NULL when it cannot be kept track of */
	bool busy;               /* a worker has it */
	bool used;
	/* To be forgotten: who executes goes on under its leader's number, and what is known may be of that one. */
	bool stale;
	int umask; /* as last read; holds while `umask_era` is the tree's */
	uint64_t umask_era;
	bool stands; /* rights, standing and plain of the target are known */
	struct rights rights;
	bool told;       /* its namespaces are known from its process, which was looked at just now */
	bool settled;    /* root and namespaces were looked up under target.generation */
	bool never_wait; /* see struct act */
	uint64_t last_use;
	char *root_path; /* owned; behind target.root_path */
};

enum { THREADS_LIMIT = 512, THREADS_WAYS = 4 };

struct threads {
	struct thread entries[THREADS_LIMIT];
	size_t limit; /* as descriptors allow */
	uint64_t clock;
};

void threads_init(struct threads *threads, size_t limit);
/*
 * The slot of `tid`, marked busy: a known one, or a cleared one (`used` false) for the caller to fill. NULL when all
 * slots that it may have are busy; the caller then does without.
 */
struct thread *threads_take(struct threads *threads, pid_t tid);
void threads_give_back(struct thread *thread);
/* Forget everything about a slot. */
void thread_clear(struct thread *thread);
/* The same thread or its successor in an exec, which may have other memory, rights, roots and namespaces. */
void thread_forget(struct thread *thread);
/* Drop what is cached about `tid`, because it executes another program. */
void threads_drop_program(struct threads *threads, pid_t tid);
/* Look up what the thread is: descriptors, process id. False with errno when it is gone or /proc may not be read. */
bool thread_open(struct thread *thread, pid_t tid, struct task_status *status);
/* Still the thread that was opened? */
bool thread_is_current(const struct thread *thread);
/* Root, mounts and pid namespace compared with ours; `generation` is the tree's. */
struct own_context {
	uint64_t mount_namespace, pid_namespace;
	uint64_t root_ino, root_dev;
	uint64_t root_mount;
};
bool own_context_read(struct own_context *own);
/* Compare its rights with ours; `confined`: it may be under rules that cannot be read back. */
void thread_stand(struct thread *thread, const struct rights *own, bool confined);
void thread_settle(struct thread *thread, const struct own_context *own, uint64_t generation);
/* Its root, for the length of one call: who holds another's root keeps what is mounted there in place. */
void thread_open_root(struct thread *thread);
void thread_close_root(struct thread *thread);
