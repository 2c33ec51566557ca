/*
 * One stop: explain it, act on it, record it, let the task go on.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "os/procfs.h"
#include "worker.h"

void monitor_wake(struct monitor *monitor)
{
	uint64_t one = 1;

	(void)!write(monitor->wake, &one, sizeof(one));
}

void monitor_fail(struct monitor *monitor, const char *why)
{
	if (monitor->failure[0] == 0)
		snprintf(monitor->failure, sizeof(monitor->failure), "%s", why);
	atomic_store(&monitor->stopping, true);
	monitor_wake(monitor);
}

static void lock(struct monitor *monitor)
{
	pthread_mutex_lock(&monitor->lock);
}

static void unlock(struct monitor *monitor)
{
	pthread_mutex_unlock(&monitor->lock);
}

/* A process that ran nothing since its birth is what its birth says: nothing need be looked up. */
static bool identify_newborn(struct monitor *monitor, struct thread *thread, pid_t tid)
{
	lock(monitor);
	struct process *process = births_newborn(monitor, tid);
	if (process)
		process->references++;
	unlock(monitor);
	if (!process)
		return false;
	thread->process = process;
	thread->target.tid = thread->target.pid = tid;
	thread->target.task = procfs_task(tid);
	thread->used = thread->target.task >= 0;
	return thread->used;
}

/* Bind a slot to its thread and process. False when the task is gone or cannot be looked at. */
static bool identify(struct monitor *monitor, struct thread *thread, pid_t tid)
{
	struct task_status status;
	struct target *target = &thread->target;

	if (identify_newborn(monitor, thread, tid))
		return true;
	if (!thread_open(thread, tid, &status))
		return false;
	/* The start time that names a process is its leader's. */
	bool leads = status.tgid == tid;
	int other CLEANUP_FD = leads ? -1 : procfs_task(status.tgid);
	int leader = leads ? target->task : other;
	struct task_status leader_status = status;
	if (!leads && (leader < 0 || !procfs_status(leader, status.tgid, &leader_status)))
		return false;
	lock(monitor);
	struct process *process = births_first_sight(monitor, leader, status.tgid, &leader_status);
	if (process)
		process->references++;
	thread->process = process;
	/* Last: a slot that is only half known must not pass for a known one. */
	thread->used = true;
	unlock(monitor);
	return true;
}

/* Its session, group or program may have changed without our seeing the result. */
static void refresh_process(struct monitor *monitor, struct thread *thread)
{
	struct task_status status;
	struct process *process = thread->process;
	char path[PATH_MAX];

	if (!process || !process->refresh || !procfs_status(thread->target.task, thread->target.tid, &status))
		return;
	ssize_t length = procfs_link(thread->target.task, "exe", path, sizeof(path));
	lock(monitor);
	if (length > 0)
		process_set_executable(process, (struct bytes){path, (size_t)length});
	process->session = status.session;
	process->group = status.group;
	process->refresh = false;
	process->refreshed_ns = clock_monotonic_ns();
	unlock(monitor);
}

/* `must`: nobody looks later. */
static void look_at_namespaces(struct monitor *monitor, struct thread *thread, bool must)
{
	struct target *target = &thread->target;
	struct process *process = thread->process;

	if (!process || !births_look(monitor, process, target->task, must) || target->tid != target->pid)
		return;
	/* What has just been read of the leader need not be read again. */
	lock(monitor);
	thread->told = namespaces_of_names(&process->namespaces, &target->mount_namespace, &target->pid_namespace);
	unlock(monitor);
}

static struct thread *take_thread(struct worker *worker, const struct stop *stop, bool look)
{
	struct monitor *monitor = worker->monitor;

	lock(monitor);
	struct thread *thread = threads_take(&monitor->threads, stop->tid);
	if (!thread) {
		thread = &worker->spare;
		thread_clear(thread);
		thread->busy = true;
	}
	if (thread->used && !thread_is_current(thread))
		thread_clear(thread);
	unlock(monitor);
	if (!thread->used && !identify(monitor, thread, stop->tid))
		return thread;
	refresh_process(monitor, thread);
	if (look)
		look_at_namespaces(monitor, thread, true);
	if (atomic_load(&monitor->context_unseen) || (thread->process && atomic_load(&thread->process->exec_unseen)))
		thread_forget(thread);
	if (thread->target.memory < 0)
		thread->target.memory = openat(thread->target.task, "mem", O_RDONLY | O_CLOEXEC);
	uint64_t generation = atomic_load(&monitor->generation);
	if (!thread->settled || thread->target.generation != generation)
		thread_settle(thread, &monitor->own, generation);
	thread_open_root(thread);
	return thread;
}

