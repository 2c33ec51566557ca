#include "read_set.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

/* The path is compared, not its hash: two that collide on purpose would hide one of them. */
static bool is_same(const struct read_entry *one, const struct read_entry *other)
{
	return one->ino == other->ino && one->born_ns == other->born_ns && one->dev_major == other->dev_major &&
	       one->dev_minor == other->dev_minor && one->path_size == other->path_size &&
	       memcmp(one->path, other->path, one->path_size) == 0;
}

static size_t slot_of(const struct read_set *set, const struct read_entry *wanted)
{
	uint64_t device = ((uint64_t)wanted->dev_major << 40) ^ ((uint64_t)wanted->dev_minor << 20);
	uint64_t hash = (wanted->ino ^ device ^ (uint64_t)wanted->born_ns) * 0x9e3779b97f4a7c15u;
	for (size_t i = 0; i < wanted->path_size; i++)
		hash = (hash ^ (unsigned char)wanted->path[i]) * 0x100000001b3u;
	size_t slot = (size_t)(hash >> 20) & (set->capacity - 1);

	while (set->entries[slot].count != 0 && !is_same(&set->entries[slot], wanted))
		slot = (slot + 1) & (set->capacity - 1);
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
			larger.entries[slot_of(&larger, entry)] = *entry;
	}
	free(set->entries);
	set->entries = larger.entries;
	set->capacity = larger.capacity;
	return true;
}

bool read_set_add(struct read_set *set, const struct new_files *files, const struct effect_object *object)
{
	struct read_entry wanted = {
	    .ino = object->ino,
	    .born_ns = object->born_ns,
	    .moment = files->now,
	    .dev_major = object->dev_major,
	    .dev_minor = object->dev_minor,
	    .count = 1,
	    .path = object->path.data ? (char *)(uintptr_t)object->path.data : "",
	    .path_size = object->path.size,
	};

	set->total++;
	if (set->used * 4 >= set->capacity * 3) {
		/* A full set forgets nothing: what it does not hold is recorded every time. */
		if (set->used >= READ_SET_LIMIT || !grow(set))
			return true;
	}
	struct read_entry *entry = &set->entries[slot_of(set, &wanted)];
	if (entry->count == 0) {
		char *path =
		    set->path_bytes + wanted.path_size < READ_SET_PATH_BYTES ? malloc(wanted.path_size + 1) : NULL;
		if (!path)
			return true;
		memcpy(path, wanted.path, wanted.path_size);
		*entry = wanted;
		entry->path = path;
		set->path_bytes += wanted.path_size;
		set->used++;
		return true;
	}
	if (entry->count < UINT32_MAX)
		entry->count++;
	bool another = entry->moment < new_files_since(files, object);
	entry->moment = files->now;
	return another;
}

void read_set_free(struct read_set *set)
{
	for (size_t i = 0; i < set->capacity; i++)
		free(set->entries[i].path);
	free(set->entries);
	*set = (struct read_set){0};
}
