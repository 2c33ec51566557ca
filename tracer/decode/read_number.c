/*
 * Arguments that are numbers, times or lists of numbers.
 */
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <utime.h>

#include "base/clock.h"
#include "reading.h"

enum { ID_LIST_LIMIT = 256 };

void read_int(struct reading *reading, size_t index)
{
	reading_add_int(reading, reading_name(reading, index), (int)reading_arg(reading, index));
}

void read_uint(struct reading *reading, size_t index)
{
	reading_add_uint(reading, reading_name(reading, index), (unsigned)reading_arg(reading, index));
}

void read_long(struct reading *reading, size_t index)
{
	reading_add_int(reading, reading_name(reading, index), (int64_t)reading_arg(reading, index));
}

void read_size(struct reading *reading, size_t index)
{
	reading_add_uint(reading, reading_name(reading, index), reading_arg(reading, index));
}

void read_id(struct reading *reading, size_t index)
{
	uint32_t id = (uint32_t)reading_arg(reading, index);

	if (id != UINT32_MAX)
		reading_add_uint(reading, reading_name(reading, index), id);
}

void read_id_list(struct reading *reading, size_t index)
{
	struct arena *arena = reading_arena(reading);
	uint64_t count = (uint32_t)reading_arg(reading, index - 1);

	if (count > ID_LIST_LIMIT)
		count = ID_LIST_LIMIT;
	uint32_t *ids = arena_alloc(arena, (size_t)count * sizeof(*ids) + 1);
	int64_t *items = arena_alloc(arena, (size_t)count * sizeof(*items) + 1);
	if (!ids || !items ||
	    (count > 0 && !reading_memory(reading, reading_arg(reading, index), ids, (size_t)count * sizeof(*ids))))
		return;
	for (size_t i = 0; i < count; i++)
		items[i] = ids[i];
	struct effect_value *value = reading_value(reading, reading_name(reading, index), VALUE_INT_LIST);
	value->numbers.items = items;
	value->numbers.count = (size_t)count;
}

/* Seconds and nanoseconds as a record's time; special values of utimensat(2) by name. */
static void add_time(struct reading *reading, const char *name, int64_t seconds, int64_t nanoseconds)
{
	char text[31];

	if (nanoseconds == UTIME_NOW || nanoseconds == UTIME_OMIT) {
		reading_add_text(reading, name, nanoseconds == UTIME_NOW ? "UTIME_NOW" : "UTIME_OMIT");
		return;
	}
	/* Years that the format cannot hold stand as seconds. */
	if (seconds < 0 || seconds > 9000000000 || nanoseconds < 0 || nanoseconds > 999999999) {
		reading_add_int(reading, name, seconds);
		return;
	}
	clock_rfc3339(seconds * 1000000000 + nanoseconds, text);
	reading_add_bytes(reading, name, arena_copy(reading_arena(reading), bytes_of(text)));
}

/* Both times as the call has them; none given means now. False when there is nothing more to say. */
static bool read_pair(struct reading *reading, uint64_t address, void *times, size_t size)
{
	if (address != 0)
		return reading_memory(reading, address, times, size);
	add_time(reading, "atime", 0, UTIME_NOW);
	add_time(reading, "mtime", 0, UTIME_NOW);
	return false;
}

/* For whoever makes the call; a part that is not one becomes what utimensat(2) refuses as well. */
static void keep_times(struct reading *reading, size_t which, int64_t seconds, int64_t nanoseconds)
{
	reading->out->has_times = true;
	reading->out->times[which] = (struct timespec){.tv_sec = seconds, .tv_nsec = nanoseconds};
}

void read_times(struct reading *reading, size_t index)
{
	struct timespec times[2];
	uint64_t address = reading_arg(reading, index);

	if (!read_pair(reading, address, times, sizeof(times)))
		return;
	for (size_t i = 0; i < 2; i++) {
		add_time(reading, i == 0 ? "atime" : "mtime", times[i].tv_sec, times[i].tv_nsec);
		keep_times(reading, i, times[i].tv_sec, times[i].tv_nsec);
	}
}

void read_timevals(struct reading *reading, size_t index)
{
	struct timeval times[2];
	uint64_t address = reading_arg(reading, index);

	if (!read_pair(reading, address, times, sizeof(times)))
		return;
	for (size_t i = 0; i < 2; i++) {
		int64_t microseconds = times[i].tv_usec;
		bool sane = microseconds >= 0 && microseconds < 1000000;
		add_time(reading, i == 0 ? "atime" : "mtime", times[i].tv_sec, sane ? microseconds * 1000 : -1);
		keep_times(reading, i, times[i].tv_sec, sane ? microseconds * 1000 : -1);
	}
}

void read_utimbuf(struct reading *reading, size_t index)
{
	struct utimbuf times;
	uint64_t address = reading_arg(reading, index);

	if (!read_pair(reading, address, &times, sizeof(times)))
		return;
	add_time(reading, "atime", times.actime, 0);
	add_time(reading, "mtime", times.modtime, 0);
	keep_times(reading, 0, times.actime, 0);
	keep_times(reading, 1, times.modtime, 0);
}