static void give_thread_back(struct worker *worker, struct thread *thread)
{
	thread_close_root(thread);
	lock(worker->monitor);
	if (!thread->used || thread == &worker->spare)
		thread_clear(thread);
	threads_give_back(thread);
	unlock(worker->monitor);
}

/* Calls after which names may mean something else: roots, mounts and namespaces. */
static bool changes_context(const struct decoded *decoded)
{
	enum effect_kind kind = decoded->count > 0 ? decoded->effects->kind : EFFECT_file_read;

	return kind == EFFECT_mount_change || kind == EFFECT_priv_root || kind == EFFECT_priv_namespace;
}

/* The program that the exec put in place, before its first instruction. */
static void after_exec(struct worker *worker, struct thread *thread, const struct act *act, struct decoded *decoded)
{
	struct monitor *monitor = worker->monitor;
	struct target target = thread->target;
	/* A thread that is not the leader goes on under the leader's number. */
	bool renamed = act->capture.pid != target.tid;
	int leader CLEANUP_FD = renamed ? procfs_task(act->capture.pid) : -1;
	int task = renamed ? leader : target.task;

	if (task < 0)
		return;
	uint64_t stack = 0;
	unsigned word = 0;
	(void)capture_stack(&act->capture, &stack, &word);
	target.task = task;
	target.tid = target.pid = act->capture.pid;
	target.memory = -1; /* what is cached is of the old program */
	decode_exec(&worker->decoder, &target, stack, word, decoded);
	struct effect_image *image = &decoded->effects->image;
	if (monitor->hashes && !image_hash(monitor, &worker->decoder, task, image))
		decode_note(&worker->decoder, decoded->effects,
			    "the image was not hashed: it cannot be read, or exceeds 1 GiB");
	lock(monitor);
	if (thread->process && image->object.path.data) {
		process_set_executable(thread->process, image->object.path);
		thread->process->executable_ns = clock_monotonic_ns();
		thread->process->execs_seen++;
		thread->process->refresh = false;
	}
	threads_drop_program(&monitor->threads, act->capture.pid);
	unlock(monitor);
}

/*
 * The caller still stands: whatever another thread is looked up to be meanwhile, it may be something else when the call
 * is over. (An exec gives the caller the number of its leader, of whom something may be remembered.)
 */
static void note_unseen(struct monitor *monitor, struct thread *thread, bool context, bool exec)
{
	if (monitor->actor.results != RESULTS_perform)
		return;
	if (context)
		atomic_store(&monitor->context_unseen, true);
	if (exec && thread->process)
		atomic_store(&thread->process->exec_unseen, true);
}

void worker_note_passed(struct monitor *monitor, const struct syscall_row *row)
{
	if (syscall_number(row) == SYS_landlock_restrict_self)
		atomic_store(&monitor->confinement_unseen, true);
	atomic_store(&monitor->umask_unseen, true);
	atomic_store(&monitor->context_unseen, true);
}

/* A recorded call changes where the process is, or where its next child will be: no news when it shows. */
static void note_namespaces(struct monitor *monitor, struct thread *thread, const struct decoded *decoded)
{
	lock(monitor);
	if (thread->process && strcmp(decoded->effects->syscall, "clone") == 0)
		thread->process->announced_children++;
	else if (thread->process) {
		thread->process->namespaces_stale = true;
		thread->process->namespaces_changes++;
	}
	unlock(monitor);
}

/* The calls after which a thread may have other rights, or be confined. */
static bool changes_rights(const struct decoded *decoded)
{
	switch (decoded->count > 0 ? decoded->effects->kind : EFFECT_file_read) {
	case EFFECT_priv_ids:
	case EFFECT_priv_caps:
	case EFFECT_priv_namespace:
	case EFFECT_priv_root:
	case EFFECT_priv_landlock:
		return true;
	default:
		return false;
	}
}

/* What a process of the tree can see of how calls are made. */
static void note_watchers(struct actor *actor, const struct syscall_row *row, const struct stop *stop)
{
	switch (syscall_number(row)) {
	case SYS_fanotify_init:
		atomic_store(&actor->fanotify, true);
		break;
#ifdef SYS_inotify_init
	case SYS_inotify_init:
#endif
	case SYS_inotify_init1:
		atomic_store(&actor->inotify, true);
		break;
	case SYS_fcntl:
		if ((unsigned)stop->args[1] == F_SETLEASE)
			atomic_store(&actor->leases, true);
		break;
	default:
		break;
	}
}

