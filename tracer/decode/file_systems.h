/*
 * Private to this room: what kind of file system a device number stands for.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "decode/path.h"

struct file_system {
	bool local;  /* calls on it wait for nobody but the disk */
	bool kernel; /* procfs, sysfs, cgroupfs: names and contents depend on who looks */
	bool procfs;
};

/* The file system of the object `name` in `directory` (the directory itself when empty), whose statx is `status`. */
struct file_system file_system_of(struct path_cache *cache, const struct target *target, int directory,
				  const char *name, const struct statx *status);
