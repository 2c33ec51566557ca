/*
 * Options of mounts, as mount(2) and fsconfig(2) take them. Only those of specs/mount-options.def are kept: the others may
 * be passwords, or pieces of one that has a comma in it.
 */
#include <limits.h>
#include <linux/mount.h>
#include <string.h>

#include "reading.h"

static const char *const recorded[] = {
#define MOUNT_OPTION(name) #name,
#include "mount-options.def"
#undef MOUNT_OPTION
};

static bool is_recorded(struct bytes name)
{
	for (size_t i = 0; i < sizeof(recorded) / sizeof(recorded[0]); i++)
		if (bytes_equal(name, bytes_of(recorded[i])))
			return true;
	return false;
}

/* Up to a comma; overlay takes one behind a backslash for part of the value. */
static size_t option_size(struct bytes text)
{
	size_t size = 0;

	while (size < text.size && text.data[size] != ',')
		size += text.data[size] == '\\' && size + 1 < text.size ? 2 : 1;
	return size;
}

void read_mount_data(struct reading *reading, size_t index)
{
	struct bytes text = BYTES_NONE;
	uint64_t others = 0;

	if (reading_arg(reading, index) != 0)
		text = reading_string(reading, reading_arg(reading, index), PATH_MAX);
	char *kept = text.size ? arena_alloc(reading_arena(reading), text.size) : NULL;
	size_t used = 0;
	while (kept && text.size > 0) {
		size_t size = option_size(text);
		const char *equals = memchr(text.data, '=', size);
		if (is_recorded((struct bytes){text.data, equals ? (size_t)(equals - text.data) : size})) {
			if (used > 0)
				kept[used++] = ',';
			memcpy(kept + used, text.data, size);
			used += size;
		} else {
			others++;
		}
		size_t taken = size < text.size ? size + 1 : size;
		text = (struct bytes){text.data + taken, text.size - taken};
	}
	if (used > 0)
		reading_add_bytes(reading, reading_name(reading, index), (struct bytes){kept, used});
	if (others > 0)
		reading_add_uint(reading, "data_others", others);
}

void read_mount_option(struct reading *reading, size_t index)
{
	enum { COMMAND = 1 };
	if ((uint32_t)reading_arg(reading, COMMAND) != FSCONFIG_SET_STRING || reading_arg(reading, index) == 0 ||
	    reading_arg(reading, index - 1) == 0)
		return;
	struct bytes name = reading_string(reading, reading_arg(reading, index - 1), NAME_MAX);
	if (name.data && is_recorded(name))
		reading_add_bytes(reading, reading_name(reading, index),
				  reading_string(reading, reading_arg(reading, index), PATH_MAX));
}
