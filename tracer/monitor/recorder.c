/*
 * Everything that the monitor writes down, in the order in which it is written. Callers hold the lock.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "ledger/withhold.h"
#include "state.h"

struct record_stamp monitor_stamp_at(const struct monitor *monitor, uint64_t monotonic_ns)
{
	uint64_t start = monitor->config->start_mono_ns;

	return (struct record_stamp){
	    .mono_ns = monotonic_ns > start ? monotonic_ns - start : 0,
	    .realtime_ns = clock_realtime_ns(),
	    .lane = LANE_kernel,
	    .class = monitor->config->class,
	};
}

struct record_stamp monitor_stamp(const struct monitor *monitor)
{
	return monitor_stamp_at(monitor, clock_monotonic_ns());
}

static bool scribe_is_alive(void *context)
{
	struct monitor *monitor = context;

	return atomic_load(&monitor->scribe_alive);
}

static void put(struct monitor *monitor, const struct record_head *head, const struct buf *body)
{
	if (monitor->store_lost)
		return;
	if (ring_put(monitor->config->ring, (struct bytes){(const char *)head, sizeof(*head)}, buf_bytes(body),
		     scribe_is_alive, monitor))
		return;
	/* Nothing can be kept any more: the run must not look fine. */
	monitor->store_lost = true;
	monitor_fail(monitor, "records can no longer be stored");
}

/* In front of their record, which nobody can come before: the lock is held. */
static void put_with(struct monitor *monitor, const struct record_head *head, const struct buf *body,
		     struct record_blobs *blobs)
{
	const struct record_head blob = {.type = RECORD_ENTRY_blob};

	for (size_t i = 0; i < blobs->count; i++)
		put(monitor, &blob, &blobs->items[i].bytes);
	put(monitor, head, body);
}

/* A record that is made and put while the lock is held. */
#define PUT(monitor, encoder, value)                                 \
	do {                                                         \
		struct record_head head_ = {0};                      \
		buf_reset(&(monitor)->scratch);                      \
		if (encoder(&(monitor)->scratch, &head_, (value)))   \
			put((monitor), &head_, &(monitor)->scratch); \
	} while (0)

/* Where texts without their secrets go. */
static struct arena *fresh_arena(struct monitor *monitor)
{
	arena_reset(&monitor->cut);
	return &monitor->cut;
}

void record_one_effect(struct monitor *monitor, struct effect *effect, struct buf *body)
{
	struct record_blobs blobs CLEANUP_BLOBS = {.count = 0};
	struct record_head head = {0};

	withhold_effect(monitor->config->redactor, fresh_arena(monitor), effect);
	buf_reset(body);
	if (!record_effect(body, &head, effect, &blobs)) {
		record_loss(monitor, GAP_record_too_long, NULL, effect->syscall, 1, "no memory for a record");
		return;
	}
	monitor->counted.effects++;
	monitor->counted.by_kind[effect->kind]++;
	monitor->counted.by_how[effect->how]++;
	monitor->counted.by_state[effect->result.state]++;
	put_with(monitor, &head, body, &blobs);
}

void record_new_process(struct monitor *monitor, struct process *process)
{
	struct record_process record = {
	    .stamp = monitor_stamp(monitor),
	    .id = process->id,
	    .parent = process->parent,
	    .pid = process->pid,
	    .parent_pid = process->parent_pid,
	    .session = process->session,
	    .group = process->group,
	    .start_ticks = process->start_ticks,
	    .lineage = process->lineage,
	    .executable = process_executable(process),
	};

	monitor->counted.processes++;
	withhold_process(monitor->config->redactor, fresh_arena(monitor), &record);
	PUT(monitor, record_process, &record);
}

static void put_reads(struct monitor *monitor, struct record_reads *record, struct record_reads_item *items)
{
	record->withheld = 0;
	withhold_reads(monitor->config->redactor, fresh_arena(monitor), record, items);
	PUT(monitor, record_reads, record);
}

