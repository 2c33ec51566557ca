#include "location.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/procfs.h"

/* As the kernel's MAXSYMLINKS. */
enum { SYMLINK_LIMIT = 40 };

struct walk {
	const struct target *target;
	int current;                /* O_PATH of the directory reached */
	char pending[2 * PATH_MAX]; /* what is still to be walked; a component stays in it until it was passed */
	unsigned links;
	unsigned retries; /* because somebody exchanges links for something else */
	bool through_proc;
};

static int open_root(const struct target *target)
{
	if (target->same_root)
		return open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return openat(target->root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static bool at_root(const struct walk *walk)
{
	struct statx here, root;
	int fd CLEANUP_FD = open_root(walk->target);

	return fd >= 0 && location_stat(walk->current, "", &here) && location_stat(fd, "", &root) &&
	       here.stx_ino == root.stx_ino && here.stx_dev_major == root.stx_dev_major &&
	       here.stx_dev_minor == root.stx_dev_minor && here.stx_mnt_id == root.stx_mnt_id;
}

/* Put a link's text in front of what is still to be walked: slashes at the end, or a name behind one. */
static int push_text(struct walk *walk, const char *text, const char *rest)
{
	char joined[sizeof(walk->pending)];
	int length = snprintf(joined, sizeof(joined), "%s%s", text, rest);

	if (length < 0 || (size_t)length >= sizeof(joined))
		return ENAMETOOLONG;
	if (++walk->links > SYMLINK_LIMIT)
		return ELOOP;
	memcpy(walk->pending, joined, (size_t)length + 1);
	return 0;
}

static bool on_procfs(int fd)
{
	struct statfs about;

	return fstatfs(fd, &about) == 0 && about.f_type == PROC_SUPER_MAGIC;
}

/*
 * /proc/self and /proc/thread-self name whoever looks; the task is who has to be named. Its folder in our own /proc serves
 * whichever procfs this is: in that of another pid namespace it has another number.
 */
static int own_folder(const struct walk *walk, const char *name)
{
	bool thread = strcmp(name, "thread-self") == 0;

	if ((!thread && strcmp(name, "self") != 0) || !on_procfs(walk->current))
		return -1;
	return thread ? fcntl(walk->target->task, F_DUPFD_CLOEXEC, 0) : procfs_task(walk->target->pid);
}

/* A link of procfs that leads to an object rather than to a name (fd/N, exe, cwd, root). */
static bool is_magic_link(const struct walk *walk, const char *name)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, walk->current, name, &how, sizeof(how));

	if (fd >= 0) {
		close(fd);
		return false;
	}
	return errno == ELOOP && on_procfs(walk->current);
}

/* On to `next`, or not if that is no descriptor; `rest` of what is pending is what remains. */
static int step_into(struct walk *walk, int next, const char *rest)
{
	if (next < 0)
		return errno;
	fd_close(&walk->current);
	walk->current = next;
	memmove(walk->pending, rest, strlen(rest) + 1);
	return 0;
}

/* What a link says goes in front of what is still to be walked. */
static int step_through(struct walk *walk, const char *text, const char *rest)
{
	int root CLEANUP_FD = text[0] == '/' ? open_root(walk->target) : -1;

	if (text[0] == '/' && root < 0)
		return errno;
	int error = push_text(walk, text, rest);
	if (error || text[0] != '/')
		return error;
	return step_into(walk, fd_steal(&root), walk->pending);
}

static int follow_link(struct walk *walk, const char *name, const char *rest)
{
	char text[PATH_MAX];

	if (on_procfs(walk->current))
		walk->through_proc = true;
	int own = own_folder(walk, name);
	if (own >= 0)
		return step_into(walk, own, rest);
	if (is_magic_link(walk, name)) {
		if (++walk->links > SYMLINK_LIMIT)
			return ELOOP;
		return step_into(walk, openat(walk->current, name, O_PATH | O_CLOEXEC), rest);
	}
	ssize_t length = readlinkat(walk->current, name, text, sizeof(text));
	/* No link any more: the same component once more. */
	if (length < 0 && errno == EINVAL && ++walk->retries <= SYMLINK_LIMIT)
		return 0;
	if (length < 0)
		return errno;
	if ((size_t)length >= sizeof(text))
		return ENAMETOOLONG;
	text[length] = 0;
	return step_through(walk, text, rest);
}

/* One component. 0: walked on; -1: `name` is the last one and is left to the caller; else an errno value. */
static int step(struct walk *walk, bool follow, char name[NAME_MAX + 1], struct statx *status)
{
	char *start = walk->pending + strspn(walk->pending, "/");
	size_t length = strcspn(start, "/");
	char *rest = start + length + strspn(start + length, "/");
	bool last = *rest == 0;
	bool as_directory = start[length] == '/'; /* a trailing slash follows links and demands a directory */

	if (length > NAME_MAX)
		return ENAMETOOLONG;
	memcpy(name, start, length);
	name[length] = 0;
	if (length == 0)
		return -1;
	if (strcmp(name, "..") == 0 && at_root(walk))
		strcpy(name, ".");
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
		int error = step_into(walk, openat(walk->current, name, O_PATH | O_DIRECTORY | O_CLOEXEC), rest);
		name[0] = 0;
		return error;
	}
	bool exists = location_stat(walk->current, name, status);
	if (!exists && !last)
		return errno;
	if (exists && S_ISLNK(status->stx_mode) && (!last || follow || as_directory))
		return follow_link(walk, name, start + length);
	if (last)
		return -1;
	return step_into(walk, openat(walk->current, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), rest);
}

/* Where a walk was stopped, and before what. Nothing behind that exists for the kernel, so nothing of it is simplified. */
static void keep_reached(struct walk *walk, struct arena *arena, struct location *location)
{
	const char *rest = walk->pending + strspn(walk->pending, "/");
	size_t size = strlen(rest);

	while (size > 0 && rest[size - 1] == '/')
		size--;
	if (arena && size > 0)
		location->rest = arena_copy(arena, (struct bytes){rest, size});
	if (location->rest.data)
		location->reached = fd_steal(&walk->current);
	else
		fd_close(&walk->current);
}

void location_walk(const struct target *target, int start, struct bytes path, bool follow, struct arena *arena,
		   struct location *location)
{
	struct walk walk = {.target = target, .current = start};

	*location = LOCATION_NONE;
	if (path.size >= sizeof(walk.pending)) {
		location->error = ENAMETOOLONG;
		fd_close(&walk.current);
		return;
	}
	memcpy(walk.pending, path.data, path.size);
	walk.pending[path.size] = 0;
	if (path.size > 0 && path.data[0] == '/')
		location->error = step_into(&walk, open_root(target), walk.pending);
	if (location->error) {
		fd_close(&walk.current);
		return;
	}

	char name[NAME_MAX + 1] = "";
	struct statx status = {0};
	int state = 0;
	while (location->error == 0 && walk.pending[0] != 0 && (state = step(&walk, follow, name, &status)) == 0)
		name[0] = 0;
	if (location->error == 0 && state > 0)
		location->error = state;
	location->links = walk.links;
	location->through_proc = walk.through_proc;
	if (location->error != 0) {
		keep_reached(&walk, arena, location);
		return;
	}
	location->exists = location_stat(walk.current, name, &location->status);
	if (!location->exists)
		location->error = errno;
	/* Only a link of procfs brings a walk into what is no directory. */
	if (location->error == ENOTDIR) {
		keep_reached(&walk, arena, location);
		return;
	}
	location->parent = walk.current;
	memcpy(location->name, name, sizeof(name));
}
