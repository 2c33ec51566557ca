#include "mounts.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "decode/path.h"
#include "location.h"
#include "os/procfs.h"

/* More than this is somebody's attempt to keep us busy. */
enum { MOUNTINFO_LIMIT = 1 << 20, LEVELS_LIMIT = 4096 };

struct mount {
	uint64_t id;
	char device[24];
	char root[PATH_MAX];  /* what of the file system is mounted */
	char point[PATH_MAX]; /* where */
};

/* mountinfo escapes space, tab, newline and backslash as \ooo. */
static void unescape(char *text)
{
	char *out = text;

	for (const char *in = text; *in; in++) {
		if (in[0] == '\\' && in[1] >= '0' && in[1] <= '3' && in[2] >= '0' && in[2] <= '7' && in[3] >= '0' &&
		    in[3] <= '7') {
			*out++ = (char)((in[1] - '0') * 64 + (in[2] - '0') * 8 + (in[3] - '0'));
			in += 3;
		} else {
			*out++ = *in;
		}
	}
	*out = 0;
}

static bool copy_field(char *out, size_t size, const char *field)
{
	size_t length = field ? strlen(field) : size;

	if (length >= size)
		return false;
	memcpy(out, field, length + 1);
	return true;
}

/* "id parent major:minor root point options ..." (proc_pid_mountinfo(5)). */
static bool parse_line(char *line, struct mount *mount)
{
	const char *id = strsep(&line, " ");

	(void)strsep(&line, " ");
	if (!copy_field(mount->device, sizeof(mount->device), strsep(&line, " ")) ||
	    !copy_field(mount->root, sizeof(mount->root), strsep(&line, " ")) ||
	    !copy_field(mount->point, sizeof(mount->point), strsep(&line, " ")))
		return false;
	mount->id = strtoull(id, NULL, 10);
	unescape(mount->root);
	unescape(mount->point);
	return true;
}

static char *read_mountinfo(int directory, const char *name)
{
	char *text = malloc(MOUNTINFO_LIMIT);

	if (text && fd_read_file(directory, name, text, MOUNTINFO_LIMIT) < 0) {
		free(text);
		return NULL;
	}
	return text;
}

typedef bool (*mount_visitor)(void *context, const struct mount *mount);

static void visit_mounts(char *text, mount_visitor visit, void *context)
{
	struct mount *mount = malloc(sizeof(*mount));
	char *rest = text;

	for (char *line; mount && (line = strsep(&rest, "\n")) != NULL;)
		if (parse_line(line, mount) && !visit(context, mount))
			break;
	free(mount);
}

struct search {
	uint64_t id;
	const char *device;
	struct bytes inside; /* path within the file system */
	struct mount found;
	size_t found_size;
	bool any;
};

static bool match_id(void *context, const struct mount *mount)
{
	struct search *search = context;

	if (mount->id != search->id)
		return true;
	search->found = *mount;
	search->any = true;
	return false;
}

/* The mount of ours that shows this part of the file system, the most specific one. */
static bool match_device(void *context, const struct mount *mount)
{
	struct search *search = context;
	struct bytes root = bytes_of(mount->root);

	if (strcmp(mount->device, search->device) == 0 && bytes_path_below(search->inside, root) &&
	    (!search->any || root.size >= search->found_size)) {
		search->found = *mount;
		search->found_size = root.size;
		search->any = true;
	}
	return true;
}

/* `below` moved from under `from` to under `to`. */
static struct bytes rebase(struct bytes path, struct bytes from, struct bytes to, struct arena *arena)
{
	size_t skip = from.size == 1 ? 0 : from.size; /* "/" has every path's slash */
	struct bytes rest = {path.data + skip, path.size - skip};

	if (to.size == 1)
		to.size = 0;
	if (rest.size == 1 && rest.data[0] == '/')
		rest.size = 0;
	if (to.size + rest.size == 0)
		return BYTES("/");
	return arena_format(arena, "%.*s%.*s", (int)to.size, to.data, (int)rest.size, rest.data);
}

