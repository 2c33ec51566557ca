#include "ends.h"

#include <stdlib.h>

static bool put(uint64_t *keys, size_t capacity, uint64_t key)
{
	size_t at = (size_t)key & (capacity - 1);

	while (keys[at] != 0 && keys[at] != key)
		at = (at + 1) & (capacity - 1);
	bool fresh = keys[at] == 0;
	keys[at] = key;
	return fresh;
}

static bool grow(struct ends *ends)
{
	size_t capacity = ends->capacity ? ends->capacity * 2 : 1024;
	uint64_t *keys = calloc(capacity, sizeof(*keys));

	if (!keys)
		return false;
	for (size_t i = 0; i < ends->capacity; i++)
		if (ends->keys[i] != 0)
			put(keys, capacity, ends->keys[i]);
	free(ends->keys);
	ends->keys = keys;
	ends->capacity = capacity;
	return true;
}

static bool has(const struct ends *ends, uint64_t key)
{
	if (ends->capacity == 0)
		return false;
	size_t at = (size_t)key & (ends->capacity - 1);
	while (ends->keys[at] != 0 && ends->keys[at] != key)
		at = (at + 1) & (ends->capacity - 1);
	return ends->keys[at] == key;
}

enum ends_answer ends_add(struct ends *ends, uint64_t key)
{
	if (key == 0)
		key = 1;
	if (has(ends, key))
		return ENDS_KNOWN;
	/* Never more than half full, so that a search ends soon. */
	if (ends->count == ENDS_LIMIT || (ends->count * 2 >= ends->capacity && !grow(ends)))
		return ENDS_FULL;
	put(ends->keys, ends->capacity, key);
	ends->count++;
	return ENDS_NEW;
}

void ends_free(struct ends *ends)
{
	free(ends->keys);
	*ends = (struct ends){0};
}
