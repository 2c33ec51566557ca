#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "folder.h"
#include "ledger/store.h"

static char home[64];

static int set_up(void **state)
{
	(void)state;
	strcpy(home, "/tmp/assure-store-XXXXXX");
	return mkdtemp(home) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return folder_remove(home) ? 0 : -1;
}

static bool append(struct store_writer *writer, enum record_type type, enum effect_kind kind, enum result_state result,
		   int pid)
{
	CLEANUP_BUF struct buf body = {.limit = 1 << 17};
	CLEANUP_BUF struct buf sealed = {.limit = 1 << 17};
	struct record_head head;
	struct effect effect = {.kind = kind, .process = {.id = 1, .pid = pid}, .result = {.state = result}};
	struct record_gap gap = {.code = GAP_store};
	assert_true(type == RECORD_effect ? record_effect(&body, &head, &effect, NULL)
					  : record_gap(&body, &head, &gap));
	uint64_t seq = store_next_seq(writer);
	struct digest leaf = {{1}};
	assert_true(record_seal(&sealed, &head, buf_bytes(&body), seq));
	return store_append(writer, seq, &head, buf_bytes(&sealed), &leaf, NULL, NULL);
}

static char made[RUN_ID_SIZE];

static struct store_writer *make(const char *name, char id[RUN_ID_SIZE])
{
	struct err err = {.number = 0};
	assert_true(store_new_run_id(id, &err));
	struct store_writer *writer = store_create(home, id, name, &err);
	if (!writer)
		fail_msg("%s", err.text);
	strcpy(made, id);
	return writer;
}

static void finish(struct store_writer *writer)
{
	struct err err = {.number = 0};
	if (!store_close(writer, true, NULL, NULL, &err))
		fail_msg("%s", err.text);
	assert_true(store_write_seal(home, made, BYTES("a seal\n"), NULL));
	assert_false(store_write_seal(home, made, BYTES("another\n"), NULL));
}

static bool count_visits(void *context, uint64_t seq, const struct record_head *head, struct bytes json)
{
	(void)seq;
	(void)head;
	assert_true(json.size > 2 && json.data[0] == '{');
	++*(int *)context;
	return true;
}

static int visit(struct run *run, struct run_filter filter)
{
	int count = 0;
	assert_true(run_visit(run, &filter, count_visits, &count, NULL));
	return count;
}

static void test_write_and_read(void **state)
{
	(void)state;
	char id[RUN_ID_SIZE];
	struct store_writer *writer = make("first", id);
	for (int i = 0; i < 10; i++)
		assert_true(append(writer, RECORD_effect, i % 2 ? EFFECT_file_read : EFFECT_file_write,
				   i == 3 ? RESULT_FAILED : RESULT_OK, i));
	assert_true(append(writer, RECORD_gap, 0, 0, 0));
	assert_true(store_flush(writer, NULL));

	struct run *run = run_open(home, id, NULL);
	assert_non_null(run);
	assert_int_equal(run_get_summary(run)->state, RUN_RUNNING);
	assert_false(run_remove(home, id, NULL));
	run_close(run);
	finish(writer);

	id[5] = '\0';
	run = run_open(home, id, NULL);
	assert_non_null(run);
	const struct run_summary *summary = run_get_summary(run);
	assert_int_equal(summary->state, RUN_COMPLETE);
	assert_int_equal(summary->records, 11);
	assert_int_equal(summary->effects, 10);
	assert_string_equal(summary->name, "first");
	assert_int_equal(visit(run, (struct run_filter){.from_seq = 0}), 11);
	assert_int_equal(visit(run, (struct run_filter){.from_seq = 9}), 2);
	assert_int_equal(visit(run, (struct run_filter){.by_type = true, .type = RECORD_gap}), 1);
	assert_int_equal(visit(run, (struct run_filter){.by_kind = true, .kind = EFFECT_file_read}), 5);
	assert_int_equal(visit(run, (struct run_filter){.failed_only = true}), 1);
	assert_int_equal(visit(run, (struct run_filter){.by_pid = true, .pid = 4}), 1);

	/* Nothing but the file and the lock stays. */
	char path[256];
	snprintf(path, sizeof(path), "%s/runs/%s/run.sqlite-wal", home, summary->id);
	run_close(run);
	assert_int_not_equal(access(path, F_OK), 0);
}

