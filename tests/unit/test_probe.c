#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rows_are_complete),
	    cmocka_unit_test(test_override_matches_whole_names),
	    cmocka_unit_test(test_each_is_overridden),
	    cmocka_unit_test(test_connector_obeys),
	    cmocka_unit_test(test_verdict),
	    cmocka_unit_test(test_all_answer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
