#include "base/bytes.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUF_FIRST_CAPACITY = 64 };
static const size_t buf_default_limit = (size_t)1 << 30;

bool bytes_path_below(struct bytes path, struct bytes directory)
{
	if (directory.size == 0 || directory.data[0] != '/' || !bytes_start_with(path, directory))
		return false;
	/* "/etcetera" is not below "/etc", but everything is below "/". */
	return path.size == directory.size || directory.data[directory.size - 1] == '/' ||
	       path.data[directory.size] == '/';
}

void buf_init(struct buf *buf, size_t limit)
{
	*buf = (struct buf){.limit = limit};
}

void buf_free(struct buf *buf)
{
	free(buf->data);
	*buf = (struct buf){.limit = buf->limit};
}

void buf_reset(struct buf *buf)
{
	buf->size = 0;
	buf->failed = false;
	if (buf->data)
		buf->data[0] = '\0';
}

static size_t buf_limit(const struct buf *buf)
{
	/* One byte is kept for the NUL, so that capacity arithmetic cannot wrap. */
	if (buf->limit == 0)
		return buf_default_limit;
	return buf->limit < SIZE_MAX / 2 ? buf->limit : SIZE_MAX / 2;
}

static bool buf_grow(struct buf *buf, size_t needed)
{
	size_t capacity = buf->capacity ? buf->capacity : BUF_FIRST_CAPACITY;
	size_t most = buf_limit(buf) + 1;
	while (capacity < needed)
		capacity = capacity > most / 2 ? most : capacity * 2;
	if (capacity > most)
		capacity = most;
	char *data = realloc(buf->data, capacity);
	if (!data)
		return false;
	buf->data = data;
	buf->capacity = capacity;
	return true;
}

char *buf_reserve_slow(struct buf *buf, size_t size)
{
	if (buf->failed)
		return NULL;
	size_t limit = buf_limit(buf);
	if (buf->size > limit || size > limit - buf->size) {
		buf->failed = true;
		return NULL;
	}
	size_t needed = buf->size + size + 1;
	if (needed > buf->capacity && !buf_grow(buf, needed)) {
		buf->failed = true;
		return NULL;
	}
	return buf->data + buf->size;
}

void buf_append_format(struct buf *buf, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int size = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (size < 0) {
		buf->failed = true;
		return;
	}
	char *to = buf_reserve(buf, (size_t)size);
	if (!to)
		return;
	va_start(args, format);
	vsnprintf(to, (size_t)size + 1, format, args);
	va_end(args);
	buf_commit(buf, (size_t)size);
}

struct bytes buf_bytes(const struct buf *buf)
{
	return (struct bytes){buf->data ? buf->data : "", buf->size};
}

bool arena_init(struct arena *arena, size_t capacity)
{
	*arena = (struct arena){.data = malloc(capacity ? capacity : 1)};
	if (!arena->data)
		return false;
	arena->capacity = capacity;
	return true;
}

void arena_free(struct arena *arena)
{
	free(arena->data);
	*arena = (struct arena){0};
}

void *arena_alloc(struct arena *arena, size_t size)
{
	size_t padding = (size_t)-arena->used % alignof(max_align_t);
	size_t left = arena->capacity - arena->used;
	if (padding > left || size > left - padding)
		return NULL;
	void *memory = arena->data + arena->used + padding;
	arena->used += padding + size;
	return memory;
}

struct bytes arena_copy(struct arena *arena, struct bytes bytes)
{
	if (!bytes.data || bytes.size == SIZE_MAX)
		return BYTES_NONE;
	char *copy = arena_alloc(arena, bytes.size + 1);
	if (!copy)
		return BYTES_NONE;
	memcpy(copy, bytes.data, bytes.size);
	copy[bytes.size] = '\0';
	return (struct bytes){copy, bytes.size};
}

struct bytes arena_format(struct arena *arena, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int size = vsnprintf(NULL, 0, format, args);
	va_end(args);
	char *text = size < 0 ? NULL : arena_alloc(arena, (size_t)size + 1);
	if (!text)
		return BYTES_NONE;
	va_start(args, format);
	vsnprintf(text, (size_t)size + 1, format, args);
	va_end(args);
	return (struct bytes){text, (size_t)size};
}
