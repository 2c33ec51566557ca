/*
 * Private to this room: what the threads of the monitor share.
 */
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "act/act.h"
#include "monitor/monitor.h"
#include "os/connector.h"
#include "os/notify.h"
#include "os/procfs.h"
#include "processes.h"
#include "services.h"
#include "threads.h"

struct image_hashes;

struct monitor {
	const struct monitor_config *config;
	struct backend backend;
	struct notify notify;
	struct protection protection;
	struct actor actor;
	struct own_context own;
	struct rights rights; /* our own */
	struct performers performers;

	pthread_mutex_t lock; /* everything below, but for what says otherwise */
	struct processes processes;
	struct threads threads;
	struct services services;
	struct record_run_end counted; /* what the run's end record says */
	struct buf scratch;            /* one record at a time */
	struct arena cut;              /* what is left of its texts when secrets are taken out */
	bool store_lost;               /* the ring takes nothing any more */
	int connector;                 /* -1: births come from marks */
	char births[256];              /* why they do */
	bool births_lost;              /* some were: a number may be another process's than we know */
	int exits;                     /* epoll of pidfds, when there is no connector */
	struct image_hashes *hashes;   /* NULL unless asked for */
	struct new_files new_files;

	atomic_ullong generation; /* of the tree's roots and mounts; no lock */
	/* Without the lock: each umask(2) of the tree begins an era, because it may be shared; the first is 1. */
	atomic_ullong umask_era;
	/* One was made without our seeing its end, or a change of roots, mounts, namespaces: then nothing of it is cached. */
	atomic_bool umask_unseen, context_unseen;
	atomic_int idle_workers; /* no lock */
	atomic_int busy_workers; /* with a stop that is not recorded yet; no lock */
	int workers_limit;
	sem_t unpark;              /* posted once for each worker that leaves the park */
	atomic_int parked_workers; /* no lock */
	atomic_int receivers;      /* how many workers may receive at a time; no lock */
	atomic_uint taken;         /* stops that were received so far; no lock */
	atomic_bool watched;       /* the watch looks at the workers; else it sleeps until `watch` is posted; no lock */
	sem_t watch;
	atomic_bool stopping;     /* no lock */
	atomic_bool scribe_alive; /* no lock */
	pid_t agent;
	int wake;                       /* eventfd: something for the main thread */
	int agent_status;               /* of its end; -1 before */
	bool confined;                  /* a process of the tree is under Landlock rules */
	atomic_bool confinement_unseen; /* any of them may be; no lock */
	bool io_uring_used;             /* it was allowed, and asked for: from then on effects may go unseen */
	char failure[256];              /* why the monitor cannot go on */
};

/* recorder.c */
struct record_stamp monitor_stamp(const struct monitor *monitor);
struct record_stamp monitor_stamp_at(const struct monitor *monitor, uint64_t monotonic_ns);
/* Secrets are taken out of `effect`; what replaces them holds until the next record. */
void record_one_effect(struct monitor *monitor, struct effect *effect, struct buf *body);
void record_new_process(struct monitor *monitor, struct process *process);
void record_process_end(struct monitor *monitor, struct process *process, int wait_status, uint64_t monotonic_ns);
/* A process was found in namespaces that no recorded call put it into. */
void record_found_namespaces(struct monitor *monitor, struct process *process, const char *const *names, size_t count);
void record_loss(struct monitor *monitor, enum gap_code code, const struct process *process, const char *syscall,
		 uint64_t count, const char *detail);
void record_run_begin(struct monitor *monitor);
void record_run_finish(struct monitor *monitor, bool complete, const char *reason);

/* births.c: call with the lock held. */
void births_drain(struct monitor *monitor);
/* The process with this number, when its birth tells all that a look at it could; else NULL. */
struct process *births_newborn(struct monitor *monitor, pid_t pid);
struct process *births_first_sight(struct monitor *monitor, int task, pid_t pid, const struct task_status *status);
void births_exits(struct monitor *monitor);
/* A process of the tree ended: record it, forget it. */
void births_end(struct monitor *monitor, struct process *process, int wait_status, uint64_t monotonic_ns);
/*
 * Without the lock: read the namespaces of a process that is seen for the first time, or that changed them, and record what
 * nothing announced. True when they were read just now. `must`: what cannot be read now will not be read later.
 */
bool births_look(struct monitor *monitor, struct process *process, int task, bool must);

/* hold.c: which processes have a thread in our hands. */
/* Before a debugger of the tree attaches: wait until nothing of its target is held, and keep it free for a while. */
void hold_make_way(struct monitor *monitor, const struct stop *stop, const struct decoded *decoded);
/* May a thread of `process` be held to read its result? `held` is what hold_end() wants, once the thread goes on. */
bool hold_begin(struct monitor *monitor, struct process *process, struct process **held);
void hold_end(struct monitor *monitor, struct process *held);

/* worker.c */
bool workers_start(struct monitor *monitor, struct err *err);
void monitor_fail(struct monitor *monitor, const char *why);
void monitor_wake(struct monitor *monitor);

/* start.c: fork the command, take its listener, let it begin. */
struct starting {
	pid_t pid, keeper;
	int reports; /* the keeper's messages */
	int release; /* write one byte: begin */
	int outcome; /* read: end of file when the program runs, else an errno value */
	int listener;
	bool no_new_privs;
};
bool start_command(const struct monitor_config *config, struct starting *starting, struct err *err);
bool start_release(struct starting *starting, struct err *err);

/* images.c */
struct image_hashes *image_hashes_new(void);
/* False when it was not hashed: unreadable, or larger than 1 GiB. */
bool image_hash(struct monitor *monitor, struct decoder *decoder, int task, struct effect_image *image);
