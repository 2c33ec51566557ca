#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
/* The source itself: the tests play a producer that writes what it likes into the shared header. */
#include "../../base/ring.c" /* NOLINT(bugprone-suspicious-include): its insides are tested */

enum { CAPACITY = 65536 };

static struct ring *make(void)
{
	struct err err = {0};
	struct ring *ring = ring_create(CAPACITY, &err);
	assert_string_equal(err.text, "");
	assert_non_null(ring);
	return ring;
}

static void test_create(void **state)
{
	(void)state;
	static const size_t wrong[] = {0, 1, 64, 65535, 65537, 3 * 65536, ((size_t)1 << 31), SIZE_MAX};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct err err = {0};
		assert_null(ring_create(wrong[i], &err));
		assert_int_equal(err.number, EINVAL);
	}
	ring_free(NULL);
}

static void test_one_process(void **state)
{
	(void)state;
	struct ring *ring = make();
	struct bytes entry;
	assert_int_equal(ring_peek(ring, &entry), RING_EMPTY);
	assert_true(ring_put(ring, BYTES("ab"), BYTES("c\0d"), NULL, NULL));
	assert_true(ring_put(ring, BYTES_NONE, BYTES_NONE, NULL, NULL));
	assert_int_equal(ring_pending(ring), 16 + 8);
	ring_finish(ring);
	assert_false(ring_put(ring, BYTES("late"), BYTES_NONE, NULL, NULL));
	for (int again = 0; again < 2; again++) {
		assert_int_equal(ring_peek(ring, &entry), RING_ENTRY);
		assert_true(bytes_equal(entry, BYTES("abc\0d")));
	}
	ring_consume(ring);
	ring_consume(ring); /* nothing was shown: nothing happens */
	assert_int_equal(ring_peek(ring, &entry), RING_ENTRY);
	assert_int_equal(entry.size, 0);
	ring_consume(ring);
	assert_int_equal(ring_peek(ring, &entry), RING_FINISHED);
	assert_int_equal(ring_pending(ring), 0);
	ring_free(ring);
}

static bool give_up(void *context)
{
	++*(int *)context;
	return false;
}

static void test_sizes(void **state)
{
	(void)state;
	struct ring *ring = make();
	static char data[CAPACITY];
	memset(data, 'd', sizeof(data));
	struct bytes entry;
	int asked = 0;
	assert_false(ring_put(ring, (struct bytes){data, CAPACITY - 3}, BYTES_NONE, give_up, &asked));
	assert_false(ring_put(ring, (struct bytes){data, CAPACITY}, (struct bytes){data, CAPACITY}, give_up, &asked));
	assert_false(ring_put(ring, (struct bytes){data, SIZE_MAX}, BYTES("x"), give_up, &asked));
	assert_int_equal(asked, 0);

	/* The largest entry, at every offset: it is contiguous wherever it wraps. */
	for (int i = 0; i < 100; i++) {
		assert_true(ring_put(ring, (struct bytes){data, CAPACITY - 4 - 16}, BYTES("0123456789abcdef"), give_up,
				     &asked));
		assert_int_equal(ring_peek(ring, &entry), RING_ENTRY);
		assert_int_equal(entry.size, CAPACITY - 4);
		assert_memory_equal(entry.data, data, CAPACITY - 20);
		assert_memory_equal(entry.data + CAPACITY - 20, "0123456789abcdef", 16);
		ring_consume(ring);
		assert_true(ring_put(ring, BYTES("shift"), BYTES_NONE, give_up, &asked));
		assert_int_equal(ring_peek(ring, &entry), RING_ENTRY);
		ring_consume(ring);
	}
	assert_int_equal(asked, 0);
	ring_free(ring);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005U + 1442695040888963407U;
	return *seed >> 33;
}

enum { ENTRIES = 100000, ENTRY_MAX = 600 };

/* Entry number `n`: its number, then bytes made from it. */
static size_t make_entry(uint64_t n, uint64_t *seed, char *out)
{
	size_t size = 8 + next_random(seed) % ENTRY_MAX;
	memcpy(out, &n, 8);
	memset(out + 8, (int)(n & 0xff), size - 8);
	return size;
}