/* Reads that were let go without a record of their own: how many, of what. In pieces that fit a record. */
static void record_read_counts(struct monitor *monitor, struct process *process)
{
	enum { PIECE = 200 };
	struct record_reads_item items[PIECE];
	struct record_reads record = {
	    .stamp = monitor_stamp(monitor),
	    .process = process->id,
	    .pid = process->pid,
	    .items = items,
	    .total_files = process->reads.used,
	    .total_reads = process->reads.total,
	};

	if (process->reads.total == process->reads.used)
		return;
	for (size_t i = 0; i < process->reads.capacity; i++) {
		const struct read_entry *entry = &process->reads.entries[i];
		if (entry->count < 2)
			continue;
		items[record.count++] = (struct record_reads_item){
		    .path = {entry->path, entry->path_size},
		    .dev_major = entry->dev_major,
		    .dev_minor = entry->dev_minor,
		    .ino = entry->ino,
		    .count = entry->count,
		};
		if (record.count == PIECE) {
			put_reads(monitor, &record, items);
			record.count = 0;
		}
	}
	if (record.count > 0)
		put_reads(monitor, &record, items);
}

void record_process_end(struct monitor *monitor, struct process *process, int wait_status, uint64_t monotonic_ns)
{
	struct record_stamp stamp = monitor_stamp_at(monitor, monotonic_ns);
	bool known = wait_status >= 0;
	struct effect effect = {
	    .kind = EFFECT_proc_exit,
	    .how = HOW_verified,
	    .stamp = stamp,
	    .process = {process->id, process->pid, process->pid, process_executable(process)},
	    .has_status = true,
	    .status_code = known && WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1,
	    .status_signal = known && WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : -1,
	    .status_core = known && WIFSIGNALED(wait_status) && WCOREDUMP(wait_status),
	    .result = {.state = RESULT_OK},
	};

	if (!known) {
		effect.how = HOW_observed;
		effect.result.state = RESULT_UNKNOWN;
	}
	record_read_counts(monitor, process);
	record_one_effect(monitor, &effect, &monitor->scratch);
}

void record_found_namespaces(struct monitor *monitor, struct process *process, const char *const *names, size_t count)
{
	struct record_stamp stamp = monitor_stamp(monitor);
	struct effect effect = {
	    .kind = EFFECT_priv_namespace,
	    .how = HOW_verified,
	    .stamp = stamp,
	    .process = {process->id, process->pid, process->pid, process_executable(process)},
	    .has_flags = true,
	    .flag_count = count,
	    .result = {.state = RESULT_OK},
	    .note = BYTES("found in namespaces of its own when first seen: made by clone3(2)"),
	};

	for (size_t i = 0; i < count; i++)
		effect.flags[i] = names[i];
	record_one_effect(monitor, &effect, &monitor->scratch);
}

void record_loss(struct monitor *monitor, enum gap_code code, const struct process *process, const char *syscall,
		 uint64_t count, const char *detail)
{
	struct record_gap record = {
	    .stamp = monitor_stamp(monitor),
	    .code = code,
	    .process = process ? process->id : 0,
	    .pid = process ? process->pid : 0,
	    .count = count,
	    .syscall = syscall,
	    .detail = bytes_of(detail),
	};

	monitor->counted.gaps++;
	PUT(monitor, record_gap, &record);
}

void record_run_begin(struct monitor *monitor)
{
	withhold_run_start(monitor->config->redactor, fresh_arena(monitor), monitor->config->run_start);
	struct record_blobs blobs CLEANUP_BLOBS = {.count = 0};
	struct record_head head = {0};

	buf_reset(&monitor->scratch);
	if (record_run_start(&monitor->scratch, &head, monitor->config->run_start, &blobs))
		put_with(monitor, &head, &monitor->scratch, &blobs);
}

void record_run_finish(struct monitor *monitor, bool complete, const char *reason)
{
	monitor->counted.stamp = monitor_stamp(monitor);
	monitor->counted.complete = complete;
	monitor->counted.reason = bytes_of(reason);
	PUT(monitor, record_run_end, &monitor->counted);
}