/* Where our mounts show the file system's part `inside`. */
static struct bytes find_ours(struct search *ours, struct arena *arena)
{
	char *text = ours->inside.data ? read_mountinfo(procfs_root(), "self/mountinfo") : NULL;

	if (text)
		visit_mounts(text, match_device, ours);
	free(text);
	return ours->inside.data && ours->any
		   ? rebase(ours->inside, bytes_of(ours->found.root), bytes_of(ours->found.point), arena)
		   : BYTES_NONE;
}

/* A mount of ours with the same root directory: `device` and its inode number, which travels in `id`. */
static bool match_root(void *context, const struct mount *mount)
{
	struct search *search = context;
	struct statx status;

	if (strcmp(mount->device, search->device) != 0 || !location_stat(AT_FDCWD, mount->point, &status) ||
	    status.stx_ino != search->id)
		return true;
	search->found = *mount;
	search->any = true;
	return false;
}

/* The part of `path` below the root of its mount: climb until the mount changes. `root` gets that root's identity. */
static struct bytes below_mount(struct bytes path, int directory, struct statx *root)
{
	int current CLEANUP_FD = openat(directory, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	size_t rest = path.size;
	struct statx status;

	/* The object's own name, then one more for each level. */
	for (int level = 0; current >= 0 && level < LEVELS_LIMIT && location_stat(current, "", root); level++) {
		const char *slash = memrchr(path.data, '/', rest);
		rest = slash ? (size_t)(slash - path.data) : 0;
		int above = openat(current, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		fd_close(&current);
		current = above;
		if (current < 0 || !location_stat(current, "", &status) || status.stx_mnt_id != root->stx_mnt_id ||
		    status.stx_ino == root->stx_ino)
			return (struct bytes){path.data + rest, path.size - rest};
	}
	return BYTES_NONE;
}

/* A task in a chroot is not shown the mount that its root lies on: look for one of ours that begins where that one does. */
static struct bytes view_by_root(struct search *search, struct bytes path, int directory, struct arena *arena)
{
	char device[24];
	struct statx root;
	struct bytes below = below_mount(path, directory, &root);
	char *text = below.data ? read_mountinfo(procfs_root(), "self/mountinfo") : NULL;

	if (!text)
		return BYTES_NONE;
	snprintf(device, sizeof(device), "%u:%u", root.stx_dev_major, root.stx_dev_minor);
	*search = (struct search){.device = device, .id = root.stx_ino};
	visit_mounts(text, match_root, search);
	free(text);
	if (!search->any)
		return BYTES_NONE;
	size_t point = strlen(search->found.point);
	return arena_format(arena, "%.*s%.*s", point == 1 ? 0 : (int)point, search->found.point, (int)below.size,
			    below.data);
}

struct bytes mounts_host_view(const struct target *target, uint64_t mount_id, struct bytes path, int directory,
			      struct arena *arena)
{
	struct search *searches = calloc(2, sizeof(*searches));
	struct search *theirs = searches, *ours = searches + 1;
	char *text = read_mountinfo(target->task, "mountinfo");
	struct bytes host = BYTES_NONE;

	if (theirs && text) {
		theirs->id = mount_id;
		visit_mounts(text, match_id, theirs);
	}
	free(text);
	/* mountinfo names mount points from the task's root directory. */
	struct bytes seen = path_as_task_sees(target, path);
	if (theirs && theirs->any && bytes_path_below(seen, bytes_of(theirs->found.point))) {
		ours->device = theirs->found.device;
		ours->inside = rebase(seen, bytes_of(theirs->found.point), bytes_of(theirs->found.root), arena);
		host = find_ours(ours, arena);
	} else if (theirs) {
		host = view_by_root(ours, path, directory, arena);
	}
	free(searches);
	return host;
}
