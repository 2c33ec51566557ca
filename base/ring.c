#include "base/ring.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"

enum { RING_ALIGNMENT = 8, RING_LENGTH_SIZE = 4, RING_CACHE_LINE = 64, RING_ALIVE_MS = 50 };
static const size_t ring_capacity_max = (size_t)1 << 30;

/*
 * What both processes see. Indices count bytes since the start and never wrap; where they point to is their remainder
 * by the capacity. A sleeper sets its flag to 1 and waits on it as a futex; who wakes it takes the flag back first.
 */
struct ring_shared {
	alignas(RING_CACHE_LINE) atomic_uint_least64_t committed; /* written by the producer */
	atomic_uint_least32_t finished;
	alignas(RING_CACHE_LINE) atomic_uint_least64_t released; /* written by the consumer */
	alignas(RING_CACHE_LINE) atomic_uint_least32_t consumer_sleeps;
	alignas(RING_CACHE_LINE) atomic_uint_least32_t producer_sleeps;
};
static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2, "locks do not work across processes");
static_assert(sizeof(atomic_uint_least32_t) == 4, "a futex has 32 bits");

struct ring {
	struct ring_shared *shared; /* owned mapping: a header, the data, the data again */
	char *data;
	size_t header_size;
	size_t capacity;
	struct ring_identity identity;
	/* The consumer's own, out of the producer's reach. */
	uint64_t released;
	size_t shown; /* bytes of the entry that ring_peek() showed, with its length and padding */
	bool corrupt;
};

static size_t ring_mapping_size(const struct ring *ring)
{
	return ring->header_size + 2 * ring->capacity;
}

