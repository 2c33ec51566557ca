/*
 * Mounts and handles by which the state folder could be reached under another name, or under none.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "act/protect.h"
#include "base/fd.h"
#include "kernel_constants.h"
#include "os/memory.h"
#include "os/procfs.h"
#include "protect_mount.h"

/* The kernel reads one page of mount data, and as much of one fsconfig value. */
enum { OPTIONS_LIMIT = 4096 };

struct place {
	const struct protection *protection;
	struct path_cache *cache;
	const struct target *target;
};

/* The folder, something in it, or something above it: all of these would give another way in. */
static bool touches_state(const struct place *place, const char *path, bool above_too)
{
	struct path_request request = {.base = PATH_BASE_CWD, .path = bytes_of(path), .follow = true};
	const struct protection *protection = place->protection;

	if (path_lies_in(place->cache, place->target, &request, protection->state_device, protection->state_ino))
		return true;
	if (!above_too)
		return false;
	char *memory = malloc(2 * PATH_MAX);
	if (!memory)
		return true;
	struct arena arena = {.data = memory, .capacity = 2 * PATH_MAX};
	struct effect_object object;
	struct path_facts facts;
	path_resolve(place->cache, place->target, &request, &arena, &object, &facts);
	struct bytes seen = object.host_path.data ? object.host_path : object.path;
	bool above = seen.data && bytes_path_below(protection->state, seen);
	free(memory);
	return above;
}

/* Layers that are written to. Lower layers are only read, and whole systems are built on lowerdir=/. */
static bool is_written_layer(const char *key, size_t size)
{
	static const char *const keys[] = {"upperdir", "workdir"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strlen(keys[i]) == size && memcmp(keys[i], key, size) == 0)
			return true;
	return false;
}

/* "a=b,upperdir=/x,..."; a comma or backslash in a name is escaped by a backslash. */
static bool options_touch_state(const struct place *place, char *options)
{
	char *out = options;
	char *start = options;

	for (const char *in = options;; in++) {
		if (*in == '\\' && in[1]) {
			*out++ = *++in;
			continue;
		}
		char c = *in;
		*out++ = c == ',' ? 0 : c;
		if (c != ',' && c != 0)
			continue;
		const char *equals = strchr(start, '=');
		if (equals && is_written_layer(start, (size_t)(equals - start)) &&
		    touches_state(place, equals + 1, true))
			return true;
		if (c == 0)
			return false;
		start = out;
	}
}

static bool read_text(const struct target *target, uint64_t address, char text[OPTIONS_LIMIT])
{
	return address != 0 && target->memory >= 0 &&
	       memory_read_string(target->memory, address, text, OPTIONS_LIMIT) >= 0;
}

static bool value_touches_state(const struct place *place, const struct stop *stop)
{
	char key[OPTIONS_LIMIT], value[OPTIONS_LIMIT];

	if (!read_text(place->target, stop->args[2], key) || !is_written_layer(key, strlen(key)))
		return false;
	switch ((unsigned)stop->args[1]) {
	case FSCONFIG_SET_STRING:
	case FSCONFIG_SET_PATH:
	case FSCONFIG_SET_PATH_EMPTY:
		return read_text(place->target, stop->args[3], value) && touches_state(place, value, true);
	case FSCONFIG_SET_FD:
		snprintf(value, sizeof(value), "/proc/self/fd/%d", (int)stop->args[4]);
		return touches_state(place, value, true);
	default:
		return false;
	}
}

bool protect_mount_reaches_state(const struct protection *protection, struct path_cache *cache, const struct stop *stop,
				 const struct target *target, const struct effect *effect)
{
	const struct place place = {protection, cache, target};
	char text[OPTIONS_LIMIT];

	if (effect->kind != EFFECT_mount_change)
		return false;
	if (stop->number == SYS_fsconfig)
		return value_touches_state(&place, stop);
	if (stop->number != SYS_mount)
		return false;
	/* A bind mount of the folder, or of something in it, would be the first step around all the rest. */
	if (read_text(target, stop->args[0], text) && text[0] && touches_state(&place, text, false))
		return true;
	return read_text(target, stop->args[4], text) && options_touch_state(&place, text);
}

bool protect_handle_reaches_state(const struct protection *protection, const struct stop *stop,
				  const struct target *target, const struct decoded *decoded)
{
	union {
		struct file_handle handle;
		char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} copy;
	char path[PATH_MAX];

	if (stop->number != SYS_open_by_handle_at || decoded->facts.device != protection->state_device)
		return false;
	bool writes = (stop->args[2] & (O_ACCMODE | O_TRUNC)) != 0;
	if (target->memory < 0 || memory_read(target->memory, stop->args[1], &copy, sizeof(struct file_handle)) != 0 ||
	    copy.handle.handle_bytes > MAX_HANDLE_SZ ||
	    memory_read(target->memory, stop->args[1] + sizeof(struct file_handle), copy.handle.f_handle,
			copy.handle.handle_bytes) != 0)
		return false; /* the kernel will say so too */
	int folder CLEANUP_FD = openat(AT_FDCWD, protection->state.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int object CLEANUP_FD = folder < 0 ? -1 : open_by_handle_at(folder, &copy.handle, O_PATH | O_CLOEXEC);
	/* What we may not, the task may not either, unless it has other rights: then it writes nothing here by handle. */
	if (object < 0)
		return writes && errno != ESTALE && !protect_has_our_rights(protection, target);
	ssize_t length = procfs_own_fd(object, path, sizeof(path));
	return length < 0 || bytes_path_below((struct bytes){path, (size_t)length}, protection->state);
}
