/*
 * Private to this room: where a path leads, as descriptors.
 */
#pragma once

#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "decode/path.h"
#include "decode/target.h"

struct location {
	int parent; /* O_PATH of the directory that holds the last component; of the object itself when `name` is empty */
	char name[NAME_MAX + 1];
	bool exists;
	struct statx status;
	int error;
	struct statx directory; /* of `parent` */
	bool has_directory;
	struct bytes view; /* the name of `parent`, when it is known already */
	bool slash;        /* the path ended in slashes */
	int entry; /* when a link at the end was followed by hand, its directory: `parent`, or a descriptor of its own; else -1 */
	char link[NAME_MAX + 1]; /* that link's name */
	unsigned links;          /* followed by location_walk() */
	bool through_proc;       /* one of them in procfs: where it leads depends on who asks */
	int reached;             /* when there is no `parent`: O_PATH of where location_walk() was stopped, or -1 */
	struct bytes rest;       /* what was still to be walked there, from the component that stopped it */
};

#define LOCATION_NONE ((struct location){.parent = -1, .entry = -1, .reached = -1})

/*
 * The directory that a call named last: a second name is often in the same one. Holds until the next call is decoded, or
 * until its place is released.
 */
struct location_near {
	const struct path_place *place; /* the call's; NULL: none */
	int base;
	bool absolute;
	struct bytes directory; /* as given, without the last component */
	struct bytes view;
};

void location_close(struct location *location);
#define CLEANUP_LOCATION __attribute__((cleanup(location_close)))

/*
 * Component by component, in the task's root, with its /proc/self: right for every path, at several calls a component.
 * Takes ownership of `start` (an O_PATH descriptor of the starting directory). How far a walk came that was stopped is
 * told with memory of `arena`, and not when that is NULL.
 */
void location_walk(const struct target *target, int start, struct bytes path, bool follow, struct arena *arena,
		   struct location *location);

/* In two or three calls for the common case; falls back on location_walk(). */
void location_find(struct path_cache *cache, const struct target *target, const struct path_request *request,
		   struct arena *arena, struct location *location);
/* The part of a path before its last component; absent when it has no plain one. */
struct bytes location_directory(struct bytes path);
/* statx of the directory that holds the object, looked up once. */
bool location_stat_directory(struct location *location);
/* The cache's note of the directory that was named last. */
struct location_near *location_near(struct path_cache *cache);

/* statx of a name (or of the descriptor itself when empty) with all that a record needs. */
bool location_stat(int directory, const char *name, struct statx *status);
