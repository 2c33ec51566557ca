#include "decode/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/fd.h"
#include "deep.h"
#include "file_systems.h"
#include "location.h"
#include "mounts.h"
#include "os/procfs.h"

struct bytes path_as_task_sees(const struct target *target, struct bytes host)
{
	if (target->same_root || target->root_path.size <= 1 || !bytes_path_below(host, target->root_path))
		return host;
	struct bytes inside = {host.data + target->root_path.size, host.size - target->root_path.size};
	return inside.size ? inside : BYTES("/");
}

/* Directory and name as one absolute path. */
static struct bytes join(struct arena *arena, struct bytes directory, struct bytes name)
{
	if (name.size == 0)
		return arena_copy(arena, directory);
	bool slash = directory.size == 0 || directory.data[directory.size - 1] != '/';
	char *out = arena_alloc(arena, directory.size + name.size + 2);
	if (!out)
		return BYTES_NONE;
	memcpy(out, directory.data, directory.size);
	size_t size = directory.size;
	if (slash)
		out[size++] = '/';
	memcpy(out + size, name.data, name.size);
	size += name.size;
	out[size] = 0;
	return (struct bytes){out, size};
}

/* Names as the kernel prints them for a descriptor of ours: from our root, or from the root of their own mounts. */
static struct bytes where(int fd, char text[PATH_MAX])
{
	ssize_t length = procfs_own_fd(fd, text, PATH_MAX);

	return length < 0 ? BYTES_NONE : (struct bytes){text, (size_t)length};
}

/* The same of a directory, however long; absent for -1. */
static struct bytes name_of(int directory, char text[PATH_MAX], struct arena *arena)
{
	struct bytes name = directory >= 0 ? where(directory, text) : BYTES_NONE;

	return name.data || directory < 0 ? name : deep_path(directory, arena);
}

static void set_views(const struct target *target, struct arena *arena, struct effect_object *object,
		      struct bytes kernel_view, int directory, const struct statx *status)
{
	object->path = path_as_task_sees(target, kernel_view);
	if (target->same_root)
		return;
	struct bytes host = kernel_view;
	if (!target->same_mounts && status)
		host = mounts_host_view(target, status->stx_mnt_id, kernel_view, directory, arena);
	if (host.data && !bytes_equal(host, object->path))
		object->host_path = host;
}

static void set_identity(struct effect_object *object, struct path_facts *facts, const struct statx *status)
{
	object->has_inode = true;
	object->dev_major = status->stx_dev_major;
	object->dev_minor = status->stx_dev_minor;
	object->ino = status->stx_ino;
	if (status->stx_mask & STATX_BTIME)
		object->born_ns = status->stx_btime.tv_sec * INT64_C(1000000000) + status->stx_btime.tv_nsec;
	object->type = status->stx_mode & S_IFMT;
	facts->exists = true;
	facts->mode = status->stx_mode;
	facts->links = status->stx_nlink;
	facts->device_major = status->stx_rdev_major;
	facts->device_minor = status->stx_rdev_minor;
	facts->device = makedev(status->stx_dev_major, status->stx_dev_minor);
	facts->ino = status->stx_ino;
}

/* What the task gave, joined to where it stands, when nothing better is to be had. */
static void set_lexical(const struct target *target, const struct path_request *request, struct arena *arena,
			struct effect_object *object)
{
	char text[PATH_MAX];

	if (request->path.size > 0 && request->path.data[0] == '/') {
		object->path = arena_copy(arena, request->path);
		return;
	}
	int base CLEANUP_FD = path_base(target, request->base);
	struct bytes directory = base >= 0 ? where(base, text) : BYTES_NONE;
	if (directory.data)
		object->path = join(arena, path_as_task_sees(target, directory), request->path);
}

static void set_place(struct path_facts *facts, const struct statx *status, struct file_system about)
{
	facts->mount = status->stx_mnt_id;
	facts->device = makedev(status->stx_dev_major, status->stx_dev_minor);
	facts->local = about.local;
	facts->procfs = about.kernel;
}

static void set_file_system(struct path_cache *cache, const struct target *target, struct location *location,
			    struct path_facts *facts)
{
	if (location->exists)
		set_place(facts, &location->status,
			  file_system_of(cache, target, location->parent, location->name, &location->status));
	else if (location_stat_directory(location))
		set_place(facts, &location->directory,
			  file_system_of(cache, target, location->parent, "", &location->directory));
}

static void set_found(struct path_cache *cache, const struct target *target, struct arena *arena,
		      struct location *location, struct bytes directory, struct effect_object *object,
		      struct path_facts *facts)
{
	const struct statx *mount = location->exists ? &location->status : NULL;

	if (!mount && !target->same_mounts && location_stat_directory(location))
		mount = &location->directory;
	set_views(target, arena, object, join(arena, directory, bytes_of(location->name)), location->parent, mount);
	set_file_system(cache, target, location, facts);
}

/* What there is of the way, and behind it what was asked for and is not there. */
static bool set_reached(const struct target *target, struct arena *arena, const struct location *location,
			struct effect_object *object)
{
	char text[PATH_MAX];
	struct statx status;
	struct bytes reached = name_of(location->reached, text, arena);

