/*
 * Who was born to whom, and how they ended (tracer.md section 4). The connector knows; without it, sessions and groups
 * that the tree made tell most of it, and a pidfd tells the end.
 */
#include <errno.h>
#include <limits.h>
#include <linux/types.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "os/procfs.h"
#include "state.h"

/* pidfd information (6.13, exit status since 6.15), which older headers lack. */
struct pidfd_information {
	__u64 mask;
	__u64 cgroup;
	__u32 ids[11];
	__s32 exit_code;
};
_Static_assert(sizeof(struct pidfd_information) == 64, "first version of the kernel's structure");
#define PIDFD_INFORMATION _IOWR(0xff, 11, struct pidfd_information)
enum { PIDFD_INFORMATION_EXIT = 1 << 3 };

/* The first process of every run (record.h). */
enum { AGENT_ID = 1 };

static struct process *add(struct monitor *monitor, pid_t pid, const struct process *parent, enum lineage lineage)
{
	struct process *process = processes_add(&monitor->processes, pid);

	if (!process) {
		record_loss(monitor, GAP_process_limit, NULL, NULL, 1, "a process is not kept track of");
		return NULL;
	}
	process->lineage = lineage;
	/* Rules are inherited, and cannot be read back: who may descend from somebody under rules counts as such. */
	process->confined = parent ? parent->confined : monitor->confined;
	if (parent) {
		process->parent = parent->id;
		/* What the parent changed and was not seen after leaves nothing to compare with. */
		process->namespaces = parent->namespaces;
		process->namespaces.known = parent->namespaces.known && !parent->namespaces_stale;
		process->parent_pid = parent->pid;
		process->session = parent->session;
		process->group = parent->group;
		process_set_executable(process, process_executable(parent));
	}
	return process;
}

/* Without a connector the kernel tells us about the end through a descriptor; it also outlives the process's number. */
static void watch_exit(struct monitor *monitor, struct process *process)
{
	if (monitor->connector >= 0 || monitor->exits < 0)
		return;
	process->pidfd = pidfd_open(process->pid, 0);
	if (process->pidfd < 0)
		return;
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = process};
	if (epoll_ctl(monitor->exits, EPOLL_CTL_ADD, process->pidfd, &event) != 0)
		fd_close(&process->pidfd);
}

/*
 * With CLONE_PARENT a child's parent is its maker's, and rules come from the maker: one that stands beside it. Of a maker
 * whose parent ended it is not known who that is now.
 */
static bool may_be_of_confined(struct monitor *monitor, const struct process *parent)
{
	if (!monitor->confined)
		return false;
	for (size_t i = 0; i < PROCESS_BUCKETS; i++)
		for (struct process *each = monitor->processes.buckets[i]; each; each = each->next) {
			if (!each->confined)
				continue;
			const struct process *of = processes_find(&monitor->processes, each->parent_pid);
			if (!of || of->id != each->parent || of == parent)
				return true;
		}
	return false;
}

static void on_fork(struct monitor *monitor, const struct connector_event *event)
{
	if (event->pid != event->tgid) {
		struct process *process = processes_find(&monitor->processes, event->tgid);
		if (process)
			process->threads++;
		return;
	}
	struct process *parent = processes_find(&monitor->processes, event->parent_tgid);
	if (!parent)
		return;
	struct process *before = processes_find(&monitor->processes, event->pid);
	if (before) /* its number was given out again before its end was told */
		births_end(monitor, before, -1, event->mono_ns);
	bool confined = parent->confined || may_be_of_confined(monitor, parent);
	struct process *process = add(monitor, event->pid, parent, LINEAGE_birth);
	if (!process)
		return;
	process->confined = confined;
	/* What the parent became since then is not what the child was born as. */
	process->told_by_birth = parent->executable && parent->executable_ns < event->mono_ns &&
				 parent->refreshed_ns < event->mono_ns && !parent->refresh &&
				 !atomic_load(&parent->exec_unseen);
	record_new_process(monitor, process);
}

