#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/connector.h"
#include "os/probe.h"

static void test_rows_are_complete(void **state)
{
	(void)state;
	bool required = false;
	for (size_t i = 0; i < PROBE_COUNT; i++) {
		const struct probe_row *row = &probe_rows[i];
		assert_true(row->id && *row->id && row->name && *row->name);
		assert_true(*row->purpose && *row->follows && *row->todo);
		required |= row->weight == PROBE_WEIGHT_required;
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(row->name, probe_rows[j].name);
	}
	assert_true(required);
}

static void test_override_matches_whole_names(void **state)
{
	(void)state;
	unsetenv("ASSURE_PROBES");
	assert_false(probe_overridden("kernel"));
	setenv("ASSURE_PROBES", "kernel=missing,connector=missing", 1);
	assert_true(probe_overridden("kernel"));
	assert_true(probe_overridden("connector"));
	assert_false(probe_overridden("kern"));
	assert_false(probe_overridden("kernel5"));
	assert_false(probe_overridden("memory"));
	/* Nothing but "missing" is a word of it: things can only be made worse. */
	static const char *const nothing[] = {"",
					      ",",
					      ",,=",
					      "kernel",
					      "kernel=",
					      "kernel=ok",
					      "kernel=missingx",
					      "xkernel=missing",
					      "kernel=missin",
					      "=missing"};
	for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++) {
		setenv("ASSURE_PROBES", nothing[i], 1);
		assert_false(probe_overridden("kernel"));
	}
	setenv("ASSURE_PROBES", ",x,kernel=missing,", 1);
	assert_true(probe_overridden("kernel"));
	unsetenv("ASSURE_PROBES");
}

static void test_each_is_overridden(void **state)
{
	(void)state;
	for (enum probe probe = 0; probe < PROBE_COUNT; probe++) {
		struct probe_result result;
		char text[64];
		assert_true(strlen(probe_rows[probe].id) < 40);
		strcpy(text, probe_rows[probe].id);
		strcat(text, "=missing");
		setenv("ASSURE_PROBES", text, 1);
		probe_run(probe, &result);
		assert_int_equal(result.state, PROBE_MISSING);
		struct err err = {0};
		assert_int_equal(probe_required(&err), probe_rows[probe].weight != PROBE_WEIGHT_required);
		assert_int_equal(err_is_set(&err), probe_rows[probe].weight == PROBE_WEIGHT_required);
		assert_null(strchr(err.text, '\n'));
	}
	unsetenv("ASSURE_PROBES");
}

static void test_connector_obeys(void **state)
{
	(void)state;
	struct err err = {0};
	setenv("ASSURE_PROBES", "connector=missing", 1);
	assert_int_equal(connector_open(&err), -1);
	assert_true(err_is_set(&err));
	assert_int_equal(connector_open(NULL), -1);
	unsetenv("ASSURE_PROBES");
}

static void test_verdict(void **state)
{
	(void)state;
	struct probe_result results[PROBE_COUNT] = {0};
	assert_true(probe_run_works(results));
	for (size_t i = 0; i < PROBE_COUNT; i++) {
		bool required = probe_rows[i].weight == PROBE_WEIGHT_required;
		results[i].state = PROBE_MISSING;
		assert_int_equal(probe_run_works(results), !required);
		results[i].state = PROBE_UNKNOWN;
		assert_int_equal(probe_run_works(results), !required);
		results[i].state = PROBE_OK;
	}
}

/* Whatever this host gives, each has an answer, and no process is left. */
static void test_all_answer(void **state)
{
	(void)state;
	struct probe_result results[PROBE_COUNT];
	memset(results, 0xff, sizeof(results));
	probe_run_all(results);
	for (size_t i = 0; i < PROBE_COUNT; i++) {
		assert_in_range(results[i].state, PROBE_OK, PROBE_UNKNOWN);
		assert_non_null(memchr(results[i].detail, 0, sizeof(results[i].detail)));
		assert_true(results[i].detail[0] != 0);
		assert_non_null(probe_state_name(results[i].state));
	}
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void test_trial(void **state)
{
	(void)state;
	struct probe_result results[PROBE_COUNT];
	struct probe_trial trial;
	memset(results, 0xff, sizeof(results));
	setenv("ASSURE_PROBES", "openat2=missing,state=missing", 1);
	probe_trial_begin(&trial);
	probe_trial_end(&trial, results);
	unsetenv("ASSURE_PROBES");
	for (size_t i = 0; i < PROBE_COUNT; i++) {
		bool tried = probe_rows[i].shown == PROBE_SHOWN_by_trial;
		bool taken = i == PROBE_openat2 || i == PROBE_state;
		assert_in_range(results[i].state, PROBE_OK, PROBE_UNKNOWN);
		assert_int_equal(results[i].detail[0] != 0, tried || taken);
		if (taken)
			assert_int_equal(results[i].state, PROBE_MISSING);
		else if (!tried)
			assert_int_equal(results[i].state, PROBE_OK);
	}
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* As a filter around us would, that kills: what was answered holds, the next one is missing, the rest is not known. */
static void test_trial_dies(void **state)
{
	(void)state;
	struct probe_result results[PROBE_COUNT];
	struct probe_trial trial;
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	struct probe_result first = {.state = PROBE_OK, .detail = "works"};
	assert_int_equal(write(ends[1], &first, sizeof(first)), sizeof(first));
	trial = (struct probe_trial){.child = fork(), .answer = ends[0]};
	if (trial.child == 0)
		raise(SIGKILL);
	close(ends[1]);
	probe_trial_end(&trial, results);
	assert_int_equal(results[PROBE_openat2].state, PROBE_OK);
	assert_int_equal(results[PROBE_mount_ids].state, PROBE_MISSING);
	assert_non_null(strstr(results[PROBE_mount_ids].detail, "died"));
	assert_int_equal(results[PROBE_exit_status].state, PROBE_UNKNOWN);
	assert_int_equal(results[PROBE_user_namespaces].state, PROBE_UNKNOWN);
	assert_int_equal(results[PROBE_kernel].state, PROBE_OK);

	trial = (struct probe_trial){.child = -1, .answer = -1};
	probe_trial_end(&trial, results);
	assert_int_equal(results[PROBE_openat2].state, PROBE_UNKNOWN);
}

/* The environment is not ours to write down. */
static void test_container_keeps_values(void **state)
{
	(void)state;
	struct probe_result result;
	setenv("container", "hunter2", 1);
	probe_run(PROBE_container, &result);
	assert_null(strstr(result.detail, "hunter2"));
	unsetenv("container");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rows_are_complete),
	    cmocka_unit_test(test_override_matches_whole_names),
	    cmocka_unit_test(test_each_is_overridden),
	    cmocka_unit_test(test_connector_obeys),
	    cmocka_unit_test(test_verdict),
	    cmocka_unit_test(test_all_answer),
	    cmocka_unit_test(test_trial),
	    cmocka_unit_test(test_trial_dies),
	    cmocka_unit_test(test_container_keeps_values),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
