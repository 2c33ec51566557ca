#include "location.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "file_systems.h"
#include "os/procfs.h"

void location_close(struct location *location)
{
	if (location->entry != location->parent)
		fd_close(&location->entry);
	fd_close(&location->parent);
	fd_close(&location->reached);
}

bool location_stat(int directory, const char *name, struct statx *status)
{
	const unsigned mask = STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_INO | STATX_BTIME | STATX_MNT_ID;
	/* Never wait for a server: what it last said is good enough for a record. */
	const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC | (*name ? 0 : AT_EMPTY_PATH);

	return statx(directory, name, flags, mask, status) == 0;
}

int path_base(const struct target *target, int base)
{
	char name[32] = "cwd";

	if (base != PATH_BASE_CWD)
		snprintf(name, sizeof(name), "fd/%d", base);
	int fd = openat(target->task, name, O_PATH | O_CLOEXEC);
	/* A descriptor that is not open: the kernel will say EBADF, /proc says ENOENT. */
	if (fd < 0 && base != PATH_BASE_CWD && errno == ENOENT)
		errno = EBADF;
	return fd;
}

static int open_directory(const struct target *target, int start, const char *path)
{
	struct open_how how = {
	    .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
	    .resolve = RESOLVE_NO_MAGICLINKS | (target->same_root ? 0 : RESOLVE_IN_ROOT),
	};

	return (int)syscall(SYS_openat2, start, path, &how, sizeof(how));
}

/* "a/b/c/" as "a/b" and "c", and whether slashes follow; false when the end is not a plain name, or a name is too long. */
static bool split(struct bytes path, struct bytes *directory, char name[NAME_MAX + 1], bool *slashes)
{
	size_t given = path.size;
	while (path.size > 0 && path.data[path.size - 1] == '/')
		path.size--;
	*slashes = path.size < given;
	const char *slash = memrchr(path.data, '/', path.size);
	const char *last = slash ? slash + 1 : path.data;
	size_t length = path.size - (size_t)(last - path.data);
	size_t before = slash ? (size_t)(slash - path.data) : 0;

	if (length == 0 || length > NAME_MAX || before >= PATH_MAX)
		return false;
	memcpy(name, last, length);
	name[length] = 0;
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return false;
	if (slash && before == 0)
		before = 1;
	*directory = (struct bytes){path.data, before};
	return true;
}

struct bytes location_directory(struct bytes path)
{
	char name[NAME_MAX + 1];
	struct bytes directory;
	bool slashes;

	return split(path, &directory, name, &slashes) ? directory : BYTES_NONE;
}

bool location_stat_directory(struct location *location)
{
	if (!location->has_directory)
		location->has_directory = location_stat(location->parent, "", &location->directory);
	return location->has_directory;
}

