/*
 * A task has one tracer. While a debugger of the tree attaches to a process, none of its threads may be in our hands, or
 * the debugger would be told EPERM that natively it is not.
 */
#include <poll.h>
#include <sys/ptrace.h>

#include "base/clock.h"
#include "base/fd.h"
#include "state.h"

/* How long a process stays free after somebody was about to trace it, and how long we wait for it to be free. */
enum { WAY_NS = 100000000, PATIENCE_MS = 50 };

void hold_make_way(struct monitor *monitor, const struct stop *stop, const struct decoded *decoded)
{
	struct task_status status;
	long request = (long)stop->args[0];

	if (decoded->count == 0 || (request != PTRACE_ATTACH && request != PTRACE_SEIZE))
		return;
	int task CLEANUP_FD = procfs_task(decoded->effects->target.ours);
	if (task < 0 || !procfs_status(task, 0, &status))
		return;
	for (int waited = 0; waited < PATIENCE_MS; waited++) {
		pthread_mutex_lock(&monitor->lock);
		struct process *process = processes_find(&monitor->processes, status.tgid);
		if (process)
			process->free_until_ns = clock_monotonic_ns() + WAY_NS;
		bool held = process && process->captures > 0;
		pthread_mutex_unlock(&monitor->lock);
		if (!held)
			return;
		(void)poll(NULL, 0, 1);
	}
}

bool hold_begin(struct monitor *monitor, struct process *process, struct process **held)
{
	*held = NULL;
	if (!process)
		return true;
	pthread_mutex_lock(&monitor->lock);
	bool may = process->free_until_ns == 0 || clock_monotonic_ns() > process->free_until_ns;
	if (may) {
		process->captures++;
		process->references++;
		*held = process;
	}
	pthread_mutex_unlock(&monitor->lock);
	return may;
}

void hold_end(struct monitor *monitor, struct process *held)
{
	if (!held)
		return;
	pthread_mutex_lock(&monitor->lock);
	held->captures--;
	process_unref(held);
	pthread_mutex_unlock(&monitor->lock);
}
