#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/message.h"
#include "folder.h"
#include "ledger/store.h"
#include "scribe/scribe.h"

static const char run_id[] = "0123456789ABCDEFGHJKMNPQRS";
static char home[64];
static struct ring *ring;
static int guardian;
static int lifeline[2]; /* what the monitor holds */
static pid_t scribe;

static void start_scribe(void)
{
	int sockets[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	ring = ring_create(1 << 20, NULL);
	assert_non_null(ring);
	assert_int_equal(pipe2(lifeline, O_CLOEXEC), 0);
	scribe = fork();
	if (scribe == 0) {
		close(sockets[0]);
		close(lifeline[1]);
		struct scribe_config config = {.home = home,
					       .run = run_id,
					       .name = "test",
					       .ring = ring,
					       .lifeline = lifeline[0],
					       .guardian_socket = sockets[1]};
		_exit(scribe_main(&config));
	}
	close(sockets[1]);
	close(lifeline[0]);
	guardian = sockets[0];
}

static struct message hear(void)
{
	struct message message;
	struct err err = {.number = 0};
	if (!message_receive(guardian, &message, MESSAGE_ROLE_scribe, &err))
		fail_msg("%s", err.text);
	return message;
}

static int set_up(void **state)
{
	(void)state;
	strcpy(home, "/tmp/assure-scribe-XXXXXX");
	if (!mkdtemp(home))
		return -1;
	start_scribe();
	struct message message = hear();
	return message.type == MESSAGE_store_ready ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	ring_free(ring);
	if (guardian >= 0)
		close(guardian);
	if (lifeline[1] >= 0)
		close(lifeline[1]);
	return folder_remove(home) ? 0 : -1;
}

static bool is_alive(void *context)
{
	(void)context;
	return kill(scribe, 0) == 0;
}

static void put_effects(int count)
{
	CLEANUP_BUF struct buf body = {.limit = 1 << 17};
	struct record_head head;
	struct effect effect = {
	    .kind = EFFECT_file_write, .process = {.id = 1, .pid = 5}, .object.path = BYTES("/some/where")};
	for (int i = 0; i < count; i++) {
		buf_reset(&body);
		assert_true(record_effect(&body, &head, &effect, NULL));
		assert_true(ring_put(ring, (struct bytes){(const char *)&head, sizeof(head)}, buf_bytes(&body),
				     is_alive, NULL));
	}
}

static void ask_to_close(uint64_t complete, struct bytes reason)
{
	struct message message = {.type = MESSAGE_close_run};
	message.fields[0].number = complete;
	message.fields[1].bytes = reason;
	assert_true(message_send(guardian, &message, NULL));
}

static int wait_for_end(void)
{
	int status;
	assert_int_equal(waitpid(scribe, &status, 0), scribe);
	return status;
}

/* With the record that closes it, unless its scribe was killed. */
static void expect_run(enum run_state run_state, uint64_t records, const char *reason)
{
	struct err err = {.number = 0};
	struct run *run = run_open(home, "test", &err);
	if (!run)
		fail_msg("%s", err.text);
	const struct run_summary *summary = run_get_summary(run);
	assert_string_equal(summary->reason, reason);
	assert_int_equal(summary->state, run_state);
	assert_int_equal(summary->records, records);
	run_close(run);
}

static void test_complete(void **state)
{
	(void)state;
	put_effects(10000);
	ring_finish(ring);
	ask_to_close(1, BYTES(""));
	struct message message = hear();
	assert_int_equal(message.type, MESSAGE_run_closed);
	assert_int_equal(message.fields[0].number, 10001);
	assert_int_equal(wait_for_end(), 0);
	expect_run(RUN_COMPLETE, 10001, "");
}

static void put_blob(struct bytes bytes)
{
	const struct record_head head = {.type = RECORD_ENTRY_blob};
	assert_true(ring_put(ring, (struct bytes){(const char *)&head, sizeof(head)}, bytes, is_alive, NULL));
}

/* An effect whose argument vector is too long for a record, and its blob. */
static void put_long_effect(void)
{
	enum { COUNT = 20000 };
	static struct bytes argv[COUNT];
	struct record_blobs blobs CLEANUP_BLOBS = {.count = 0};
	CLEANUP_BUF struct buf body = {.limit = 1 << 17};
	struct record_head head;
	struct effect effect = {.kind = EFFECT_proc_exec, .has_argv = true, .argv = argv, .argv_count = COUNT};

	for (size_t i = 0; i < COUNT; i++)
		argv[i] = BYTES("argument");
	assert_true(record_effect(&body, &head, &effect, &blobs));
	assert_int_equal(blobs.count, 1);
	assert_int_equal(blobs.items[0].bytes.size, COUNT * sizeof("argument"));
	put_blob(buf_bytes(&blobs.items[0].bytes));
	assert_true(
	    ring_put(ring, (struct bytes){(const char *)&head, sizeof(head)}, buf_bytes(&body), is_alive, NULL));
}

/* A blob is stored with the record that names it, and never without. */
static void test_blobs(void **state)
{
	CLEANUP_BUF struct buf blob = {.limit = RECORD_BLOB_LIMIT};
	char digest[DIGEST_TEXT_SIZE];
	struct digest nobody;
	struct err err = {.number = 0};

	(void)state;
	put_long_effect();
	put_long_effect(); /* the same bytes once more */
	put_blob(BYTES("nobody's"));
	put_effects(1);
	put_blob(BYTES("the last word"));
	ring_finish(ring);
	ask_to_close(1, BYTES(""));
	assert_int_equal(hear().type, MESSAGE_run_closed);
	assert_int_equal(wait_for_end(), 0);
	/* Three effects, the gap that an unnamed blob leaves, the last record. */
	struct run *run = run_open(home, "test", &err);
	assert_non_null(run);
	assert_int_equal(run_get_summary(run)->records, 5);
	assert_true(digest_of(BYTES("nobody's"), &nobody));
	digest_text(&nobody, digest);
	assert_false(run_blob(run, digest, &blob, NULL));
	run_close(run);
}

static void test_monitor_gone(void **state)
{
	(void)state;
	put_effects(10);
	ask_to_close(0, BYTES("its monitor was killed"));
	assert_int_equal(hear().type, MESSAGE_run_closed);
	assert_int_equal(wait_for_end(), 0);
	expect_run(RUN_INCOMPLETE, 11, "its monitor was killed");
}

static void test_guardian_vanishes(void **state)
{
	(void)state;
	put_effects(10);
	close(guardian);
	guardian = -1;
	put_effects(10);
	ring_finish(ring);
	assert_int_equal(wait_for_end(), 0);
	expect_run(RUN_INCOMPLETE, 21, "its guardian ended early");
}

static void test_everybody_vanishes(void **state)
{
	(void)state;
	put_effects(10);
	close(guardian);
	guardian = -1;
	assert_int_equal(wait_for_end(), 0);
	expect_run(RUN_INCOMPLETE, 11, "its guardian ended early");
}

/* The command has ended, the rest of its tree goes on: what comes after the guardian left belongs to the run. */
static void detach(void)
{
	struct message message = {.type = MESSAGE_detach};
	put_effects(10);
	assert_true(message_send(guardian, &message, NULL));
	assert_int_equal(hear().type, MESSAGE_store_ready);
	close(guardian);
	guardian = -1;
	put_effects(10);
}

static void test_detached(void **state)
{
	(void)state;
	detach();
	ring_finish(ring);
	assert_int_equal(wait_for_end(), 0);
	expect_run(RUN_COMPLETE, 21, "");
}

static void test_detached_monitor_gone(void **state)
{
	(void)state;
	detach();
	close(lifeline[1]);
	lifeline[1] = -1;
	assert_int_equal(wait_for_end(), 0);
	expect_run(RUN_INCOMPLETE, 21, "the monitor ended early");
}

static void test_never_started(void **state)
{
	(void)state;
	ask_to_close(0, BYTES("command not found"));
	assert_int_equal(hear().type, MESSAGE_run_closed);
	assert_int_equal(wait_for_end(), 0);
	assert_null(run_open(home, "test", NULL));
}

static void test_killed(void **state)
{
	(void)state;
	put_effects(100);
	while (ring_pending(ring) > 0)
		usleep(1000);
	usleep(300000);
	kill(scribe, SIGTERM); /* ignored */
	kill(scribe, SIGINT);
	usleep(10000);
	assert_int_equal(waitpid(scribe, NULL, WNOHANG), 0);
	kill(scribe, SIGKILL);
	wait_for_end();
	expect_run(RUN_INCOMPLETE, 100, "its scribe ended early");
}

static void test_no_record(void **state)
{
	(void)state;
	struct record_head head = {.type = 4000};
	put_effects(1);
	assert_true(ring_put(ring, (struct bytes){(const char *)&head, sizeof(head)}, BYTES("{}"), is_alive, NULL));
	head.type = RECORD_gap;
	head.seq_at = 9999;
	assert_true(ring_put(ring, (struct bytes){(const char *)&head, sizeof(head)}, BYTES("{}"), is_alive, NULL));
	assert_true(ring_put(ring, BYTES("x"), BYTES_NONE, is_alive, NULL));
	ring_finish(ring);
	ask_to_close(1, BYTES(""));
	assert_int_equal(hear().type, MESSAGE_run_closed);
	assert_int_equal(wait_for_end(), 0);
	expect_run(RUN_INCOMPLETE, 3, "the monitor sent what is no record");
}

static bool find_gap(void *context, uint64_t seq, const struct record_head *head, struct bytes json)
{
	(void)seq;
	(void)head;
	*(bool *)context = memmem(json.data, json.size, "\"code\":\"store\",\"count\":", 23) != NULL;
	return true;
}

/* A limit on the size of files stands in for a full disk. */
static void test_disk_full(void **state)
{
	(void)state;
	struct rlimit whole, small = {64 * 1024, RLIM_INFINITY};
	assert_int_equal(prlimit(scribe, RLIMIT_FSIZE, NULL, &whole), 0);
	small.rlim_max = whole.rlim_max;
	assert_int_equal(prlimit(scribe, RLIMIT_FSIZE, &small, NULL), 0);
	put_effects(5000);
	struct message message = hear();
	assert_int_equal(message.type, MESSAGE_store_failed);
	while (ring_pending(ring) > 0)
		usleep(1000);
	assert_int_equal(prlimit(scribe, RLIMIT_FSIZE, &whole, NULL), 0);
	usleep(1200000);
	put_effects(10);
	ring_finish(ring);
	ask_to_close(1, BYTES(""));
	message = hear();
	assert_int_equal(message.type, MESSAGE_run_closed);
	assert_int_equal(wait_for_end(), 0);

	struct run *run = run_open(home, "test", NULL);
	assert_non_null(run);
	assert_int_equal(run_get_summary(run)->state, RUN_INCOMPLETE);
	assert_non_null(strstr(run_get_summary(run)->reason, "could not be stored"));
	bool found = false;
	const struct run_filter filter = {.by_type = true, .type = RECORD_gap};
	assert_true(run_visit(run, &filter, find_gap, &found, NULL));
	assert_true(found);
	run_close(run);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_complete, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_blobs, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_monitor_gone, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_guardian_vanishes, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_everybody_vanishes, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_detached, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_detached_monitor_gone, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_never_started, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_killed, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_no_record, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_disk_full, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