static void on_exit_event(struct monitor *monitor, const struct connector_event *event)
{
	struct process *process = processes_find(&monitor->processes, event->tgid);

	if (!process)
		return;
	if (event->pid == event->tgid) {
		process->leader_exited = true;
		process->leader_status = event->status;
	}
	if (process->threads > 0)
		process->threads--;
	if (process->threads > 0)
		return;
	/* The last thread carries the status of the whole group, unless it merely ended itself after the leader did. */
	int status = event->status == 0 && process->leader_exited ? process->leader_status : event->status;
	births_end(monitor, process, status, event->mono_ns);
}

static void on_exec_event(struct monitor *monitor, const struct connector_event *event)
{
	struct process *process = processes_find(&monitor->processes, event->tgid);
	char path[PATH_MAX];

	if (!process)
		return;
	/* The other threads are ending; the events that say so may come later than this one, and are still counted. */
	process->leader_exited = false;
	/* Seen where it happened, and known by the name that the process itself has for it. The kernel tells us afterwards. */
	if (process->execs_seen > 0) {
		process->execs_seen--;
		return;
	}
	int task CLEANUP_FD = procfs_task(event->tgid);
	ssize_t length = task < 0 ? -1 : procfs_link(task, "exe", path, sizeof(path));
	if (length > 0)
		process_set_executable(process, (struct bytes){path, (size_t)length});
}

/* Among the events that were lost may be those that were waited for, and the end of who had a number before. */
static void note_loss(struct monitor *monitor)
{
	monitor->births_lost = true;
	for (size_t i = 0; i < PROCESS_BUCKETS; i++)
		for (struct process *each = monitor->processes.buckets[i]; each; each = each->next)
			each->execs_seen = 0;
}

void births_drain(struct monitor *monitor)
{
	struct connector_event event;

	while (monitor->connector >= 0 && connector_next(monitor->connector, &event)) {
		switch (event.type) {
		case CONNECTOR_FORK:
			on_fork(monitor, &event);
			break;
		case CONNECTOR_EXIT:
			on_exit_event(monitor, &event);
			break;
		case CONNECTOR_EXEC:
			on_exec_event(monitor, &event);
			break;
		case CONNECTOR_LOST:
			record_loss(monitor, GAP_births_lost, NULL, NULL, 0, "the proc connector overflowed");
			note_loss(monitor);
			break;
		}
	}
}

/*
 * Sessions are exact: they cannot be joined from outside, and survive every double fork. The number of the agent's own
 * session and group is not of the tree, unless the agent made them.
 */
static uint64_t find_parent(struct monitor *monitor, pid_t pid, const struct task_status *status, enum lineage *lineage)
{
	const struct process *parent = processes_find(&monitor->processes, status->ppid);

	*lineage = LINEAGE_parent;
	if (parent)
		return parent->id;
	*lineage = LINEAGE_session;
	uint64_t maker = status->session != pid ? processes_maker(&monitor->processes, status->session) : 0;
	if (maker)
		return maker;
	*lineage = LINEAGE_group;
	maker = status->group != pid ? processes_maker(&monitor->processes, status->group) : 0;
	if (maker)
		return maker;
	/* Only this much is sure: whoever carries the filter descends from the agent. */
	*lineage = LINEAGE_inferred;
	return AGENT_ID;
}

/* See namespaces.h. The effect is the child's, which is where it shows. */
static void settle_namespaces(struct monitor *monitor, struct process *process, const struct namespaces *actual)
{
	const char *names[NAMESPACE_TYPES];
	size_t count = process->seen ? 0 : namespaces_unexpected(&process->namespaces, actual, names);
	struct process *parent = count ? processes_find(&monitor->processes, process->parent_pid) : NULL;

	if (parent && parent->announced_children > 0) {
		parent->announced_children--;
		count = 0;
	}
	process->seen = true;
	process->namespaces = *actual;
	if (count > 0)
		record_found_namespaces(monitor, process, names, count);
}