/* The caller still stands, so whoever shares its umask cannot rely on the new one yet. */
static void note_umask(struct monitor *monitor, const struct act *act)
{
	if (act->pending == PENDING_CONTINUE)
		atomic_store(&monitor->umask_unseen, true);
	atomic_fetch_add(&monitor->umask_era, 1);
}

/* What is known before the act about whether we may do it ourselves. */
static void prepare_act(struct worker *worker, struct thread *thread, const struct syscall_row *row, struct act *act)
{
	struct monitor *monitor = worker->monitor;
	enum handling handling = act->decoded->handling;

	act->may_perform = worker->may_perform;
	uint64_t era = atomic_load(&monitor->umask_era);
	if (thread->umask_era != era || atomic_load(&monitor->umask_unseen))
		thread->umask = -1;
	thread->umask_era = era;
	act->umask = &thread->umask;
	note_watchers(&monitor->actor, row, act->stop);
	if (syscall_number(row) == SYS_landlock_restrict_self) {
		lock(monitor);
		monitor->confined = true;
		if (thread->process)
			thread->process->confined = true;
		unlock(monitor);
	}
	/* Of an exec only one that finds nothing is answered by us. */
	bool acts = handling == HANDLING_perform || handling == HANDLING_connect || handling == HANDLING_bind ||
		    (handling == HANDLING_exec && !act->decoded->facts.exists);
	if (acts && monitor->actor.results == RESULTS_perform) {
		bool confined = thread->process ? thread->process->confined : monitor->confined;
		confined = confined || atomic_load(&monitor->confinement_unseen);
		thread_stand(thread, &monitor->rights, confined);
	}
}

/* What may wait is let go, and who is let go is not held. */
static bool wants_result(const struct decoded *decoded)
{
	return (decoded->count > 0 || decoded->row->special == SPECIAL_state) && decoded->waits == WAITS_NEVER &&
	       decoded->handling != HANDLING_let_go && decoded->handling != HANDLING_refuse &&
	       decoded->handling != HANDLING_connect;
}

/* Everything but the answer: decode, act as far as the result, record. False when the task is gone. */
static bool explain(struct worker *worker, struct thread *thread, const struct syscall_row *row, struct act *act,
		    struct process **held)
{
	struct monitor *monitor = worker->monitor;
	struct decoded *decoded = act->decoded;

	(void)decode(&worker->decoder, &thread->target, act->stop, row, decoded);
	/* Valid now means: this very task waited all the time, so what was read was its own. */
	/* Gone: a call that nobody answered was never made, so nothing is missing. */
	if (!monitor->backend.still_waiting(monitor->backend.self, act->stop)) {
		decoded_release(decoded);
		return false;
	}
	bool context = changes_context(decoded);
	if (decoded->count > 0 && decoded->effects->kind == EFFECT_priv_landlock)
		atomic_store(&monitor->protection.scoped, true);
	bool exec = row->handling == HANDLING_exec;
	/* Marks change what lineage rests on; an exec whose end is not seen may change the program. */
	if ((row->special == SPECIAL_mark || (exec && decoded->facts.exists)) && thread->process)
		thread->process->refresh = true;
	if (row->effect == EFFECT_proc_trace && syscall_number(row) == SYS_ptrace)
		hold_make_way(monitor, act->stop, decoded);
	prepare_act(worker, thread, row, act);
	act->never_wait = thread->never_wait;
	if (wants_result(decoded) && !hold_begin(monitor, thread->process, held))
		act->never_wait = true;
	thread->never_wait = false;
	/* The kernel loads the program, from a file system that may be of the tree itself. */
	if (exec && decoded->facts.exists && !decoded->facts.local)
		workers_hand_over(monitor);
	act_begin(&monitor->actor, act);
	if (exec)
		look_at_namespaces(monitor, thread, true);
	decoded_release(decoded);
	/* One that is answered with an error by us is never made: a search along PATH leaves everything as it was. */
	exec = exec && act->pending != PENDING_ERROR;
	if (exec && thread->process)
		thread->process->refresh = true;
	if (changes_rights(decoded))
		thread->stands = false;
	if (act->pending == PENDING_CONTINUE)
		note_unseen(monitor, thread, context, exec);
	if (syscall_number(row) == SYS_umask)
		note_umask(monitor, act);
	if (act->executed)
		after_exec(worker, thread, act, decoded);
	/* The same call stops again, and is let go then: it is one effect. */
	if (act->restarts) {
		thread->never_wait = true;
		decoded->count = 0;
	}
	if (act->interrupted) {
		thread->never_wait = true;
		decoded->effects->note = BYTES("interrupted: it was made again, or returned EINTR");
	}
	worker_record(worker, act->stop, thread, decoded);
	if (decoded->count > 0 && decoded->effects->kind == EFFECT_priv_namespace)
		note_namespaces(monitor, thread, decoded);
	if (context) {
		atomic_fetch_add(&monitor->generation, 1);
		thread->settled = false;
	}
	/* Whatever becomes of an exec, this memory may be another program's from here on. */
	if (exec) {
		lock(monitor);
		/* The executing thread takes its group's number. */
		threads_drop_program(&monitor->threads, act->stop->tid);
		threads_drop_program(&monitor->threads, thread->target.pid);
		unlock(monitor);
		fd_close(&thread->target.memory);
	}
	return true;
}