static void produce(struct ring *ring, uint64_t count)
{
	uint64_t seed = 1;
	char data[8 + ENTRY_MAX];
	for (uint64_t n = 0; n < count; n++) {
		size_t size = make_entry(n, &seed, data);
		size_t head = size / 3;
		if (!ring_put(ring, (struct bytes){data, head}, (struct bytes){data + head, size - head}, NULL, NULL))
			_exit(1);
	}
}

/* Read until the end or `stop` entries; returns the number read. */
static uint64_t consume(struct ring *ring, uint64_t stop, pid_t producer)
{
	uint64_t seed = 1, n = 0;
	char expected[8 + ENTRY_MAX];
	bool dead = false;
	while (n < stop) {
		struct bytes entry;
		enum ring_state found = ring_peek(ring, &entry);
		assert_int_not_equal(found, RING_CORRUPT);
		if (found == RING_FINISHED || (found == RING_EMPTY && dead))
			break;
		if (found == RING_EMPTY) {
			ring_wait(ring, 20);
			dead = producer > 0 && ring_pending(ring) == 0 && waitpid(producer, NULL, WNOHANG) == producer;
			continue;
		}
		size_t size = make_entry(n, &seed, expected);
		assert_int_equal(entry.size, size);
		assert_memory_equal(entry.data, expected, size);
		ring_consume(ring);
		n++;
	}
	return n;
}

static void test_two_processes(void **state)
{
	(void)state;
	struct ring *ring = make();
	pid_t child = fork();
	if (child == 0) {
		produce(ring, ENTRIES);
		ring_finish(ring);
		_exit(0);
	}
	assert_int_equal(consume(ring, UINT64_MAX, 0), ENTRIES);
	int status = -1;
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	ring_free(ring);
}

static void test_killed_producer(void **state)
{
	(void)state;
	for (int round = 0; round < 20; round++) {
		struct ring *ring = make();
		pid_t child = fork();
		if (child == 0) {
			produce(ring, UINT64_MAX);
			_exit(0);
		}
		uint64_t before = consume(ring, 500 + 37 * (uint64_t)round, 0);
		kill(child, SIGKILL);
		int status;
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(WTERMSIG(status), SIGKILL);
		/* What was committed can still be read, whole, up to an orderly emptiness. */
		uint64_t after = 0;
		struct bytes entry;
		enum ring_state found;
		while ((found = ring_peek(ring, &entry)) == RING_ENTRY) {
			uint64_t number;
			assert_true(entry.size >= 8);
			memcpy(&number, entry.data, 8);
			assert_int_equal(number, before + after);
			ring_consume(ring);
			after++;
		}
		assert_int_equal(found, RING_EMPTY);
		ring_free(ring);
	}
}

static bool process_alive(void *context)
{
	return waitpid(*(pid_t *)context, NULL, WNOHANG) == 0;
}

static void test_dead_consumer(void **state)
{
	(void)state;
	struct ring *ring = make();
	pid_t child = fork();
	if (child == 0) {
		ring_wait(ring, 1000000); /* sleeps when it is killed */
		_exit(0);
	}
	usleep(20000);
	kill(child, SIGKILL);
	alarm(20);
	static char data[1000];
	int put = 0;
	while (ring_put(ring, (struct bytes){data, sizeof(data)}, BYTES_NONE, process_alive, &child))
		put++;
	alarm(0);
	assert_int_equal(put, CAPACITY / 1008);
	assert_int_equal(waitpid(child, NULL, 0), -1);
	int asked = 0;
	uint64_t start = clock_monotonic_ns();
	assert_false(ring_put(ring, (struct bytes){data, sizeof(data)}, BYTES_NONE, give_up, &asked));
	assert_int_equal(asked, 1);
	assert_true(clock_monotonic_ns() - start >= 40000000);
	ring_free(ring);
}

