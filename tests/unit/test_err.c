#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

static void test_first_cause_survives(void **state)
{
	(void)state;
	struct err err = {0};
	assert_false(err_is_set(&err));
	assert_false(err_set(&err, ENOENT, "open %s", "/x"));
	assert_true(err_is_set(&err));
	assert_string_equal(err.text, "open /x: No such file or directory");
	assert_int_equal(err.number, ENOENT);
	assert_false(err_set(&err, EIO, "second"));
	assert_string_equal(err.text, "open /x: No such file or directory");
	assert_int_equal(err.number, ENOENT);
	err_context(&err, "run %d", 7);
	assert_string_equal(err.text, "run 7: open /x: No such file or directory");
	err_clear(&err);
	assert_false(err_is_set(&err));
	err_set(&err, 0, "plain");
	assert_string_equal(err.text, "plain");
}

static void test_hint_and_status(void **state)
{
	(void)state;
	struct err err = {0};
	assert_false(err_hint(&err, "try %s", "a"));
	assert_false(err_hint(&err, "try b"));
	assert_string_equal(err.hint, "try a");
	assert_false(err_exit_status(&err, 77));
	assert_int_equal(err.exit_status, 77);
	err_context(&err, "nothing to add to");
	assert_false(err_is_set(&err));
}

static void test_reason_outlives_long_text(void **state)
{
	(void)state;
	char path[4096];
	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	struct err err = {0};
	err_set(&err, EACCES, "open %s", path);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_string_equal(err.text + strlen(err.text) - 19, ": Permission denied");
	err_context(&err, "context");
	assert_memory_equal(err.text, "open a", 6);

	err_clear(&err);
	err_set(&err, EACCES, "open");
	err_context(&err, "%s", path);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_string_equal(err.text + strlen(err.text) - 26, "a: open: Permission denied");
	err_hint(&err, "%s", path);
	assert_int_equal(strlen(err.hint), sizeof(err.hint) - 1);
}

static void test_nobody_cares(void **state)
{
	(void)state;
	assert_false(err_set(NULL, EIO, "x"));
	assert_false(err_context(NULL, "x"));
	assert_false(err_hint(NULL, "x"));
	assert_false(err_exit_status(NULL, 1));
	assert_false(err_is_set(NULL));
	err_clear(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_first_cause_survives),
	    cmocka_unit_test(test_hint_and_status),
	    cmocka_unit_test(test_reason_outlives_long_text),
	    cmocka_unit_test(test_nobody_cares),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
