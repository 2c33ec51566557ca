/*
 * The times of a descriptor's file: calls that have a place for a name and are given none.
 */
#include <sys/time.h>

#include "row_file.h"

enum { ACCESSED = 1000000000, CHANGED = 1234567890 };

#define ACCESSED_TEXT "2001-09-09T01:46:40.000000000Z"
#define CHANGED_TEXT "2009-02-13T23:31:30.000000000Z"

static void timed(const char *access, const char *change)
{
	row_text("args.atime", access);
	row_text("args.mtime", change);
	row_done();
}

/* Begin an expectation about a call without a name: the object is the descriptor's file. */
static void pathless(const char *row, long result, int fd)
{
	char name[64], where[PATH_MAX];
	struct stat status;

	row_expect(row, "file.times", result);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	ssize_t size = readlink(name, where, sizeof(where) - 1);
	if (size < 0 || fstat(fd, &status) != 0)
		abort();
	where[size] = 0;
	row_text("path", where);
	row_inode("", &status);
}

static void must_fail(long result, int error)
{
	if (result != -1 || errno != error)
		abort();
}

/* What the call itself left behind decides, not what it said. */
static void must_have(int fd, time_t changed)
{
	struct stat status;

	if (fstat(fd, &status) != 0 || status.st_mtim.tv_sec != changed)
		abort();
}

static void test_futimesat(void)
{
	struct timeval times[2] = {{ACCESSED, 0}, {CHANGED, 500000}};
	struct timeval wrong[2] = {{ACCESSED, 0}, {CHANGED, 1000000}};

	row_touch("pathless");
	int fd = open("pathless", O_RDONLY | O_CLOEXEC), only = open("pathless", O_PATH | O_CLOEXEC);
	long result = syscall(SYS_futimesat, fd, NULL, times);
	must_have(fd, CHANGED);
	pathless("futimesat", result, fd);
	timed(ACCESSED_TEXT, "2009-02-13T23:31:30.500000000Z");
	result = syscall(SYS_futimesat, fd, NULL, NULL);
	pathless("futimesat", result, fd);
	timed("UTIME_NOW", "UTIME_NOW");
	must_fail(result = syscall(SYS_futimesat, only, NULL, times), EBADF);
	pathless("futimesat", result, only);
	timed(ACCESSED_TEXT, "2009-02-13T23:31:30.500000000Z");
	must_fail(result = syscall(SYS_futimesat, fd, NULL, wrong), EINVAL);
	pathless("futimesat", result, fd);
	row_done();
	close(only);
	must_fail(result = syscall(SYS_futimesat, only, NULL, times), EBADF);
	row_expect("futimesat", "file.times", result);
	timed(ACCESSED_TEXT, "2009-02-13T23:31:30.500000000Z");
	close(fd);

	fd = open(ROW_FOREIGN, O_RDONLY | O_CLOEXEC);
	must_fail(result = ROW_AS_NOBODY(syscall(SYS_futimesat, fd, NULL, times)), EPERM);
	row_foreign("futimesat", "file.times", result);
	timed(ACCESSED_TEXT, "2009-02-13T23:31:30.500000000Z");
	close(fd);
}

static void test_utimensat(void)
{
	struct timespec times[2] = {{ACCESSED, 1}, {CHANGED, 0}}, part[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};

	row_touch("pathless");
	row_folder("folder");
	int fd = open("pathless", O_RDONLY | O_CLOEXEC), only = open("pathless", O_PATH | O_CLOEXEC);
	int folder = open("folder", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long result = syscall(SYS_utimensat, fd, NULL, times, 0);
	must_have(fd, CHANGED);
	pathless("utimensat", result, fd);
	row_json("flags", "[]");
	timed("2001-09-09T01:46:40.000000001Z", CHANGED_TEXT);
	result = syscall(SYS_utimensat, fd, NULL, part, 0);
	must_have(fd, CHANGED);
	pathless("utimensat", result, fd);
	timed("UTIME_NOW", "UTIME_OMIT");
	result = syscall(SYS_utimensat, folder, NULL, times, 0);
	must_have(folder, CHANGED);
	pathless("utimensat", result, folder);
	timed("2001-09-09T01:46:40.000000001Z", CHANGED_TEXT);
	must_fail(result = syscall(SYS_utimensat, only, NULL, times, 0), EBADF);
	pathless("utimensat", result, only);
	timed("2001-09-09T01:46:40.000000001Z", CHANGED_TEXT);
	must_fail(result = syscall(SYS_utimensat, fd, NULL, times, AT_SYMLINK_NOFOLLOW), EINVAL);
	pathless("utimensat", result, fd);
	row_json("flags", "[\"AT_SYMLINK_NOFOLLOW\"]");
	timed("2001-09-09T01:46:40.000000001Z", CHANGED_TEXT);
	close(only);
	must_fail(result = syscall(SYS_utimensat, only, NULL, times, 0), EBADF);
	row_expect("utimensat", "file.times", result);
	timed("2001-09-09T01:46:40.000000001Z", CHANGED_TEXT);
	close(folder);
	close(fd);

	fd = open(ROW_FOREIGN, O_RDONLY | O_CLOEXEC);
	must_fail(result = ROW_AS_NOBODY(syscall(SYS_utimensat, fd, NULL, times, 0)), EPERM);
	row_foreign("utimensat", "file.times", result);
	timed("2001-09-09T01:46:40.000000001Z", CHANGED_TEXT);
	must_fail(result = ROW_AS_NOBODY(syscall(SYS_utimensat, fd, NULL, NULL, 0)), EACCES);
	row_foreign("utimensat", "file.times", result);
	timed("UTIME_NOW", "UTIME_NOW");
	close(fd);
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {
	    {"futimesat", ROW_OLD_CALL(test_futimesat)},
	    {"utimensat", test_utimensat},
	    {NULL, NULL},
	};

	umask(022);
	return row_main(cases, argc, argv);
}