bool births_look(struct monitor *monitor, struct process *process, int task, bool must)
{
	struct namespaces actual = {0};

	pthread_mutex_lock(&monitor->lock);
	bool newborn = !process->seen;
	bool wanted = newborn || process->namespaces_stale;
	unsigned changes = process->namespaces_changes;
	pthread_mutex_unlock(&monitor->lock);
	if (!wanted)
		return false;
	/* A newborn's children are born where it was; unless a call of it went unseen, that would have changed it. */
	namespaces_read(task, newborn && !atomic_load(&monitor->context_unseen), &actual);
	if (!actual.known && !must)
		return false;
	pthread_mutex_lock(&monitor->lock);
	if (newborn == !process->seen)
		settle_namespaces(monitor, process, &actual);
	/* Another thread of it may have changed them while we read. */
	if (process->namespaces_changes == changes)
		process->namespaces_stale = false;
	pthread_mutex_unlock(&monitor->lock);
	return true;
}

static void look_at_executable(struct process *process, int task)
{
	char path[PATH_MAX];

	if (process->told_by_birth)
		return;
	ssize_t length = procfs_link(task, "exe", path, sizeof(path));
	if (length > 0)
		process_set_executable(process, (struct bytes){path, (size_t)length});
}

struct process *births_newborn(struct monitor *monitor, pid_t pid)
{
	births_drain(monitor);
	struct process *process = monitor->births_lost ? NULL : processes_find(&monitor->processes, pid);
	return process && process->told_by_birth && process->start_ticks == 0 && !process->ended ? process : NULL;
}

struct process *births_first_sight(struct monitor *monitor, int task, pid_t pid, const struct task_status *status)
{
	enum lineage lineage;

	births_drain(monitor);
	struct process *process = processes_find(&monitor->processes, pid);
	/* Two processes with one number, one after the other: the start time tells them apart. */
	if (process && process->start_ticks != 0 && process->start_ticks != status->start_ticks) {
		births_end(monitor, process, -1, clock_monotonic_ns());
		process = NULL;
	}
	bool known = process != NULL;
	if (!process) {
		uint64_t parent = find_parent(monitor, pid, status, &lineage);
		process = add(monitor, pid, NULL, lineage);
		if (!process)
			return NULL;
		process->parent = parent;
		process->parent_pid = status->ppid;
		process->threads = status->threads > 0 ? status->threads : 1;
	}
	process->start_ticks = status->start_ticks;
	process->session = status->session;
	process->group = status->group;
	look_at_executable(process, task);
	if (process->pidfd < 0)
		watch_exit(monitor, process);
	if (!known)
		record_new_process(monitor, process);
	return process;
}

static bool lives_on(void *context, uint64_t user_namespace, uint64_t mount_namespace)
{
	const struct monitor *monitor = context;

	for (size_t i = 0; i < PROCESS_BUCKETS; i++)
		for (const struct process *each = monitor->processes.buckets[i]; each; each = each->next)
			if (each->namespaces_stale ||
			    namespaces_may_be(&each->namespaces, user_namespace, mount_namespace))
				return true;
	return false;
}

void births_end(struct monitor *monitor, struct process *process, int wait_status, uint64_t monotonic_ns)
{
	if (process->ended)
		return;
	process->ended = true;
	record_process_end(monitor, process, wait_status, monotonic_ns);
	processes_remove(&monitor->processes, process);
	/* Whoever acts for the processes of a namespace must not keep its mounts in place when they are gone. */
	performers_end(&monitor->performers, lives_on, monitor);
}

/* A zombie still shows its status in /proc; once its parent has reaped it, the descriptor does. */
static int exit_status(const struct process *process)
{
	struct pidfd_information about = {.mask = PIDFD_INFORMATION_EXIT};
	int task CLEANUP_FD = procfs_task(process->pid);
	int status = task < 0 ? -1 : procfs_exit_status(task);

	if (ioctl(process->pidfd, PIDFD_INFORMATION, &about) == 0 && (about.mask & PIDFD_INFORMATION_EXIT))
		status = about.exit_code;
	return status;
}

void births_exits(struct monitor *monitor)
{
	struct epoll_event events[64];
	int count = monitor->exits < 0 ? 0 : epoll_wait(monitor->exits, events, 64, 0);

	for (int i = 0; i < count; i++) {
		struct process *process = events[i].data.ptr;
		int status = exit_status(process);
		if (status < 0 && process->pid == monitor->agent)
			status = monitor->agent_status;
		(void)epoll_ctl(monitor->exits, EPOLL_CTL_DEL, process->pidfd, NULL);
		births_end(monitor, process, status, clock_monotonic_ns());
	}
}
