/*
 * Descriptors: ownership, bounded reads and complete writes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/err.h"

/* Close and set to -1; errno is kept. */
void fd_close(int *fd);
#define CLEANUP_FD __attribute__((cleanup(fd_close)))

/* Hand over ownership: returns the descriptor and leaves -1 behind. */
static inline int fd_steal(int *fd)
{
	int stolen = *fd;
	*fd = -1;
	return stolen;
}

/* Read until end of file or `size` bytes, across EINTR and short reads. Returns bytes read, -1 with errno. */
ssize_t fd_read_full(int fd, void *data, size_t size);
/* Write everything, across EINTR and short writes. */
bool fd_write_full(int fd, const void *data, size_t size);
/* Copy from where `from` stands to its end, with the kernel's help where it can. */
bool fd_copy(int from, int to);
/*
 * Give a finished file of a folder its name, unless there is one of that name: false with EEXIST then. The old name is gone
 * after success.
 */
bool fd_place(int folder, const char *from, const char *to);
/* Read a small file relative to `directory` into `data` (at most size-1 bytes, NUL-terminated). -1 with errno; EFBIG
   when it holds more, EINVAL when it is not a regular file (one that blocks could stop a whole tree). */
ssize_t fd_read_file(int directory, const char *path, char *data, size_t size);

/* The text behind /proc/self/fd/N: where a descriptor leads, NUL-terminated. Returns its length, -1 with errno
   (ENAMETOOLONG when it does not fit). */
ssize_t fd_where(int fd, char *out, size_t size);

/* Close every descriptor from `first` on but those listed (ascending order not required). */
void fd_close_from(int first, const int *keep, size_t count);