/* The data is mapped twice in a row, so that an entry that wraps is contiguous all the same. */
static bool ring_map(struct ring *ring, int fd, struct err *err)
{
	char *base = mmap(NULL, ring_mapping_size(ring), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return err_set(err, errno, "reserve memory for a ring of %zu bytes", ring->capacity);
	size_t once = ring->header_size + ring->capacity;
	if (mmap(base, once, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
	    mmap(base + once, ring->capacity, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		 (off_t)ring->header_size) == MAP_FAILED) {
		err_set(err, errno, "map a ring of %zu bytes", ring->capacity);
		munmap(base, ring_mapping_size(ring));
		return false;
	}
	ring->shared = (struct ring_shared *)(void *)base;
	ring->data = base + ring->header_size;
	return true;
}

struct ring *ring_create(size_t capacity, struct err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	if (capacity < page || capacity > ring_capacity_max || (capacity & (capacity - 1)) != 0) {
		err_set(err, EINVAL, "ring of %zu bytes", capacity);
		return NULL;
	}
	int fd CLEANUP_FD = memfd_create("assure-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0) {
		err_set(err, errno, "create a memory file");
		return NULL;
	}
	/* Beyond it the kernel would not only refuse, but kill us (SIGXFSZ). */
	struct rlimit limit;
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < page + capacity) {
		err_set(err, EFBIG, "make a memory file of %zu KiB under a limit of %llu KiB for files",
			(page + capacity) >> 10, (unsigned long long)limit.rlim_cur >> 10);
		err_hint(err, "raise the limit: ulimit -f");
		return NULL;
	}
	/* Whoever could shrink the file under us would kill us by SIGBUS. */
	if (ftruncate(fd, (off_t)(page + capacity)) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		err_set(err, errno, "size a memory file of %zu bytes", capacity);
		return NULL;
	}
	struct ring *ring = calloc(1, sizeof(*ring));
	if (!ring) {
		err_set(err, ENOMEM, "create a ring");
		return NULL;
	}
	struct stat about;
	if (fstat(fd, &about) == 0)
		ring->identity = (struct ring_identity){about.st_dev, about.st_ino};
	ring->header_size = page;
	ring->capacity = capacity;
	if (!ring_map(ring, fd, err)) {
		free(ring);
		return NULL;
	}
	return ring;
}

struct ring_identity ring_identity(const struct ring *ring)
{
	return ring->identity;
}

void ring_free(struct ring *ring)
{
	if (!ring)
		return;
	munmap(ring->shared, ring_mapping_size(ring));
	free(ring);
}

static void ring_sleep(atomic_uint_least32_t *flag, int timeout_ms)
{
	struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
	syscall(SYS_futex, flag, FUTEX_WAIT, 1, &timeout, NULL, 0);
}

static void ring_wake(atomic_uint_least32_t *flag)
{
	if (atomic_load(flag) != 0 && atomic_exchange(flag, 0) != 0)
		syscall(SYS_futex, flag, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static size_t ring_entry_size(size_t content)
{
	return (RING_LENGTH_SIZE + content + RING_ALIGNMENT - 1) & ~(size_t)(RING_ALIGNMENT - 1);
}

enum ring_room { RING_ROOM, RING_FULL, RING_BROKEN };

static enum ring_room ring_room(struct ring *ring, uint64_t committed, size_t size)
{
	/* Sequentially consistent, with the flag before it: see ring_await_room(). */
	uint64_t used = committed - atomic_load(&ring->shared->released);
	if (used > ring->capacity)
		return RING_BROKEN;
	return ring->capacity - used >= size ? RING_ROOM : RING_FULL;
}

/*
 * Both sides set their flag and then look at the other's index, or move their index and then look at the other's flag,
 * all sequentially consistent: one of the two always sees the other, so no wake-up is lost. A side that was killed
 * leaves nothing locked behind.
 */
static bool ring_await_room(struct ring *ring, uint64_t committed, size_t size, bool (*alive)(void *), void *context)
{
	for (;;) {
		enum ring_room room = ring_room(ring, committed, size);
		if (room != RING_FULL)
			return room == RING_ROOM;
		ring_wake(&ring->shared->consumer_sleeps);
		atomic_store(&ring->shared->producer_sleeps, 1);
		if (ring_room(ring, committed, size) == RING_FULL)
			ring_sleep(&ring->shared->producer_sleeps, RING_ALIVE_MS);
		atomic_store(&ring->shared->producer_sleeps, 0);
		if (ring_room(ring, committed, size) == RING_FULL && alive && !alive(context))
			return false;
	}
}

static void ring_copy(char *to, struct bytes from)
{
	if (from.size != 0)
		memcpy(to, from.data, from.size);
}

bool ring_put(struct ring *ring, struct bytes head, struct bytes body, bool (*alive)(void *), void *context)
{
	if (head.size > ring->capacity || body.size > ring->capacity)
		return false;
	uint32_t content = (uint32_t)(head.size + body.size);
	size_t size = ring_entry_size(content);
	uint64_t committed = atomic_load_explicit(&ring->shared->committed, memory_order_relaxed);
	if (size > ring->capacity || committed % RING_ALIGNMENT != 0 ||
	    atomic_load_explicit(&ring->shared->finished, memory_order_relaxed) != 0)
		return false;
	if (!ring_await_room(ring, committed, size, alive, context))
		return false;

	char *entry = ring->data + (committed & (ring->capacity - 1));
	memcpy(entry, &content, RING_LENGTH_SIZE);
	ring_copy(entry + RING_LENGTH_SIZE, head);
	ring_copy(entry + RING_LENGTH_SIZE + head.size, body);
	atomic_store(&ring->shared->committed, committed + size);

	if (ring_pending(ring) >= ring->capacity / 8)
		ring_wake(&ring->shared->consumer_sleeps);
	return true;
}

void ring_finish(struct ring *ring)
{
	atomic_store(&ring->shared->finished, 1);
	ring_wake(&ring->shared->consumer_sleeps);
}

static enum ring_state ring_corrupt(struct ring *ring)
{
	ring->corrupt = true;
	return RING_CORRUPT;
}

enum ring_state ring_peek(struct ring *ring, struct bytes *entry)
{
	*entry = BYTES_NONE;
	ring->shown = 0;
	if (ring->corrupt)
		return RING_CORRUPT;

	/* Finished is read first: what was committed before it is then seen as well. */
	bool finished = atomic_load_explicit(&ring->shared->finished, memory_order_acquire) != 0;
	uint64_t committed = atomic_load_explicit(&ring->shared->committed, memory_order_acquire);
	uint64_t pending = committed - ring->released;
	if (pending > ring->capacity || pending % RING_ALIGNMENT != 0 ||
	    atomic_load_explicit(&ring->shared->released, memory_order_relaxed) != ring->released)
		return ring_corrupt(ring);
	if (pending == 0)
		return finished ? RING_FINISHED : RING_EMPTY;

	/* Read once: a hostile producer can change it after it was checked. */
	char *at = ring->data + (ring->released & (ring->capacity - 1));
	uint32_t content = __atomic_load_n((uint32_t *)(void *)at, __ATOMIC_RELAXED);
	size_t size = ring_entry_size(content);
	if (size > pending)
		return ring_corrupt(ring);
	ring->shown = size;
	*entry = (struct bytes){at + RING_LENGTH_SIZE, content};
	return RING_ENTRY;
}

void ring_consume(struct ring *ring)
{
	if (ring->shown == 0)
		return;
	ring->released += ring->shown;
	ring->shown = 0;
	atomic_store(&ring->shared->released, ring->released);
	/* A blocked producer is let sleep until there is room for many entries, or it would be woken for each. */
	if (ring_pending(ring) <= ring->capacity / 2)
		ring_wake(&ring->shared->producer_sleeps);
}

void ring_wait(struct ring *ring, int timeout_ms)
{
	struct ring_shared *shared = ring->shared;
	if (ring->corrupt || timeout_ms <= 0)
		return;
	atomic_store(&shared->consumer_sleeps, 1);
	if (atomic_load(&shared->committed) == ring->released && atomic_load(&shared->finished) == 0)
		ring_sleep(&shared->consumer_sleeps, timeout_ms);
	atomic_store(&shared->consumer_sleeps, 0);
}

size_t ring_pending(const struct ring *ring)
{
	uint64_t pending = atomic_load(&ring->shared->committed) - atomic_load(&ring->shared->released);
	return pending <= ring->capacity ? (size_t)pending : ring->capacity;
}
