/*
 * Arguments that name processes, and what a program is started with.
 */
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "os/memory.h"
#include "os/pids.h"
#include "os/procfs.h"
#include "reading.h"

enum { VECTOR_SCAN_LIMIT = 1 << 20, PAGE = 4096 };

static void set_target(struct reading *reading, int64_t given, pid_t ours)
{
	struct effect_target *target = &reading->effect->target;
	char path[PATH_MAX];

	target->present = true;
	target->pid = given;
	target->ours = ours;
	if (ours <= 0)
		return;
	int task CLEANUP_FD = procfs_task(ours);
	ssize_t length = task < 0 ? -1 : procfs_link(task, "exe", path, sizeof(path));
	if (length >= 0)
		target->executable = arena_copy(reading_arena(reading), (struct bytes){path, (size_t)length});
}

void reading_target(struct reading *reading, int64_t pid)
{
	pid_t ours = pid > 0 && pid <= INT_MAX ? (pid_t)pid : 0;

	if (ours > 0 && !reading->target->same_pids)
		ours = pids_ours(reading->target->task, ours);
	set_target(reading, pid, ours);
}

void read_pid(struct reading *reading, size_t index)
{
	reading_target(reading, (int)reading_arg(reading, index));
}

void read_pidfd(struct reading *reading, size_t index)
{
	int fd = (int)reading_arg(reading, index);
	/* As our /proc shows it: our number already. */
	pid_t pid = procfs_pidfd_target(reading->target->task, fd);

	reading_add_int(reading, reading_name(reading, index), fd);
	if (pid > 0)
		set_target(reading, pid, pid);
}

void read_signal(struct reading *reading, size_t index)
{
	int number = (int)reading_arg(reading, index);
	char text[SIGNAL_NAME_SIZE];
	const char *name = flags_signal_name(number, text);

	if (name)
		reading_add_bytes(reading, reading_name(reading, index),
				  arena_copy(reading_arena(reading), bytes_of(name)));
	else
		reading_add_int(reading, reading_name(reading, index), number);
}

/* Pointers of a vector up to the null pointer: all are counted, the first `limit` kept. -1 when memory ended. */
static int64_t read_pointers(struct reading *reading, uint64_t address, uint64_t *kept, size_t limit)
{
	uint64_t pointers[PAGE / sizeof(uint64_t)];
	int64_t count = 0;

	while (count < VECTOR_SCAN_LIMIT) {
		/* Not beyond the page: the vector may end where memory ends. */
		size_t room = (PAGE - (size_t)(address % PAGE)) / sizeof(uint64_t);
		if (room == 0)
			room = 1;
		if (memory_read(reading->target->memory, address, pointers, room * sizeof(uint64_t)) != 0)
			return -1;
		for (size_t i = 0; i < room; i++, count++) {
			if (pointers[i] == 0)
				return count;
			if ((size_t)count < limit)
				kept[count] = pointers[i];
		}
		address += room * sizeof(uint64_t);
	}
	return count;
}

/*
 * Pages of the task's memory: the strings of a vector lie side by side, or are strewn over a few pages of a heap, and one
 * read serves many.
 */
enum { WINDOWS = 8 };

struct windows {
	size_t next; /* to be replaced */
	struct window {
		uint64_t start;
		bool filled;
	} pages[WINDOWS];
	char data[WINDOWS][PAGE];
};

static const char *windows_page(struct reading *reading, struct windows *windows, uint64_t start)
{
	for (size_t i = 0; i < WINDOWS; i++)
		if (windows->pages[i].filled && windows->pages[i].start == start)
			return windows->data[i];
	size_t place = windows->next++ % WINDOWS;
	bool read = memory_read(reading->target->memory, start, windows->data[place], PAGE) == 0;
	windows->pages[place] = (struct window){start, read};
	return read ? windows->data[place] : NULL;
}

/* The string at `address` when it ends on its page. */
static bool window_string(struct reading *reading, struct windows *windows, uint64_t address, struct bytes *out)
{
	size_t offset = (size_t)(address % PAGE);
	const char *page = windows_page(reading, windows, address - offset);
	const char *end = page ? memchr(page + offset, 0, PAGE - offset) : NULL;

	if (!end)
		return false;
	*out = (struct bytes){page + offset, (size_t)(end - page) - offset};
	return true;
}

/* As much of a vector of strings as a record can hold. */
static struct bytes *read_vector(struct reading *reading, uint64_t address, size_t *kept, uint64_t *total)
{
	struct arena *arena = reading_arena(reading);
	uint64_t *pointers = arena_alloc(arena, VECTOR_COUNT_LIMIT * sizeof(*pointers));
	int64_t count = !pointers || reading->target->memory < 0
			    ? -1
			    : read_pointers(reading, address, pointers, VECTOR_COUNT_LIMIT);

	*kept = 0;
	*total = 0;
	if (count < 0) {
		reading->out->unreadable++;
		return NULL;
	}
	*total = (uint64_t)count;
	size_t limit = count > VECTOR_COUNT_LIMIT ? VECTOR_COUNT_LIMIT : (size_t)count;
	struct bytes *items = arena_alloc(arena, (limit + 1) * sizeof(*items));
	struct windows windows;
	/* Not the pages themselves, which would take longer than to read them. */
	windows.next = 0;
	memset(windows.pages, 0, sizeof(windows.pages));
	size_t used = 0;
	for (size_t i = 0; items && i < limit && used < VECTOR_BYTES_LIMIT; i++) {
		struct bytes text;
		items[i] = window_string(reading, &windows, pointers[i], &text)
			       ? arena_copy(arena, text)
			       : reading_string(reading, pointers[i], STRING_LIMIT);
		if (!items[i].data)
			break;
		used += items[i].size;
		*kept = i + 1;
	}
	return items;
}

void read_argv(struct reading *reading, size_t index)
{
	struct effect *effect = reading->effect;
	uint64_t total;

	/* Linux takes a null pointer for an empty list. */
	effect->has_argv = true;
	if (reading_arg(reading, index) == 0)
		return;
	effect->argv = read_vector(reading, reading_arg(reading, index), &effect->argv_count, &total);
	if (!effect->argv)
		effect->has_argv = false;
	effect->argv_total = total > effect->argv_count ? total : 0;
}

/* Names only: values hold secrets, and a record must not. */
void read_envp(struct reading *reading, size_t index)
{
	size_t kept = 0;
	uint64_t total = 0;

	if (reading_arg(reading, index) == 0)
		return;
	struct arena *arena = reading_arena(reading);
	struct bytes *items = read_vector(reading, reading_arg(reading, index), &kept, &total);
	if (!items)
		return;
	for (size_t i = 0; i < kept; i++) {
		const char *equals = memchr(items[i].data, '=', items[i].size);
		if (equals)
			items[i].size = (size_t)(equals - items[i].data);
		else
			items[i] = arena_format(arena, "(%zu bytes without =)", items[i].size);
	}
	struct effect_value *value = reading_value(reading, "env_names", VALUE_LIST);
	value->list.items = items;
	value->list.count = kept;
	if (total > kept)
		reading_add_uint(reading, "env_total", total);
}
