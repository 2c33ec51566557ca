/*
 * Byte strings. What comes from the agent is bytes with a length, never a C string: it may hold any byte, and a NUL
 * terminator is only promised where a function says so.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/* A view of bytes that somebody else owns. `data` is NULL when the value is absent. */
struct bytes {
	const char *data;
	size_t size;
};

/* A literal as a byte string. */
#define BYTES(literal) ((struct bytes){(literal), sizeof(literal) - 1})
#define BYTES_NONE ((struct bytes){NULL, 0})

static inline struct bytes bytes_of(const char *text)
{
	return text ? (struct bytes){text, strlen(text)} : BYTES_NONE;
}

static inline bool bytes_equal(struct bytes a, struct bytes b)
{
	return a.size == b.size && (a.size == 0 || (a.data && b.data && memcmp(a.data, b.data, a.size) == 0));
}

static inline bool bytes_start_with(struct bytes whole, struct bytes start)
{
	return whole.size >= start.size && (start.size == 0 || memcmp(whole.data, start.data, start.size) == 0);
}

/* True when `path` is `directory` itself or lies below it. Both are absolute and normalised. */
bool bytes_path_below(struct bytes path, struct bytes directory);

/*
 * A growing buffer with a limit. Appending past the limit or out of memory sets `failed` and drops the append, so that a
 * sequence of appends needs one check at its end; once failed, every later append is dropped too, so that what is held
 * is a true prefix. Appended data must not lie in the buffer itself. Zero-initialise with the limit set, or use buf_init();
 * the limit stays what it is while memory is held.
 */
struct buf {
	char *data; /* owned; NUL-terminated one byte past `size` once anything was appended */
	size_t size;
	size_t capacity;
	size_t limit; /* most bytes that it may hold; 0 means 1 GiB */
	bool failed;
};

void buf_init(struct buf *buf, size_t limit);
void buf_free(struct buf *buf);
/* Empty it and clear `failed`, keeping the memory. */
void buf_reset(struct buf *buf);
/* Append formatted text that holds no bytes of the agent. */
void buf_append_format(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* buf_reserve() where memory or the limit may not suffice. */
char *buf_reserve_slow(struct buf *buf, size_t size);

/* Make room for `size` bytes and return where to write them (advance with buf_commit), or NULL and `failed`. */
static inline char *buf_reserve(struct buf *buf, size_t size)
{
	/* The capacity is within the limit and holds the NUL too: what fits it needs no other check. */
	if (!buf->failed && size < buf->capacity - buf->size)
		return buf->data + buf->size;
	return buf_reserve_slow(buf, size);
}

static inline void buf_commit(struct buf *buf, size_t size)
{
	if (buf->failed || !buf->data || size >= buf->capacity - buf->size) {
		buf->failed = true;
		return;
	}
	buf->size += size;
	buf->data[buf->size] = '\0';
}

static inline void buf_append(struct buf *buf, const void *data, size_t size)
{
	char *to = buf_reserve(buf, size);
	if (!to)
		return;
	if (size != 0)
		memcpy(to, data, size);
	buf_commit(buf, size);
}

static inline void buf_append_bytes(struct buf *buf, struct bytes bytes)
{
	buf_append(buf, bytes.data, bytes.size);
}

static inline void buf_append_text(struct buf *buf, const char *text)
{
	buf_append(buf, text, strlen(text));
}

static inline void buf_append_char(struct buf *buf, char c)
{
	buf_append(buf, &c, 1);
}

/* What it holds; present (never NULL) even when empty. */
struct bytes buf_bytes(const struct buf *buf);

static inline void buf_cleanup(struct buf *buf)
{
	buf_free(buf);
}
#define CLEANUP_BUF __attribute__((cleanup(buf_cleanup)))

/*
 * A bump allocator for everything that one effect needs: reset between effects, never freed piecemeal. Fixed capacity:
 * allocation past it returns NULL.
 */
struct arena {
	char *data; /* owned */
	size_t capacity;
	size_t used;
};

bool arena_init(struct arena *arena, size_t capacity);
void arena_free(struct arena *arena);
static inline void arena_reset(struct arena *arena)
{
	arena->used = 0;
}
/* Memory for `size` bytes, aligned for any type, not cleared; NULL when the arena is full. */
void *arena_alloc(struct arena *arena, size_t size);
/* A copy of the bytes followed by a NUL that is not counted; absent when the arena is full or the bytes are absent. */
struct bytes arena_copy(struct arena *arena, struct bytes bytes);
struct bytes arena_format(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
