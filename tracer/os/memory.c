#include "os/memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE = 4096 };

int memory_read(int mem, uint64_t address, void *out, size_t size)
{
	char *cursor = out;

	if (size == 0)
		return 0;
	if (address > INT64_MAX || (uint64_t)INT64_MAX - address < size)
		return EFAULT;
	while (size > 0) {
		ssize_t got = pread(mem, cursor, size, (off_t)address);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return EFAULT;
		cursor += got;
		address += (uint64_t)got;
		size -= (size_t)got;
	}
	return 0;
}

/*
 * A page that is never filled keeps whoever reads it for as long as it likes, and a tree can have any number of such pages:
 * no more than these wait, so that somebody is left for the calls of the others.
 */
enum { WAITING_MOST = 128 };
static atomic_int waiting;

bool memory_is_crowded(void)
{
	return atomic_load(&waiting) >= WAITING_MOST;
}

/* EBUSY: too many wait already. */
static ssize_t read_patiently(pid_t tid, uint64_t address, void *out, size_t size)
{
	struct iovec here = {out, size};
	struct iovec there = {(void *)(uintptr_t)address, size};
	ssize_t got = -1;
	int error = EBUSY;

	if (atomic_fetch_add(&waiting, 1) < WAITING_MOST) {
		got = process_vm_readv(tid, &here, 1, &there, 1, 0);
		error = errno;
	}
	atomic_fetch_sub(&waiting, 1);
	errno = error;
	return got;
}

int memory_read_as_task(int mem, pid_t tid, uint64_t address, void *out, size_t size)
{
	if (size == 0)
		return 0;
	ssize_t got = read_patiently(tid, address, out, size);
	if (got < 0 && errno == EBUSY)
		return memory_read(mem, address, out, size);
	if (got < 0)
		return errno;
	return (size_t)got == size ? 0 : EFAULT;
}

ssize_t memory_read_some(int mem, uint64_t address, void *out, size_t size)
{
	ssize_t got = -1;

	/* The kernel itself goes from page to page until one cannot be read. */
	do {
		if (address <= INT64_MAX)
			got = pread(mem, out, size, (off_t)address);
		else
			errno = EFAULT;
	} while (got < 0 && errno == EINTR);
	return got > 0 ? got : -1;
}

ssize_t memory_read_pages(pid_t tid, uint64_t address, void *out, size_t size)
{
	enum { PAGES = 8 };
	struct iovec here = {out, size}, there[PAGES];
	size_t count = 0;

	/* An element is read whole or not at all. */
	for (size_t done = 0; done < size && count < PAGES; count++) {
		size_t piece = PAGE - (size_t)((address + done) % PAGE);
		piece = piece < size - done ? piece : size - done;
		there[count] = (struct iovec){(void *)(uintptr_t)(address + done), piece};
		done += piece;
	}
	ssize_t got = process_vm_readv(tid, &here, 1, there, count, 0);
	return got > 0 ? got : -1;
}

/* Where a string is read from: /proc/TID/mem, or the task itself where it is named. */
struct source {
	int mem;
	pid_t tid;
};

static ssize_t read_piece(const struct source *source, uint64_t address, char *out, size_t size)
{
	ssize_t got = -1;

	errno = EBUSY;
	if (source->tid > 0)
		got = read_patiently(source->tid, address, out, size);
	return got < 0 && errno == EBUSY ? pread(source->mem, out, size, (off_t)address) : got;
}

static ssize_t read_string(const struct source *source, uint64_t address, char *out, size_t size)
{
	size_t length = 0;

	while (length < size) {
		/* Up to the end of the page: the next one may not be mapped, and need not be. */
		size_t piece = PAGE - (size_t)(address % PAGE);
		if (piece > size - length)
			piece = size - length;
		if (address > INT64_MAX)
			return -EFAULT;
		ssize_t got = read_piece(source, address, out + length, piece);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -EFAULT;
		const char *end = memchr(out + length, 0, (size_t)got);
		if (end)
			return end - out;
		length += (size_t)got;
		address += (uint64_t)got;
	}
	return -ENAMETOOLONG;
}

ssize_t memory_read_string(int mem, uint64_t address, char *out, size_t size)
{
	const struct source source = {.mem = mem};

	return read_string(&source, address, out, size);
}

ssize_t memory_read_string_as_task(int mem, pid_t tid, uint64_t address, char *out, size_t size)
{
	const struct source source = {.mem = mem, .tid = tid};

	return read_string(&source, address, out, size);
}
