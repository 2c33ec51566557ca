#include "read_set.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

static size_t slot_of(const struct read_set *set, uint32_t dev_major, uint32_t dev_minor, uint64_t ino)
{
	uint64_t hash = (ino ^ ((uint64_t)dev_major << 40) ^ ((uint64_t)dev_minor << 20)) * 0x9e3779b97f4a7c15u;
	size_t slot = (size_t)(hash >> 20) & (set->capacity - 1);

	while (set->entries[slot].count != 0) {
		const struct read_entry *entry = &set->entries[slot];
		if (entry->ino == ino && entry->dev_major == dev_major && entry->dev_minor == dev_minor)
			break;
		slot = (slot + 1) & (set->capacity - 1);
	}
	return slot;
}

static bool grow(struct read_set *set)
{
	struct read_set larger = {.capacity = set->capacity ? set->capacity * 2 : FIRST_CAPACITY};

	larger.entries = calloc(larger.capacity, sizeof(*larger.entries));
	if (!larger.entries)
		return false;
	for (size_t i = 0; i < set->capacity; i++) {
		const struct read_entry *entry = &set->entries[i];
		if (entry->count != 0)
			larger.entries[slot_of(&larger, entry->dev_major, entry->dev_minor, entry->ino)] = *entry;
	}
	free(set->entries);
	set->entries = larger.entries;
	set->capacity = larger.capacity;
	return true;
}

bool read_set_add(struct read_set *set, uint32_t dev_major, uint32_t dev_minor, uint64_t ino, struct bytes path)
{
	set->total++;
	if (set->used * 4 >= set->capacity * 3) {
		/* A full set forgets nothing: what it does not hold is recorded every time. */
		if (set->used >= READ_SET_LIMIT || !grow(set))
			return true;
	}
	struct read_entry *entry = &set->entries[slot_of(set, dev_major, dev_minor, ino)];
	if (entry->count == 0) {
		*entry = (struct read_entry){.ino = ino, .dev_major = dev_major, .dev_minor = dev_minor, .count = 1};
		set->used++;
		return true;
	}
	if (entry->count < UINT32_MAX)
		entry->count++;
	if (!entry->path && path.data && set->path_bytes + path.size < READ_SET_PATH_BYTES &&
	    (entry->path = malloc(path.size + 1)) != NULL) {
		set->path_bytes += path.size;
		memcpy(entry->path, path.data, path.size);
		entry->path_size = path.size;
	}
	return false;
}

void read_set_free(struct read_set *set)
{
	for (size_t i = 0; i < set->capacity; i++)
		free(set->entries[i].path);
	free(set->entries);
	*set = (struct read_set){0};
}
