/*
 * What the programs about files share: expectations about one name, and calls made without root's rights.
 */
#pragma once

#include "row.h"

/* Newer architectures lack the calls that have a younger brother with a directory. Their cases do nothing there. */
__attribute__((unused)) static void row_nothing(void)
{
}

#ifdef SYS_open
#define ROW_OLD_CALL(run) (run)
#else
#define ROW_OLD_CALL(run) (false ? (run) : row_nothing)
#define SYS_open (-1)
#define SYS_creat (-1)
#define SYS_rename (-1)
#define SYS_unlink (-1)
#define SYS_rmdir (-1)
#define SYS_mkdir (-1)
#define SYS_mknod (-1)
#define SYS_link (-1)
#define SYS_symlink (-1)
#define SYS_chmod (-1)
#define SYS_chown (-1)
#define SYS_lchown (-1)
#define SYS_utime (-1)
#define SYS_utimes (-1)
#define SYS_futimesat (-1)
#endif

/* A file of root's on every machine: what others may not do, they may not do to it. */
#define ROW_FOREIGN "/etc/passwd"

/* Begin an expectation about a name in the working directory. */
__attribute__((unused)) static void row_named(const char *row, const char *kind, long result, const char *name)
{
	row_expect(row, kind, result);
	row_text("path", row_path(name));
	row_text("as_given", name);
}

/* The same, where the name is given from another directory, through a link, or with a slash behind it. */
__attribute__((unused)) static void row_given(const char *row, const char *kind, long result, const char *given,
					      const char *name)
{
	row_expect(row, kind, result);
	row_text("path", row_path(name));
	row_text("as_given", given);
}

/* The same, about a file that is named by a descriptor. */
__attribute__((unused)) static void row_descriptor(const char *row, const char *kind, long result, int fd)
{
	char name[64], where[PATH_MAX];
	struct stat status;

	row_expect(row, kind, result);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	ssize_t size = readlink(name, where, sizeof(where) - 1);
	if (size < 0 || fstat(fd, &status) != 0)
		abort();
	where[size] = 0;
	row_text("path", where);
	row_inode("", &status);
	row_number("args.fd", fd);
}

/* Identity of what stands under a name now, the link itself if it is one. */
__attribute__((unused)) static void row_inode_of(const char *prefix, const char *name)
{
	struct stat status;

	if (lstat(name, &status) != 0)
		abort();
	row_inode(prefix, &status);
}

__attribute__((unused)) static void row_to(const char *name)
{
	row_text("to.path", row_path(name));
	row_text("to.as_given", name);
}

__attribute__((unused)) static void row_mode(unsigned mode)
{
	char text[16];

	snprintf(text, sizeof(text), "%04o", mode);
	row_text("mode", text);
}

__attribute__((unused)) static void row_hex(const char *key, unsigned long long value)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%llx", value);
	row_text(key, text);
}

/* End the expectation; the object may wait for somebody (a pipe, a device), so its result need not be seen. */
__attribute__((unused)) static void row_done_waiting(void)
{
	row_put("},\"waits\":true}\n");
	if (write(ROW_FD, row_line, row_used) < 0 && errno != EBADF)
		abort();
}

/* A file of our own, open for reading and writing, with one byte in it. */
__attribute__((unused)) static int row_make(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, "x", 1) != 1)
		abort();
	return fd;
}

__attribute__((unused)) static void row_touch(const char *name)
{
	close(row_make(name));
}

/* Folders outlive a case that ran before. */
__attribute__((unused)) static void row_folder(const char *name)
{
	if (mkdir(name, 0755) != 0 && errno != EEXIST)
		abort();
}

__attribute__((unused)) static void row_link(const char *text, const char *name)
{
	if (symlink(text, name) != 0 && errno != EEXIST)
		abort();
}

/* Between these two root makes its calls as nobody; errno stays what the call made it. */
static bool row_dropped;

__attribute__((unused)) static void row_drop(void)
{
	enum { NOBODY = 65534 };

	row_dropped = geteuid() == 0;
	if (row_dropped && seteuid(NOBODY) != 0)
		abort();
}

__attribute__((unused)) static void row_regain(void)
{
	int kept = errno;

	if (row_dropped && seteuid(0) != 0)
		abort();
	errno = kept;
}

/* A call made by somebody who is not root, errno as it left it. */
#define ROW_AS_NOBODY(call)               \
	({                                \
		row_drop();               \
		long row_result = (call); \
		row_regain();             \
		row_result;               \
	})

/* Begin an expectation about ROW_FOREIGN, which is given by its absolute path. */
__attribute__((unused)) static void row_foreign(const char *row, const char *kind, long result)
{
	static char path[PATH_MAX];
	struct stat status;

	row_expect(row, kind, result);
	if (!realpath(ROW_FOREIGN, path) || stat(path, &status) != 0)
		abort();
	row_text("path", path);
	row_inode("", &status);
}
