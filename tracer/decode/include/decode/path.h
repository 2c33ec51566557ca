/*
 * From a path argument to the object that it names, as the kernel would resolve it for the task: its root, its mounts,
 * its working directory, its /proc/self. path_resolution(7) is the rule.
 *
 * This is a look at the moment of the call. Another thread can change what a name means between the look and the act;
 * who needs certainty takes it from the act itself.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "decode/target.h"
#include "ledger/effect.h"

enum { PATH_BASE_CWD = -100 /* AT_FDCWD */ };

struct path_request {
	int base;           /* descriptor number in the task, or PATH_BASE_CWD */
	struct bytes path;  /* as given, NUL-terminated past its end */
	bool follow;        /* follow a symbolic link at the end */
	bool empty_is_base; /* AT_EMPTY_PATH: an empty path means the base itself */
};

/* What is known about a resolved object beyond its names. */
struct path_facts {
	bool exists;
	int error;          /* errno of the failed look-up; ENOENT also when only the last component is missing */
	bool parent_exists; /* the directory that would hold it was found */
	uint32_t mode;      /* st_mode when it exists */
	uint32_t links;
	uint32_t device_major, device_minor; /* which device it is, when it is one */
	uint64_t mount;                      /* statx mount id; of the parent when it does not exist */
	uint64_t device;                     /* makedev() of the same */
	uint64_t ino;                        /* when it exists */
	bool local;                          /* on a local file system, whose calls do not wait for anybody */
	bool procfs;                         /* on procfs, sysfs or cgroupfs */
};

/*
 * A directory entry, held by its directory: whatever happens to the names on the way here, the entry stays the same one.
 * While it is held its mount is busy, so it must be let go before the kernel makes the call itself.
 */
struct path_place {
	int directory;           /* O_PATH; -1 when nothing is held */
	char name[NAME_MAX + 2]; /* with a slash behind it if it was given so; empty: the directory is the object */
	bool link;               /* the entry was a symbolic link, which is to be followed */
};
void path_place_release(struct path_place *place);

/* Facts about file systems by device number, so that one look serves many calls. One per worker; not thread-safe. */
struct path_cache;
struct path_cache *path_cache_new(void);
void path_cache_free(struct path_cache *cache);
/* Places that were held are let go: nothing may refer to them any more. */
void path_forget(struct path_cache *cache);

/*
 * Resolve. Fills `object` (path, host_path, device, inode, type; as_given only when it differs from path) from memory of
 * `arena`, and `facts`. When the path leads nowhere, `object->path` is where the way to it ends, joined with what was still
 * to be walked there as it was given, but for slashes at its end. If that is unknown too, it is the base joined with the
 * text given.
 */
void path_resolve(struct path_cache *cache, const struct target *target, const struct path_request *request,
		  struct arena *arena, struct effect_object *object, struct path_facts *facts);
/* The same, and hold the place; `place->directory` is -1 when there is no such directory, or it cannot be told. */
void path_resolve_held(struct path_cache *cache, const struct target *target, const struct path_request *request,
		       struct arena *arena, struct effect_object *object, struct path_facts *facts,
		       struct path_place *place);

/* The object behind a descriptor of the task. */
void path_of_descriptor(struct path_cache *cache, const struct target *target, int fd, struct arena *arena,
			struct effect_object *object, struct path_facts *facts);
/* The same for a descriptor of ours that was opened for the task; -1 is none. */
void path_of_own_descriptor(struct path_cache *cache, const struct target *target, int fd, struct arena *arena,
			    struct effect_object *object, struct path_facts *facts);

/*
 * Does what the request names lie in (or is it) the directory with this identity, by whatever name it was reached? For
 * mounts that show one directory in two places.
 */
bool path_lies_in(struct path_cache *cache, const struct target *target, const struct path_request *request,
		  uint64_t device, uint64_t ino);

/*
 * The folder of a process (or thread) in procfs, whichever mount and pid namespace that shows, below which lies what the
 * request names: an O_PATH descriptor, or -1.
 */
int path_process_folder(struct path_cache *cache, const struct target *target, const struct path_request *request);

/* A task's directory to start from: its cwd (PATH_BASE_CWD), or one of its descriptors. O_PATH; -1 with errno. */
int path_base(const struct target *target, int base);

/* Is it on a file system of the disk or of memory: one that waits for nobody, and whose files are the same for all? */
bool path_is_ordinary(int descriptor);

/* The working directory of the task as it sees it; absent when unknown. */
struct bytes path_working_directory(const struct target *target, struct arena *arena);

/* Turn an absolute path as seen from our root into the task's view of it. */
struct bytes path_as_task_sees(const struct target *target, struct bytes host);
