#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"

static void check(struct buf *out, const char *expected)
{
	assert_false(out->failed);
	assert_int_equal(out->size, strlen(expected));
	assert_memory_equal(out->data, expected, out->size);
}

static void test_containers(void **state)
{
	(void)state;
	struct buf out CLEANUP_BUF = {0};
	struct json json;
	json_start(&json, &out);
	json_begin_object(&json, NULL);
	json_begin_array(&json, "a");
	json_end_array(&json);
	json_begin_array(&json, "b");
	json_element(&json, BYTES("x"));
	json_element(&json, BYTES("\xff\0"));
	json_element(&json, BYTES_NONE);
	json_element(&json, BYTES(""));
	json_begin_object(&json, NULL);
	json_end_object(&json);
	json_int(&json, NULL, 1);
	json_end_array(&json);
	json_begin_object(&json, "c");
	json_bool(&json, "f", false);
	json_bool(&json, "t", true);
	json_end_object(&json);
	json_text(&json, "d", "");
	json_end_object(&json);
	check(&out,
	      "{\"a\":[],\"b\":[\"x\",{\"b64\":\"/wA=\"},null,\"\",{},1],\"c\":{\"f\":false,\"t\":true},\"d\":\"\"}");
	assert_int_equal(json.depth, 0);
}

static void test_strings(void **state)
{
	(void)state;
	struct buf out CLEANUP_BUF = {0};
	struct json json;
	json_start(&json, &out);
	json_begin_array(&json, NULL);
	json_element(&json, BYTES("\0\x01\b\t\n\x0b\f\r\x1f\x7f\"\\/"));
	json_element(&json, BYTES("\xc3\xa9\xe2\x80\xa8\xf0\x9f\x98\x80"));
	json_element(&json, BYTES("\",\"forged\":\""));
	json_text(&json, NULL,
		  "a\xff"
		  "b\xe2\x82");
	json_end_array(&json);
	check(&out, "[\"\\u0000\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f\x7f\\\"\\\\/\","
		    "\"\xc3\xa9\xe2\x80\xa8\xf0\x9f\x98\x80\",\"\\\",\\\"forged\\\":\\\"\","
		    "\"a\xef\xbf\xbd"
		    "b\xef\xbf\xbd\xef\xbf\xbd\"]");
}

static void test_foreign(void **state)
{
	(void)state;
	struct buf out CLEANUP_BUF = {0};
	struct json json;
	json_start(&json, &out);
	json_begin_object(&json, NULL);
	json_bytes(&json, "argument", BYTES_NONE);
	json_bytes(&json, "cwd", BYTES("/\xed\xa0\x80"));
	json_bytes(&json, "empty", BYTES(""));
	json_bytes(&json, "path", BYTES("/a\nb"));
	json_end_object(&json);
	check(&out, "{\"cwd_b64\":\"L+2ggA==\",\"empty\":\"\",\"path\":\"/a\\nb\"}");
}

static void test_numbers(void **state)
{
	(void)state;
	struct buf out CLEANUP_BUF = {0};
	struct json json;
	json_start(&json, &out);
	json_begin_array(&json, NULL);
	json_int(&json, NULL, 0);
	json_int(&json, NULL, -9007199254740991);
	json_int(&json, NULL, -9007199254740992);
	json_int(&json, NULL, INT64_MIN);
	json_int(&json, NULL, INT64_MAX);
	json_uint(&json, NULL, 9007199254740991);
	json_uint(&json, NULL, 9007199254740992);
	json_uint(&json, NULL, UINT64_MAX);
	json_uint_text(&json, NULL, 5);
	json_end_array(&json);
	check(&out, "[0,-9007199254740991,\"-9007199254740992\",\"-9223372036854775808\",\"9223372036854775807\","
		    "9007199254740991,\"9007199254740992\",\"18446744073709551615\",\"5\"]");
}

static void test_limits(void **state)
{
	(void)state;
	struct buf out CLEANUP_BUF = {0};
	struct json json;
	json_start(&json, &out);
	for (int i = 0; i < JSON_DEPTH_LIMIT - 1; i++)
		json_begin_array(&json, NULL);
	assert_false(out.failed);
	json_begin_object(&json, NULL);
	assert_true(out.failed);
	for (int i = 0; i < 100; i++)
		json_begin_array(&json, NULL);
	for (int i = 0; i < 200; i++)
		json_end_array(&json);
	assert_true(out.failed);

	buf_reset(&out);
	json_start(&json, &out);
	json_end_array(&json);
	assert_true(out.failed);
	buf_reset(&out);
	json_start(&json, &out);
	json_begin_object(&json, NULL);
	json_end_array(&json);
	assert_true(out.failed);

	struct buf small CLEANUP_BUF = {.limit = 8};
	json_start(&json, &small);
	json_begin_object(&json, NULL);
	json_bytes(&json, "a", BYTES("\xff"));
	json_end_object(&json);
	assert_true(small.failed);
}

#ifndef NDEBUG
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* How a child ends that adds two keys, the first perhaps foreign. */
static int end_of_keys(const char *first, bool foreign, const char *second)
{
	pid_t child = fork();
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){0});
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
		struct buf out = {0};
		struct json json;
		json_start(&json, &out);
		json_begin_object(&json, NULL);
		if (foreign)
			json_bytes(&json, first, BYTES("x"));
		else
			json_bool(&json, first, true);
		json_bool(&json, second, true);
		_exit(0);
	}
	int status = -1;
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static void test_key_order(void **state)
{
	(void)state;
	assert_int_equal(end_of_keys("a", false, "b"), 0);
	assert_int_equal(end_of_keys("a", false, "aa"), 0);
	assert_int_equal(end_of_keys("b", false, "a"), SIGABRT);
	assert_int_equal(end_of_keys("aa", false, "a"), SIGABRT);
	assert_int_equal(end_of_keys("a", false, "a"), SIGABRT);
	assert_int_equal(end_of_keys("a", false, "a2"), 0);
	assert_int_equal(end_of_keys("a", true, "a2"), SIGABRT);
	assert_int_equal(end_of_keys("a", true, "a_b64"), SIGABRT);
	assert_int_equal(end_of_keys("a", true, "ab"), 0);
	assert_int_equal(end_of_keys("a", false, NULL), SIGABRT);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_containers), cmocka_unit_test(test_strings), cmocka_unit_test(test_foreign),
	    cmocka_unit_test(test_numbers),    cmocka_unit_test(test_limits),
#ifndef NDEBUG
	    cmocka_unit_test(test_key_order),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