/* A link at the end that names a neighbour, as libx.so.1 -> libx.so.1.2 does. */
static bool follow_neighbour(struct location *location)
{
	for (int links = 0; S_ISLNK(location->status.stx_mode); links++) {
		char text[NAME_MAX + 2];
		ssize_t length = readlinkat(location->parent, location->name, text, sizeof(text));
		if (links > 8 || length <= 0 || length > NAME_MAX || memchr(text, '/', (size_t)length))
			return false;
		text[length] = 0;
		if (strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
			return false;
		memcpy(location->name, text, (size_t)length + 1);
		if (!location_stat(location->parent, location->name, &location->status)) {
			location->exists = false;
			location->error = errno;
			return errno == ENOENT;
		}
	}
	return true;
}

/* There names such as /proc/self depend on who looks, and the way here may have led through one. */
static bool on_procfs(struct path_cache *cache, const struct target *target, struct location *location)
{
	if (location->exists)
		return file_system_of(cache, target, location->parent, location->name, &location->status).procfs;
	return !location_stat_directory(location) ||
	       file_system_of(cache, target, location->parent, "", &location->directory).procfs;
}

/* The directory that this very call named before, if it is the same. */
static int open_near(struct path_cache *cache, const struct path_request *request, struct bytes directory,
		     bool absolute, struct location *location)
{
	const struct location_near *near = location_near(cache);

	if (!near->place || near->place->directory < 0 || near->absolute != absolute ||
	    (!absolute && near->base != request->base) || !bytes_equal(near->directory, directory))
		return -1;
	location->view = near->view;
	return fcntl(near->place->directory, F_DUPFD_CLOEXEC, 0);
}

static int open_parent(const struct target *target, struct bytes directory, bool absolute, int *start)
{
	char text[PATH_MAX];

	if (directory.size == 0)
		return fd_steal(start);
	memcpy(text, directory.data, directory.size);
	text[directory.size] = 0;
	return open_directory(target, absolute ? target->root : *start, text);
}

/*
 * A search along a list of folders asks for many names below folders that are not there: how far such a path leads, from
 * its end. False when it needs the careful walk, as when a link leads nowhere.
 */
static bool find_reached(struct path_cache *cache, const struct target *target, int start, struct bytes path,
			 struct arena *arena, struct location *location)
{
	bool absolute = path.data[0] == '/';
	struct bytes prefix = location_directory(path);
	char name[NAME_MAX + 1];
	struct statx status;

	do {
		bool slashes;
		if (!split(prefix, &prefix, name, &slashes) || prefix.size == 0)
			return false;
		char text[PATH_MAX];
		memcpy(text, prefix.data, prefix.size);
		text[prefix.size] = 0;
		location->reached = open_directory(target, absolute ? target->root : start, text);
		if (location->reached < 0 && errno != ENOENT)
			return false;
	} while (location->reached < 0);
	if (!location_stat(location->reached, "", &status) ||
	    file_system_of(cache, target, location->reached, "", &status).procfs ||
	    location_stat(location->reached, name, &status) || errno != ENOENT)
		return false;
	const char *rest = path.data + prefix.size;
	size_t size = path.size - prefix.size;
	for (; size > 0 && *rest == '/'; size--)
		rest++;
	while (size > 0 && rest[size - 1] == '/')
		size--;
	location->error = ENOENT;
	if (arena)
		location->rest = arena_copy(arena, (struct bytes){rest, size});
	if (!location->rest.data)
		fd_close(&location->reached);
	return true;
}

/* The common case: two or three calls. False when it needs the careful walk. */
static bool find_quickly(struct path_cache *cache, const struct target *target, int *start,
			 const struct path_request *request, struct arena *arena, struct location *location)
{
	struct bytes directory;

	if (!split(request->path, &directory, location->name, &location->slash))
		return false;
	bool absolute = request->path.data[0] == '/';
	/* Relative to a directory inside another root: RESOLVE_IN_ROOT would take that directory for the root. */
	if (!target->same_root && !absolute)
		return false;
	location->parent = open_near(cache, request, directory, absolute, location);
	if (location->parent < 0) {
		if (!absolute && (*start = path_base(target, request->base)) < 0)
			return false;
		location->parent = open_parent(target, directory, absolute, start);
	}
	if (location->parent < 0 && errno == ENOENT &&
	    find_reached(cache, target, *start, request->path, arena, location))
		return true;
	if (location->parent < 0)
		return false;
	location->exists = location_stat(location->parent, location->name, &location->status);
	location->error = location->exists ? 0 : errno;
	if (!location->exists && errno != ENOENT)
		return false;
	if (on_procfs(cache, target, location))
		return false;
	bool follow = request->follow || location->slash;
	if (!location->exists || !follow || !S_ISLNK(location->status.stx_mode))
		return true;
	location->entry = location->parent;
	memcpy(location->link, location->name, sizeof(location->link));
	return follow_neighbour(location);
}

static void find_base(const struct target *target, const struct path_request *request, struct location *location)
{
	if (!request->empty_is_base) {
		location->error = ENOENT;
		return;
	}
	location->parent = path_base(target, request->base);
	location->exists = location->parent >= 0 && location_stat(location->parent, "", &location->status);
	location->error = location->exists ? 0 : errno;
}

void location_find(struct path_cache *cache, const struct target *target, const struct path_request *request,
		   struct arena *arena, struct location *location)
{
	*location = LOCATION_NONE;
	if (request->path.size == 0) {
		find_base(target, request, location);
		return;
	}
	int start CLEANUP_FD = -1;
	if (find_quickly(cache, target, &start, request, arena, location))
		return;
	fd_close(&location->reached);
	struct location quick = *location;
	if (request->path.data[0] != '/' && start < 0)
		start = path_base(target, request->base);
	if (request->path.data[0] != '/' && start < 0) {
		*location = LOCATION_NONE;
		location->error = errno;
	} else {
		location_walk(target, fd_steal(&start), request->path, request->follow, arena, location);
	}
	/* The link's own entry is known by now, and stays so wherever it leads. */
	location->slash = quick.slash;
	location->entry = quick.entry;
	memcpy(location->link, quick.link, sizeof(location->link));
	if (quick.parent != quick.entry)
		fd_close(&quick.parent);
}