/* A consumer that sleeps long is woken by an eighth of the ring, by the end, and by a producer that would block. */
static void test_wake(void **state)
{
	(void)state;
	static char data[CAPACITY];
	static const struct {
		size_t first, second;
		bool finish;
	} rows[] = {{CAPACITY / 8, 0, false}, {10, 0, true}, {0, 0, true}, {CAPACITY / 16, CAPACITY - 64, false}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ring *ring = make();
		pid_t child = fork();
		if (child == 0) {
			struct bytes entry;
			ring_wait(ring, 30000);
			while (ring_peek(ring, &entry) == RING_ENTRY)
				ring_consume(ring);
			_exit(0);
		}
		while (atomic_load(&ring->shared->consumer_sleeps) == 0)
			usleep(1000);
		usleep(20000);
		uint64_t start = clock_monotonic_ns();
		if (rows[i].first)
			assert_true(ring_put(ring, (struct bytes){data, rows[i].first}, BYTES_NONE, NULL, NULL));
		if (rows[i].second)
			assert_true(ring_put(ring, (struct bytes){data, rows[i].second}, BYTES_NONE, NULL, NULL));
		if (rows[i].finish)
			ring_finish(ring);
		int status = -1;
		waitpid(child, &status, 0);
		assert_int_equal(status, 0);
		assert_true(clock_monotonic_ns() - start < 10000000000U);
		ring_free(ring);
	}
}

static void test_wait_times_out(void **state)
{
	(void)state;
	struct ring *ring = make();
	uint64_t start = clock_monotonic_ns();
	ring_wait(ring, 30);
	uint64_t waited = clock_monotonic_ns() - start;
	assert_true(waited >= 25000000 && waited < 10000000000U);
	assert_true(ring_put(ring, BYTES("x"), BYTES_NONE, NULL, NULL));
	start = clock_monotonic_ns();
	ring_wait(ring, 30000);
	assert_true(clock_monotonic_ns() - start < 10000000000U);
	ring_free(ring);
}

static void test_corrupt(void **state)
{
	(void)state;
	static const uint64_t commits[] = {CAPACITY + 8, CAPACITY + 16 + 8, 17, 8, UINT64_MAX, UINT64_MAX - 7, 1};
	for (size_t i = 0; i < sizeof(commits) / sizeof(commits[0]); i++) {
		struct ring *ring = make();
		struct bytes entry;
		assert_true(ring_put(ring, BYTES("0123456789"), BYTES_NONE, NULL, NULL));
		assert_int_equal(ring_peek(ring, &entry), RING_ENTRY);
		atomic_store(&ring->shared->committed, commits[i]);
		assert_int_equal(ring_peek(ring, &entry), RING_CORRUPT);
		assert_null(entry.data);
		assert_true(ring_pending(ring) <= CAPACITY);
		atomic_store(&ring->shared->committed, 16);
		assert_int_equal(ring_peek(ring, &entry), RING_CORRUPT); /* for good */
		ring_free(ring);
	}
	static const uint32_t lengths[] = {13, 0x7fffffff, 0xffffffff, CAPACITY};
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct ring *ring = make();
		struct bytes entry;
		assert_true(ring_put(ring, BYTES("0123456789"), BYTES_NONE, NULL, NULL));
		memcpy(ring->data, &lengths[i], 4);
		assert_int_equal(ring_peek(ring, &entry), RING_CORRUPT);
		ring_free(ring);
	}
	struct ring *ring = make();
	struct bytes entry;
	atomic_store(&ring->shared->released, 8); /* the consumer's own index, which the producer can reach too */
	assert_int_equal(ring_peek(ring, &entry), RING_CORRUPT);
	int asked = 0;
	assert_false(ring_put(ring, BYTES("x"), BYTES_NONE, give_up, &asked));
	assert_int_equal(asked, 0);
	ring_free(ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_create),
	    cmocka_unit_test(test_one_process),
	    cmocka_unit_test(test_sizes),
	    cmocka_unit_test(test_two_processes),
	    cmocka_unit_test(test_killed_producer),
	    cmocka_unit_test(test_dead_consumer),
	    cmocka_unit_test(test_wake),
	    cmocka_unit_test(test_wait_times_out),
	    cmocka_unit_test(test_corrupt),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
