#include "processes.h"

#include <stdlib.h>
#include <string.h>

#include "base/fd.h"

static struct process **bucket(struct processes *processes, pid_t pid)
{
	return &processes->buckets[(unsigned)pid % PROCESS_BUCKETS];
}

struct process *processes_find(struct processes *processes, pid_t pid)
{
	for (struct process *process = *bucket(processes, pid); process; process = process->next)
		if (process->pid == pid)
			return process;
	return NULL;
}

struct process *processes_add(struct processes *processes, pid_t pid)
{
	if (processes->count >= PROCESSES_LIMIT)
		return NULL;
	struct process *process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	*process = (struct process){
	    .id = ++processes->last_id,
	    .pid = pid,
	    .references = 1,
	    .threads = 1,
	    .pidfd = -1,
	    .next = *bucket(processes, pid),
	};
	*bucket(processes, pid) = process;
	processes->count++;
	processes->total++;
	return process;
}

void processes_remove(struct processes *processes, struct process *process)
{
	for (struct process **link = bucket(processes, process->pid); *link; link = &(*link)->next) {
		if (*link != process)
			continue;
		*link = process->next;
		process->next = NULL;
		processes->count--;
		processes->ended[(unsigned)process->pid % ENDED_BUCKETS] = (struct ended){process->pid, process->id};
		process_unref(process);
		return;
	}
}

uint64_t processes_maker(struct processes *processes, pid_t number)
{
	const struct process *process = number > 0 ? processes_find(processes, number) : NULL;
	const struct ended *ended = &processes->ended[(unsigned)number % ENDED_BUCKETS];

	if (process)
		return process->id;
	return number > 0 && ended->pid == number ? ended->id : 0;
}

void process_unref(struct process *process)
{
	if (--process->references > 0)
		return;
	fd_close(&process->pidfd);
	read_set_free(&process->reads);
	free(process->executable);
	free(process);
}

void process_set_executable(struct process *process, struct bytes executable)
{
	char *copy = malloc(executable.size + 1);

	if (!copy || !executable.data) {
		free(copy);
		return;
	}
	memcpy(copy, executable.data, executable.size);
	copy[executable.size] = 0;
	free(process->executable);
	process->executable = copy;
	process->executable_size = executable.size;
}

struct bytes process_executable(const struct process *process)
{
	return (struct bytes){process->executable, process->executable_size};
}