	/* Links of procfs lead to pipes and sockets too, whose names are no paths. */
	if (!reached.data || reached.data[0] != '/')
		return false;
	bool mount = !target->same_mounts && location_stat(location->reached, "", &status);
	set_views(target, arena, object, join(arena, reached, location->rest), location->reached,
		  mount ? &status : NULL);
	return true;
}

void path_place_release(struct path_place *place)
{
	fd_close(&place->directory);
}

/* The entry that was named, not what its link leads to: the kernel will follow that for itself. */
static void hold(struct location *location, struct path_place *place)
{
	bool link = location->entry >= 0;
	/* Links that were followed by hand were not checked as the kernel would have done (fs.protected_symlinks). */
	if ((!link && location->links > 0) || location->through_proc)
		return;
	const char *name = link ? location->link : location->name;

	place->link = link;
	snprintf(place->name, sizeof(place->name), "%s%s", name, location->slash && *name ? "/" : "");
	/* Both may be one descriptor; it is taken from wherever it would be closed. */
	int directory = link ? location->entry : location->parent;
	if (location->entry == location->parent)
		location->entry = location->parent = -1;
	else if (link)
		location->entry = -1;
	else
		location->parent = -1;
	place->directory = directory;
}

static void note_near(struct path_cache *cache, const struct path_request *request, const struct path_place *place,
		      struct bytes view, struct arena *arena)
{
	struct bytes directory = location_directory(request->path);

	if (!directory.data || !view.data)
		return;
	*location_near(cache) = (struct location_near){
	    .place = place,
	    .base = request->base,
	    .absolute = request->path.data[0] == '/',
	    .directory = directory,
	    .view = arena_copy(arena, view),
	};
}

void path_forget(struct path_cache *cache)
{
	location_near(cache)->place = NULL;
}

void path_resolve(struct path_cache *cache, const struct target *target, const struct path_request *request,
		  struct arena *arena, struct effect_object *object, struct path_facts *facts)
{
	path_resolve_held(cache, target, request, arena, object, facts, NULL);
}

void path_resolve_held(struct path_cache *cache, const struct target *target, const struct path_request *request,
		       struct arena *arena, struct effect_object *object, struct path_facts *facts,
		       struct path_place *place)
{
	struct location location CLEANUP_LOCATION;
	char text[PATH_MAX];

	*object = (struct effect_object){0};
	*facts = (struct path_facts){0};
	if (place)
		place->directory = -1;
	location_find(cache, target, request, arena, &location);
	facts->error = location.error;
	facts->parent_exists = location.parent >= 0;
	struct bytes directory = location.view.data ? location.view : name_of(location.parent, text, arena);
	if (directory.data)
		set_found(cache, target, arena, &location, directory, object, facts);
	else if (!set_reached(target, arena, &location, object))
		set_lexical(target, request, arena, object);
	if (location.exists)
		set_identity(object, facts, &location.status);
	if (!bytes_equal(request->path, object->path))
		object->as_given = request->path;
	if (!place)
		return;
	bool walked = location.links > 0 || location.through_proc;
	hold(&location, place);
	/* Its name is known for the directory that was named, which a link followed by hand has left. */
	if (place->directory >= 0 && !place->link && !walked)
		note_near(cache, request, place, directory, arena);
}

void path_of_descriptor(struct path_cache *cache, const struct target *target, int fd, struct arena *arena,
			struct effect_object *object, struct path_facts *facts)
{
	int copy CLEANUP_FD = path_base(target, fd < 0 ? INT_MAX : fd);

	path_of_own_descriptor(cache, target, copy, arena, object, facts);
}

void path_of_own_descriptor(struct path_cache *cache, const struct target *target, int fd, struct arena *arena,
			    struct effect_object *object, struct path_facts *facts)
{
	char text[PATH_MAX];
	struct location location = LOCATION_NONE;

	location.parent = fd;
	*object = (struct effect_object){0};
	*facts = (struct path_facts){0};
	if (location.parent < 0) {
		facts->error = EBADF;
		return;
	}
	location.exists = location_stat(location.parent, "", &location.status);
	struct bytes kernel_view = where(location.parent, text);
	if (!kernel_view.data && location.exists && S_ISDIR(location.status.stx_mode))
		kernel_view = deep_path(location.parent, arena);
	if (kernel_view.data)
		set_views(target, arena, object, arena_copy(arena, kernel_view), location.parent,
			  location.exists ? &location.status : NULL);
	if (!location.exists) {
		facts->error = errno;
		return;
	}
	set_identity(object, facts, &location.status);
	set_file_system(cache, target, &location, facts);
}

struct bytes path_working_directory(const struct target *target, struct arena *arena)
{
	char text[PATH_MAX];
	ssize_t length = procfs_link(target->task, "cwd", text, sizeof(text));

	if (length < 0)
		return BYTES_NONE;
	return path_as_task_sees(target, arena_copy(arena, (struct bytes){text, (size_t)length}));
}
