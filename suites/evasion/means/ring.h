/* io_uring with nothing but the kernel's own interface: one entry at a time. */
#pragma once

#include "ev.h"

#include <linux/io_uring.h>

struct ring {
	int fd;
	bool polled;
	struct io_uring_params params;
	char *submit, *complete;
	struct io_uring_sqe *entries;
};

EV_UNUSED static void *ring_map(const struct ring *ring, size_t size, off_t what)
{
	void *area = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd, what);

	MUST(area != MAP_FAILED);
	return area;
}

/* False when it is refused; then `did refused` has been said. */
EV_UNUSED static bool ring_begin(struct ring *ring, bool polled)
{
	memset(ring, 0, sizeof(*ring));
	ring->polled = polled;
	ring->params.flags = polled ? IORING_SETUP_SQPOLL : 0;
	ring->params.sq_thread_idle = 2000;
	ring->fd = (int)syscall(SYS_io_uring_setup, 8, &ring->params);
	if (ring->fd < 0) {
		did("refused %s", error_name(errno));
		return false;
	}
	const struct io_sqring_offsets *sq = &ring->params.sq_off;
	const struct io_cqring_offsets *cq = &ring->params.cq_off;
	ring->submit = ring_map(ring, sq->array + ring->params.sq_entries * sizeof(uint32_t), IORING_OFF_SQ_RING);
	ring->complete =
	    ring_map(ring, cq->cqes + ring->params.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
	ring->entries = ring_map(ring, ring->params.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
	return true;
}

/* A counter of one of the two queues. */
EV_UNUSED static uint32_t *ring_word(char *area, uint32_t offset)
{
	return (uint32_t *)(void *)(area + offset);
}

/* Let the kernel do one thing. Returns its result. */
EV_UNUSED static int ring_do(struct ring *ring, const struct io_uring_sqe *what)
{
	uint32_t *tail = ring_word(ring->submit, ring->params.sq_off.tail);
	uint32_t mask = *ring_word(ring->submit, ring->params.sq_off.ring_mask);
	uint32_t slot = *tail & mask;

	ring->entries[slot] = *what;
	ring_word(ring->submit, ring->params.sq_off.array)[slot] = slot;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_SEQ_CST);
	if (!ring->polled)
		MUST(syscall(SYS_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1);
	/* The kernel's thread sleeps until its first work. */
	else if (__atomic_load_n(ring_word(ring->submit, ring->params.sq_off.flags), __ATOMIC_SEQ_CST) &
		 IORING_SQ_NEED_WAKEUP)
		syscall(SYS_io_uring_enter, ring->fd, 1, 0, IORING_ENTER_SQ_WAKEUP, NULL, 0);

	uint32_t *head = ring_word(ring->complete, ring->params.cq_off.head);
	const uint32_t *end = ring_word(ring->complete, ring->params.cq_off.tail);
	for (int i = 0; *head == __atomic_load_n(end, __ATOMIC_SEQ_CST); i++) {
		errno = ETIMEDOUT;
		MUST(i < 10000);
		pause_ms(1);
		if (ring->polled && i % 100 == 99)
			syscall(SYS_io_uring_enter, ring->fd, 1, 0, IORING_ENTER_SQ_WAKEUP, NULL, 0);
	}
	const struct io_uring_cqe *cqes = (const void *)(ring->complete + ring->params.cq_off.cqes);
	int result = cqes[*head & *ring_word(ring->complete, ring->params.cq_off.ring_mask)].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_SEQ_CST);
	if (result < 0)
		errno = -result;
	return result;
}

EV_UNUSED static uint64_t ring_text(const char *text)
{
	return (uint64_t)(uintptr_t)text;
}
