/*
 * Descriptors shared with another task.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/descriptor.h"

static void test_blocking_socket(void **state)
{
	struct unblocked one, two;
	int first = socket(AF_UNIX, SOCK_STREAM, 0), copy = dup(first);

	(void)state;
	int before = fcntl(first, F_GETFL);
	assert_true(unblock_begin(first, &one));
	assert_true(one.ours);
	assert_int_equal(before | O_NONBLOCK, fcntl(first, F_GETFL));
	/* Who comes second knows that the flag is not the agent's, and who leaves first leaves it. */
	assert_true(unblock_begin(copy, &two));
	assert_true(two.ours);
	unblock_end(first, &one);
	assert_int_equal(before | O_NONBLOCK, fcntl(first, F_GETFL));
	assert_int_equal(0, fcntl(first, F_SETFL, fcntl(first, F_GETFL) | O_ASYNC));
	unblock_end(copy, &two);
	assert_int_equal(before | O_ASYNC, fcntl(first, F_GETFL));
	close(first);
	close(copy);
}

static void test_other_sockets(void **state)
{
	enum { MORE = 80 };
	struct unblocked own, many[MORE];
	int sockets[MORE], ready = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), given = 0;

	(void)state;
	for (int i = 0; i < MORE; i++) {
		sockets[i] = socket(AF_UNIX, SOCK_STREAM, 0);
		given += unblock_begin(sockets[i], &many[i]);
	}
	assert_in_range(given, 1, MORE - 1);
	/* One that does not block needs no place. */
	assert_true(unblock_begin(ready, &own));
	assert_false(own.ours);
	unblock_end(ready, &own);
	assert_true(fcntl(ready, F_GETFL) & O_NONBLOCK);
	for (int i = 0; i < MORE; i++) {
		unblock_end(sockets[i], &many[i]);
		assert_false(fcntl(sockets[i], F_GETFL) & O_NONBLOCK);
		close(sockets[i]);
	}
	close(ready);
	assert_false(unblock_begin(ready, &own));
	assert_false(own.ours);
}

static void test_copy(void **state)
{
	int ends[2];

	(void)state;
	assert_int_equal(0, pipe(ends));
	int copy = descriptor_copy(gettid(), getpid(), ends[0]);
	assert_true(copy >= 0);
	assert_int_equal(FD_CLOEXEC, fcntl(copy, F_GETFD));
	assert_int_equal(1, write(ends[1], "x", 1));
	char text;
	assert_int_equal(1, read(copy, &text, 1));
	close(copy);
	close(ends[0]);
	enum { NONE = 1000 }; /* far from the numbers that a copy takes on its way */
	assert_int_equal(-1, descriptor_copy(gettid(), getpid(), NONE));
	assert_int_equal(EBADF, errno);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_blocking_socket),
	    cmocka_unit_test(test_other_sockets),
	    cmocka_unit_test(test_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
