#include "deep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "location.h"
#include "os/procfs.h"

/* Bounds on what somebody may make us do: levels climbed, names read in all, and the length of what comes of it. */
enum { LEVELS_LIMIT = 4096, NAMES_LIMIT = 100000, DEEP_LIMIT = 1 << 15 };

/* The name of `child` in the directory above it, put in front of the `used` bytes at the end of `text`. */
static bool prepend_name(int above, const struct statx *child, char *text, size_t *used, unsigned *names)
{
	int copy CLEANUP_FD = openat(above, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = copy < 0 ? NULL : fdopendir(copy);
	bool found = false;

	if (!directory)
		return false;
	(void)fd_steal(&copy);
	for (struct dirent *entry; !found && (entry = readdir(directory)) != NULL && (*names)++ < NAMES_LIMIT;) {
		struct statx status;
		size_t length = strlen(entry->d_name);
		if (entry->d_ino != child->stx_ino || strcmp(entry->d_name, ".") == 0 ||
		    strcmp(entry->d_name, "..") == 0)
			continue;
		if (!location_stat(above, entry->d_name, &status) || status.stx_dev_major != child->stx_dev_major ||
		    status.stx_dev_minor != child->stx_dev_minor || *used + length + 1 > DEEP_LIMIT)
			continue;
		*used += length + 1;
		text[DEEP_LIMIT - *used] = '/';
		memcpy(text + DEEP_LIMIT - *used + 1, entry->d_name, length);
		found = true;
	}
	closedir(directory);
	return found;
}

struct bytes deep_path(int directory, struct arena *arena)
{
	char prefix[PATH_MAX];
	struct bytes result = BYTES_NONE;
	char *text = malloc(DEEP_LIMIT);
	size_t used = 0;
	unsigned names = 0;
	int current CLEANUP_FD = openat(directory, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (unsigned level = 0; text && current >= 0 && level < LEVELS_LIMIT; level++) {
		struct statx status;
		ssize_t length = procfs_own_fd(current, prefix, sizeof(prefix));
		if (length >= 0) {
			result = arena_format(arena, "%s%.*s", length == 1 ? "" : prefix, (int)used,
					      text + DEEP_LIMIT - used);
			break;
		}
		int above = openat(current, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (above < 0 || !location_stat(current, "", &status) ||
		    !prepend_name(above, &status, text, &used, &names)) {
			fd_close(&above);
			break;
		}
		fd_close(&current);
		current = above;
	}
	free(text);
	return result;
}

bool path_lies_in(struct path_cache *cache, const struct target *target, const struct path_request *request,
		  uint64_t device, uint64_t ino)
{
	struct location location CLEANUP_LOCATION;
	struct statx status;

	location_find(cache, target, request, NULL, &location);
	if (location.exists && location.status.stx_ino == ino &&
	    makedev(location.status.stx_dev_major, location.status.stx_dev_minor) == device)
		return true;
	int current CLEANUP_FD = location.parent >= 0 ? openat(location.parent, ".", O_PATH | O_CLOEXEC) : -1;
	uint64_t before = 0;
	for (unsigned level = 0; current >= 0 && level < LEVELS_LIMIT && location_stat(current, "", &status); level++) {
		bool here = makedev(status.stx_dev_major, status.stx_dev_minor) == device;
		if (here && status.stx_ino == ino)
			return true;
		/* The root is its own parent; on another file system the folder cannot lie above any more. */
		if (!here || status.stx_ino == before)
			return false;
		before = status.stx_ino;
		int above = openat(current, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		fd_close(&current);
		current = above;
	}
	return false;
}

int path_process_folder(struct path_cache *cache, const struct target *target, const struct path_request *request)
{
	enum { PROC_LEVELS = 8 }; /* /proc/PID/task/TID/... is not deeper */
	struct location location CLEANUP_LOCATION;
	struct statfs about;

	location_find(cache, target, request, NULL, &location);
	int current CLEANUP_FD = location.parent >= 0 ? openat(location.parent, ".", O_PATH | O_CLOEXEC) : -1;
	for (int level = 0; current >= 0 && level < PROC_LEVELS; level++) {
		if (fstatfs(current, &about) != 0 || about.f_type != PROC_SUPER_MAGIC)
			return -1;
		if (faccessat(current, "comm", F_OK, 0) == 0 && faccessat(current, "stat", F_OK, 0) == 0)
			return fd_steal(&current);
		int above = openat(current, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		fd_close(&current);
		current = above;
	}
	return -1;
}
