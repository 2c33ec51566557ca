/*
 * A bounded ring of variable-length entries in shared memory: one producing process, one consuming process.
 *
 * The monitor writes records, the scribe stores them. The memory outlives a producer that is killed: what was committed
 * can still be read. The consumer does not trust the producer's indices: every one is checked against the size.
 * Producers inside one process must serialise themselves. A hostile producer can also change an entry while it is looked
 * at: copy it first, then parse the copy.
 *
 * A wake-up costs a system call, so a sleeping consumer is woken only when an eighth of the ring waits to be read, when
 * the producer would block, and by ring_finish(). Smaller amounts are found when ring_wait() times out: its timeout
 * bounds how long an entry lies unread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

struct ring;

/*
 * Make a ring of `capacity` data bytes (a power of two, at least a page, at most 1 GiB) in an anonymous memory file; both
 * processes inherit it.
 */
struct ring *ring_create(size_t capacity, struct err *err);
void ring_free(struct ring *ring);
/* Which file its memory is, whatever link of /proc leads to it. */
struct ring_identity {
	uint64_t device, ino;
};
struct ring_identity ring_identity(const struct ring *ring);

/*
 * Commit one entry made of two parts. Blocks while the ring is full; `alive` is asked about every 50 ms while it waits,
 * and false from it gives up. Returns false when the entry can never fit or the consumer is gone. `alive` may be NULL.
 */
bool ring_put(struct ring *ring, struct bytes head, struct bytes body, bool (*alive)(void *), void *context);

/* Tell the consumer that no more will come. */
void ring_finish(struct ring *ring);

enum ring_state { RING_ENTRY, RING_EMPTY, RING_FINISHED, RING_CORRUPT };

/*
 * Look at the oldest entry without waiting. RING_ENTRY sets `entry`, contiguous and valid until ring_consume().
 * RING_FINISHED: empty and ring_finish() was called. RING_CORRUPT: the indices make no sense; nothing more can be read.
 */
enum ring_state ring_peek(struct ring *ring, struct bytes *entry);
/* Release the entry that ring_peek() showed. */
void ring_consume(struct ring *ring);
/* Return at once if anything is committed; else sleep until woken as described above, or `timeout_ms` passed. */
void ring_wait(struct ring *ring, int timeout_ms);
/* Bytes that wait to be read. */
size_t ring_pending(const struct ring *ring);
