/*
 * Private to this room: which files a process has read, by which names, and how often.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger/effect.h"
#include "new_files.h"

struct read_entry {
	uint64_t ino;
	int64_t born_ns;
	uint64_t moment; /* of the last record (new_files.h) */
	uint32_t dev_major, dev_minor;
	uint32_t count; /* 0: free */
	char *path;     /* owned */
	size_t path_size;
};

struct read_set {
	struct read_entry *entries; /* owned; open addressing */
	size_t capacity, used;
	uint64_t total;
	size_t path_bytes; /* kept in all */
};

/* Beyond these, files are recorded at every read. */
enum { READ_SET_LIMIT = 65536, READ_SET_PATH_BYTES = 4 << 20 };

/*
 * Count a read. True when it is the first of this file by this name, or when the set is full and cannot tell. `files` says
 * whether the inode is another file than it was.
 */
bool read_set_add(struct read_set *set, const struct new_files *files, const struct effect_object *object);
void read_set_free(struct read_set *set);