/* Calls outside the table: foreign architectures and numbers that it does not know. Refused, and recorded as that. */
static void refuse_foreign(struct worker *worker, const struct stop *stop)
{
	struct monitor *monitor = worker->monitor;
	struct thread *thread = take_thread(worker, stop, true);
	struct effect effect = {
	    .kind = EFFECT_kernel_other,
	    .how = HOW_performed,
	    .values = {{.name = "arch", .type = VALUE_UINT, .unsigned_number = stop->arch},
		       {.name = "number", .type = VALUE_INT, .number = stop->number}},
	    .value_count = 2,
	    .result = {.state = RESULT_REFUSED, .error = ENOSYS, .by = BY_UNSUPPORTED},
	    .note = BYTES("a system call of another architecture, or one newer than this program"),
	};
	struct decoded decoded = {.effects = &effect, .count = 1};

	arena_reset(&worker->decoder.arena);
	worker_record(worker, stop, thread, &decoded);
	give_thread_back(worker, thread);
	act_refuse(&monitor->actor, stop, ENOSYS);
}

/* /proc may not be read: observing never harms the agent, but it is said. */
static void pass_unexplained(struct monitor *monitor, const struct stop *stop, const struct syscall_row *row)
{
	bool refused = row->handling == HANDLING_refuse;
	enum stop_answer answer = refused ? ANSWER_ERROR : ANSWER_CONTINUE;

	if (!monitor->backend.answer(monitor->backend.self, stop, answer, ENOSYS))
		return;
	if (!refused)
		worker_note_passed(monitor, row);
	lock(monitor);
	record_loss(monitor, GAP_vanished, NULL, row->name, 1, "the task could not be looked at");
	unlock(monitor);
}

struct looking {
	struct monitor *monitor;
	struct thread *thread;
};

static void look_meanwhile(void *context)
{
	struct looking *looking = context;

	look_at_namespaces(looking->monitor, looking->thread, false);
}

void worker_handle(struct worker *worker, const struct stop *stop)
{
	struct monitor *monitor = worker->monitor;
	const struct syscall_row *row = syscall_row_of(stop->arch, stop->number);

	if (!row) {
		refuse_foreign(worker, stop);
		return;
	}
	/* An exec leaves its caller where it is: there is time to look while the kernel reads the program. */
	bool exec = row->handling == HANDLING_exec;
	struct thread *thread = take_thread(worker, stop, !exec);
	struct decoded decoded = {0};
	struct looking looking = {monitor, thread};
	struct act act = {
	    .stop = stop,
	    .target = &thread->target,
	    .decoder = &worker->decoder,
	    .decoded = &decoded,
	    .meanwhile = exec ? look_meanwhile : NULL,
	    .context = &looking,
	};
	struct process *held = NULL;
	bool explained = false;

	if (thread->used)
		explained = explain(worker, thread, row, &act, &held);
	else
		pass_unexplained(monitor, stop, row);
	/* The slot first: once the task goes on, its next call may be another worker's. */
	give_thread_back(worker, thread);
	/* The task may run in our place and stop again before we are back: no third worker has to be brought in for that. */
	worker->rejoined = workers_rejoin(monitor);
	if (explained)
		act_end(&monitor->actor, &act);
	hold_end(monitor, held);
}
