#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void fd_close(int *fd)
{
	if (*fd < 0)
		return;
	int saved = errno;
	/* Never retried on EINTR: Linux has closed it already, and a retry could close another thread's descriptor. */
	close(*fd);
	*fd = -1;
	errno = saved;
}

ssize_t fd_read_full(int fd, void *data, size_t size)
{
	if (size > SSIZE_MAX) {
		errno = EINVAL;
		return -1;
	}
	size_t done = 0;
	while (done < size) {
		ssize_t n = read(fd, (char *)data + done, size - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

bool fd_write_full(int fd, const void *data, size_t size)
{
	size_t done = 0;
	while (done < size) {
		ssize_t n = write(fd, (const char *)data + done, size - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		if (n == 0) {
			errno = EIO;
			return false;
		}
		done += (size_t)n;
	}
	return true;
}

ssize_t fd_read_file(int directory, const char *path, char *data, size_t size)
{
	if (size == 0) {
		errno = EINVAL;
		return -1;
	}
	/* Non-blocking: the agent may have put a FIFO where we expect a file. */
	int fd CLEANUP_FD = openat(directory, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat status;
	if (fd < 0 || fstat(fd, &status) < 0)
		return -1;
	if (!S_ISREG(status.st_mode)) {
		errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
		return -1;
	}
	ssize_t n = fd_read_full(fd, data, size);
	if (n < 0)
		return -1;
	if ((size_t)n == size) {
		errno = EFBIG;
		return -1;
	}
	data[n] = '\0';
	return n;
}

ssize_t fd_where(int fd, char *out, size_t size)
{
	char link[32];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, out, size);
	if (n < 0)
		return -1;
	if ((size_t)n >= size) {
		errno = ENAMETOOLONG;
		return -1;
	}
	out[n] = '\0';
	return n;
}

static void close_between(int first, int last)
{
	if (first > last || syscall(SYS_close_range, (unsigned)first, (unsigned)last, 0U) == 0)
		return;
	/* An outer sandbox may refuse close_range. */
	long limit = sysconf(_SC_OPEN_MAX);
	for (int fd = first; fd <= last && fd < limit; fd++)
		close(fd);
}

void fd_close_from(int first, const int *keep, size_t count)
{
	for (;;) {
		int kept = -1;
		for (size_t i = 0; i < count; i++)
			if (keep[i] >= first && (kept < 0 || keep[i] < kept))
				kept = keep[i];
		close_between(first, kept < 0 ? INT_MAX : kept - 1);
		if (kept < 0 || kept == INT_MAX)
			return;
		first = kept + 1;
	}
}

bool fd_copy(int from, int to)
{
	enum { PIECE = 1 << 16 };
	char piece[PIECE];
	ssize_t sent = 1;

	while (sent > 0) {
		sent = sendfile(to, from, NULL, 1 << 24);
		if (sent < 0 && errno == EINTR)
			sent = 1;
	}
	/* Not every target takes it (one that is opened for appending). */
	while (sent < 0 && errno == EINVAL) {
		ssize_t got = fd_read_full(from, piece, sizeof(piece));
		if (got <= 0)
			return got == 0;
		if (!fd_write_full(to, piece, (size_t)got))
			return false;
		errno = EINVAL;
	}
	return sent == 0;
}

bool fd_place(int folder, const char *from, const char *to)
{
	struct stat status;

	if (linkat(folder, from, folder, to, 0) == 0)
		return unlinkat(folder, from, 0) == 0;
	if (errno == EEXIST)
		return false;
	/* File systems without links, and then those that cannot do this either. */
	if (renameat2(folder, from, folder, to, RENAME_NOREPLACE) == 0)
		return true;
	if (errno == EEXIST)
		return false;
	if (fstatat(folder, to, &status, AT_SYMLINK_NOFOLLOW) == 0) {
		errno = EEXIST;
		return false;
	}
	return renameat(folder, from, folder, to) == 0;
}
