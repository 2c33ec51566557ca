#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

static void test_close_and_steal(void **state)
{
	(void)state;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int number = fd;
	errno = ENOTTY;
	int stolen = fd_steal(&fd);
	assert_int_equal(fd, -1);
	fd_close(&fd);
	assert_true(fcntl(number, F_GETFD) >= 0);
	errno = ENOTTY;
	fd_close(&stolen);
	assert_int_equal(errno, ENOTTY);
	assert_int_equal(stolen, -1);
	assert_int_equal(fcntl(number, F_GETFD), -1);
}

static void test_full_transfers(void **state)
{
	(void)state;
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	enum { SIZE = 300000 }; /* more than a pipe holds: both sides see short transfers */
	pid_t child = fork();
	if (child == 0) {
		char *data = calloc(1, SIZE);
		data[SIZE - 1] = 'z';
		_exit(fd_write_full(ends[1], data, SIZE) ? 0 : 1);
	}
	close(ends[1]);
	char *data = malloc(SIZE + 1);
	assert_int_equal(fd_read_full(ends[0], data, SIZE + 1), SIZE);
	assert_int_equal(data[SIZE - 1], 'z');
	free(data);
	close(ends[0]);
	int status;
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	assert_int_equal(fd_read_full(-1, &status, 1), -1);
	assert_int_equal(errno, EBADF);
	assert_false(fd_write_full(-1, "x", 1));
	assert_true(fd_write_full(-1, "", 0));
}

static void test_read_file(void **state)
{
	(void)state;
	char directory[] = "/tmp/test_fd.XXXXXX";
	assert_non_null(mkdtemp(directory));
	int at = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = openat(at, "five", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd_write_full(fd, "a\0cde", 5));
	fd_close(&fd);

	char data[6];
	memset(data, 'x', sizeof(data));
	assert_int_equal(fd_read_file(at, "five", data, 6), 5);
	assert_memory_equal(data, "a\0cde\0", 6);
	assert_int_equal(fd_read_file(at, "five", data, 5), -1);
	assert_int_equal(errno, EFBIG);
	assert_int_equal(fd_read_file(at, "five", data, 0), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(fd_read_file(at, "none", data, 6), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(fd_read_file(at, ".", data, 6), -1);
	assert_int_equal(errno, EISDIR);
	assert_int_equal(mkfifoat(at, "fifo", 0600), 0);
	alarm(5);
	assert_int_equal(fd_read_file(at, "fifo", data, 6), -1);
	assert_int_equal(errno, EINVAL);
	alarm(0);
	char status[16384];
	assert_true(fd_read_file(AT_FDCWD, "/proc/self/status", status, sizeof(status)) > 0);

	unlinkat(at, "five", 0);
	unlinkat(at, "fifo", 0);
	fd_close(&at);
	rmdir(directory);
}

static void test_where(void **state)
{
	(void)state;
	int fd CLEANUP_FD = open("/dev/null", O_RDONLY | O_CLOEXEC);
	char out[10];
	assert_int_equal(fd_where(fd, out, 10), 9);
	assert_string_equal(out, "/dev/null");
	assert_int_equal(fd_where(fd, out, 9), -1);
	assert_int_equal(errno, ENAMETOOLONG);
	assert_int_equal(fd_where(-1, out, 10), -1);
	assert_int_equal(errno, ENOENT);
}

static void test_close_from(void **state)
{
	(void)state;
	pid_t child = fork();
	if (child == 0) {
		for (int fd = 100; fd < 110; fd++)
			dup2(0, fd);
		static const int keep[] = {107, 50, 101, 107, 102};
		fd_close_from(101, keep, sizeof(keep) / sizeof(keep[0]));
		for (int fd = 100; fd < 110; fd++) {
			bool open = fcntl(fd, F_GETFD) >= 0;
			if (open != (fd == 100 || fd == 101 || fd == 102 || fd == 107))
				_exit(fd);
		}
		fd_close_from(100, NULL, 0);
		for (int fd = 100; fd < 110; fd++)
			if (fcntl(fd, F_GETFD) >= 0)
				_exit(fd);
		_exit(0);
	}
	int status = -1;
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_close_and_steal), cmocka_unit_test(test_full_transfers),
	    cmocka_unit_test(test_read_file),       cmocka_unit_test(test_where),
	    cmocka_unit_test(test_close_from),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
