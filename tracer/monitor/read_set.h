/*
 * Private to this room: which inodes a process has read, and how often.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct read_entry {
	uint64_t ino;
	uint32_t dev_major, dev_minor;
	uint32_t count; /* 0: free */
	char *path;     /* owned; kept from the second read on */
	size_t path_size;
};

struct read_set {
	struct read_entry *entries; /* owned; open addressing */
	size_t capacity, used;
	uint64_t total;
	size_t path_bytes; /* kept in all */
};

/* Beyond these, files are recorded at every read, and counts stand without names. */
enum { READ_SET_LIMIT = 65536, READ_SET_PATH_BYTES = 4 << 20 };

/* Count a read. True when it is the first of this inode, or when the set is full and cannot tell. */
bool read_set_add(struct read_set *set, uint32_t dev_major, uint32_t dev_minor, uint64_t ino, struct bytes path);
void read_set_free(struct read_set *set);