static void test_lookup(void **state)
{
	(void)state;
	char a[RUN_ID_SIZE], b[RUN_ID_SIZE], lower[RUN_ID_SIZE];
	struct err err = {.number = 0};
	finish(make("one", a));
	finish(make("two", b));
	assert_null(store_create(home, "00000000000000000000000000", "one", &err));
	assert_non_null(strstr(err.text, "another run has it"));
	static const char *const bad[] = {
	    "last", "", "a/b", ".x", "-x", "a b", "a\n", "\xff", "00000000000000000000000000"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_null(store_create(home, "00000000000000000000000001", bad[i], NULL));
	assert_null(store_create(home, "../../x", NULL, NULL));

	struct run *run = run_open(home, "last", NULL);
	assert_string_equal(run_get_summary(run)->id, b);
	run_close(run);
	run = run_open(home, "one", NULL);
	assert_string_equal(run_get_summary(run)->id, a);
	run_close(run);
	for (size_t i = 0; i < RUN_ID_SIZE; i++)
		lower[i] = (char)(a[i] >= 'A' && a[i] <= 'Z' ? a[i] + 32 : a[i]);
	lower[run_short_id(home, a)] = '\0';
	run = run_open(home, lower, NULL);
	assert_string_equal(run_get_summary(run)->id, a);
	run_close(run);
	assert_null(run_open(home, "012", NULL));
	assert_null(run_open(home, "nothing", NULL));
	assert_true(run_remove(home, "one", NULL));
	assert_null(run_open(home, "one", NULL));
	finish(make("one", a)); /* the name is free again */
}

/* Killed in the middle: what was committed is there, and it is known that the end is missing. */
static void test_killed_writer(void **state)
{
	(void)state;
	char id[RUN_ID_SIZE] = "0123456789ABCDEFGHJKMNPQRS";
	int ready[2];
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (child == 0) {
		struct store_writer *writer = store_create(home, id, NULL, NULL);
		for (int i = 0; i < 500; i++)
			append(writer, RECORD_effect, EFFECT_file_read, RESULT_OK, 1);
		store_flush(writer, NULL);
		append(writer, RECORD_effect, EFFECT_file_read, RESULT_OK, 1);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	char c;
	assert_int_equal(read(ready[0], &c, 1), 1);
	struct run *run = run_open(home, "0123", NULL);
	assert_int_equal(run_get_summary(run)->state, RUN_RUNNING);
	run_close(run);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	for (int i = 0; i < 3; i++) {
		struct err err = {.number = 0};
		run = run_open(home, "0123", &err);
		if (!run)
			fail_msg("%s", err.text);
		assert_int_equal(run_get_summary(run)->state, RUN_INCOMPLETE);
		assert_string_equal(run_get_summary(run)->reason, "its scribe ended early");
		assert_int_equal(run_get_summary(run)->effects, 500);
		assert_int_equal(visit(run, (struct run_filter){.from_seq = 0}), 500);
		run_close(run);
	}
	close(ready[0]);
	close(ready[1]);
	assert_true(run_remove(home, "0123", NULL));
}

static bool count_damaged(void *context, const struct run_summary *summary)
{
	*(int *)context += summary->state == RUN_INCOMPLETE && summary->reason[0];
	return true;
}

static void test_damaged_and_newer(void **state)
{
	(void)state;
	char id[RUN_ID_SIZE], path[256];
	struct err err = {.number = 0};
	finish(make("newer", id));
	snprintf(path, sizeof(path), "%s/runs/%s/run.sqlite", home, id);
	sqlite3 *db;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "PRAGMA user_version=99", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	assert_null(run_open(home, "newer", &err));
	assert_non_null(strstr(err.text, "written by a newer assure"));
	err_clear(&err);
	int fd = open(path, O_WRONLY);
	for (off_t at = 0; at < 4096; at += 16)
		assert_int_equal(pwrite(fd, "damaged damaged ", 16, at), 16);
	close(fd);
	assert_null(run_open(home, "newer", &err));
	assert_non_null(strstr(err.text, "damaged"));
	assert_true(err.hint[0]);
	int damaged = 0;
	assert_true(run_list(home, count_damaged, &damaged, NULL));
	assert_int_equal(damaged, 1);
	assert_true(run_remove(home, "newer", NULL));
}

static void test_home(void **state)
{
	(void)state;
	char out[4096], below[128], link[128];
	snprintf(below, sizeof(below), "%s/a/b", home);
	snprintf(link, sizeof(link), "%s/link", home);
	setenv("ASSURE_HOME", below, 1);
	assert_true(store_home(out, sizeof(out), false, NULL));
	assert_int_not_equal(access(below, F_OK), 0);
	assert_true(store_home(out, sizeof(out), true, NULL));
	assert_string_equal(out, below);
	assert_int_equal(chmod(below, 0770), 0);
	assert_false(store_home(out, sizeof(out), true, NULL));
	assert_int_equal(chmod(below, 0700), 0);
	assert_int_equal(symlink(below, link), 0);
	setenv("ASSURE_HOME", link, 1);
	assert_false(store_home(out, sizeof(out), true, NULL));
	assert_false(store_home(out, 4, true, NULL));
	unsetenv("ASSURE_HOME");
}

static void test_order(void **state)
{
	(void)state;
	char id[RUN_ID_SIZE];
	struct store_writer *writer = make(NULL, id);
	struct record_head head = {.type = RECORD_gap};
	assert_false(store_append(writer, 5, &head, BYTES("{}"), &(struct digest){{0}}, NULL, NULL));
	assert_int_equal(store_take_lost(writer), 0);
	store_discard(writer);
	assert_null(run_open(home, id, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_write_and_read, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_lookup, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_killed_writer, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_damaged_and_newer, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_home, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_order, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
