/*
 * From what a stop was found to be to its records: who did it, when, and what needs no record of its own.
 */
#include <string.h>

#include "worker.h"

static void fill_process(const struct monitor *monitor, const struct stop *stop, const struct thread *thread,
			 struct effect *effect)
{
	effect->stamp = monitor_stamp_at(monitor, stop->received_ns);
	effect->process.tid = stop->tid;
	effect->process.pid = thread->used ? thread->target.pid : stop->tid;
}

/* Under the lock: names that another event may replace, copied where they outlive it. */
static void fill_identity(struct monitor *monitor, struct worker *worker, const struct thread *thread,
			  struct decoded *decoded)
{
	struct process *process = thread->process;
	struct bytes executable = BYTES_NONE;

	if (process)
		executable = arena_copy(&worker->decoder.arena, process_executable(process));
	for (size_t i = 0; i < decoded->count; i++) {
		struct effect *effect = &decoded->effects[i];
		effect->process.id = process ? process->id : 0;
		effect->process.executable = executable;
		services_settle(&monitor->services, process ? namespaces_network(&process->namespaces) : 0, effect);
		if (!effect->target.present)
			continue;
		struct process *whom = processes_find(&monitor->processes, effect->target.ours);
		/* Born a moment ago, and not told of yet. */
		if (!whom) {
			births_drain(monitor);
			whom = processes_find(&monitor->processes, effect->target.ours);
		}
		if (whom)
			effect->target.id = whom->id;
	}
}

/* Names that a process asked a name server for are remembered, and said beside its later connections: never as a fact. */
static void remember_names(struct process *process, struct worker *worker, struct decoded *decoded)
{
	for (size_t i = 0; i < decoded->count; i++) {
		struct effect *effect = &decoded->effects[i];
		for (size_t v = 0; decoded->dns && v < effect->value_count; v++) {
			const struct effect_value *value = &effect->values[v];
			if (value->type != VALUE_LIST || strcmp(value->name, "dns_questions") != 0 ||
			    value->list.count == 0)
				continue;
			size_t size = value->list.items[0].size;
			size = size < sizeof(process->dns) - 1 ? size : sizeof(process->dns) - 1;
			memcpy(process->dns, value->list.items[0].data, size);
			process->dns[size] = 0;
		}
		if (effect->kind == EFFECT_net_connect && process->dns[0] && effect->peer.port != 53 &&
		    !effect->note.data)
			effect->note =
			    arena_format(&worker->decoder.arena, "asked a name server before: %s", process->dns);
	}
}

/* True when this read needs no record of its own. */
static bool coalesced(struct monitor *monitor, struct process *process, const struct effect *effect)
{
	if (effect->kind != EFFECT_file_read || monitor->config->lens == LENS_all || !process)
		return false;
	if (effect->result.state != RESULT_UNKNOWN || !effect->object.has_inode || effect->delegated.data)
		return false;
	return !read_set_add(&process->reads, &monitor->new_files, &effect->object);
}

void worker_record(struct worker *worker, const struct stop *stop, struct thread *thread, struct decoded *decoded)
{
	struct monitor *monitor = worker->monitor;

	for (size_t i = 0; i < decoded->count; i++)
		fill_process(monitor, stop, thread, &decoded->effects[i]);
	pthread_mutex_lock(&monitor->lock);
	fill_identity(monitor, worker, thread, decoded);
	if (thread->process)
		remember_names(thread->process, worker, decoded);
	for (size_t i = 0; i < decoded->count; i++)
		new_files_note(&monitor->new_files, &decoded->effects[i]);
	for (size_t i = 0; i < decoded->count; i++)
		if (!coalesced(monitor, thread->process, &decoded->effects[i]))
			record_one_effect(monitor, &decoded->effects[i], &worker->body);
	const struct effect *first = decoded->count > 0 ? decoded->effects : NULL;
	if (first && first->kind == EFFECT_kernel_io_uring && first->result.state != RESULT_REFUSED &&
	    !monitor->io_uring_used) {
		monitor->io_uring_used = true;
		record_loss(monitor, GAP_io_uring, thread->process, first->syscall, 0, "its effects are not seen");
	}
	/* Also when no effect came of it: what could not be read may have been one. */
	if (decoded->unreadable)
		record_loss(monitor, GAP_memory, thread->process, decoded->effects->syscall, decoded->unreadable,
			    "arguments could not be read");
	pthread_mutex_unlock(&monitor->lock);
}
