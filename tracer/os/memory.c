#include "os/memory.h"

#include <errno.h>
#include <string.h>
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

ssize_t memory_read_string(int mem, uint64_t address, char *out, size_t size)
{
	size_t length = 0;

	while (length < size) {
		/* Up to the end of the page: the next one may not be mapped, and need not be. */
		size_t piece = PAGE - (size_t)(address % PAGE);
		if (piece > size - length)
			piece = size - length;
		if (address > INT64_MAX)
			return -EFAULT;
		ssize_t got = pread(mem, out + length, piece, (off_t)address);
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
