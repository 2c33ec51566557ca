/*
 * Records as others may see them: what is taken out, what is never touched, and that the result is a record.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/jcs.h"
#include "base/text.h"
#include "ledger/record.h"
#include "ledger/redacted.h"

static struct redactor *compile(const char *pattern)
{
	struct redactor *redactor = redactor_new(&pattern, 1, NULL);

	assert_non_null(redactor);
	return redactor;
}

static void expect(const char *pattern, const char *record, const char *wanted)
{
	CLEANUP_BUF struct buf out = {.limit = RECORD_SIZE_LIMIT};
	struct redactor *redactor = compile(pattern);
	enum redacted found = redact_record(redactor, bytes_of(record), NULL, &out);

	redactor_free(redactor);
	assert_int_equal(found, wanted ? REDACTED_SOME : REDACTED_NOTHING);
	if (!wanted)
		return;
	assert_string_equal(out.data, wanted);
	assert_true(jcs_is_canonical(buf_bytes(&out)));
}

static void test_taken_out(void **state)
{
	(void)state;
	expect("zebra", "{\"path\":\"/a/zebra/b\",\"seq\":1}",
	       "{\"path\":\"/a/[withheld:pattern]/b\",\"seq\":1,\"withheld\":[\"pattern\"]}");
	expect("zebra", "{\"path\":\"/a\",\"seq\":1}", NULL);
	/* In lists, in objects, and behind an option. */
	expect("zebra", "{\"argv\":[\"x\",\"zebra\"],\"process\":{\"exe\":\"/zebra\",\"id\":1}}",
	       "{\"argv\":[\"x\",\"[withheld:pattern]\"],\"process\":{\"exe\":\"/[withheld:pattern]\",\"id\":1},"
	       "\"withheld\":[\"pattern\"]}");
	expect("zebra", "{\"argv\":[\"--token\",\"x\",\"y\"]}",
	       "{\"argv\":[\"--token\",\"[withheld:option]\",\"y\"],\"withheld\":[\"option\"]}");
	/* As it was before it was escaped. */
	expect("a\nb", "{\"path\":\"/a\\nb\"}", "{\"path\":\"/[withheld:pattern]\",\"withheld\":[\"pattern\"]}");
	expect("\xc3\xa4", "{\"path\":\"/\xc3\xa4\\u0001\"}",
	       "{\"path\":\"/[withheld:pattern]\\u0001\",\"withheld\":[\"pattern\"]}");
	/* Bytes that are no UTF-8: /\xffzebra */
	expect("zebra", "{\"path_b64\":\"L/96ZWJyYQ==\"}",
	       "{\"path_b64\":\"L/9bd2l0aGhlbGQ6cGF0dGVybl0=\",\"withheld\":[\"pattern\"]}");
	expect("zebra", "{\"argv\":[{\"b64\":\"/3plYnJh\"}]}",
	       "{\"argv\":[{\"b64\":\"/1t3aXRoaGVsZDpwYXR0ZXJuXQ==\"}],\"withheld\":[\"pattern\"]}");
}

static void test_says_so(void **state)
{
	(void)state;
	expect("zebra", "{\"path\":\"zebra\",\"withheld\":[\"jwt\"]}",
	       "{\"path\":\"[withheld:pattern]\",\"withheld\":[\"jwt\",\"pattern\"]}");
	expect("zebra", "{\"path\":\"zebra\",\"withheld\":[\"pattern\"]}",
	       "{\"path\":\"[withheld:pattern]\",\"withheld\":[\"pattern\"]}");
	expect("zebra", "{\"path\":\"zebra\",\"x\":1}",
	       "{\"path\":\"[withheld:pattern]\",\"withheld\":[\"pattern\"],\"x\":1}");
	expect("jwt", "{\"path\":\"a\",\"withheld\":[\"jwt\"]}", NULL);
}

static void test_kept(void **state)
{
	static const char record[] =
	    "{\"class\":\"mediated\",\"how\":\"observed\",\"keys\":{\"ledger\":\"ab\"},\"kind\":\"file.read\","
	    "\"lane\":\"kernel\",\"result\":{\"state\":\"ok\"},\"run\":\"R\",\"schema\":\"assure.effect/1\",\"seq\":1,"
	    "\"time\":\"t\",\"type\":\"file\"}";

	(void)state;
	expect(".+", record, NULL);
}

static void test_too_long(void **state)
{
	CLEANUP_BUF struct buf record = {.limit = RECORD_SIZE_LIMIT}, out = {.limit = RECORD_SIZE_LIMIT};
	struct redactor *redactor = compile("a");

	(void)state;
	buf_append_text(&record, "{\"path\":\"");
	for (unsigned i = 0; i < 20000; i++)
		buf_append_text(&record, "ab");
	buf_append_text(&record, "\"}");
	enum redacted found = redact_record(redactor, buf_bytes(&record), NULL, &out);
	redactor_free(redactor);
	assert_int_equal(found, REDACTED_FAILED);
	assert_int_equal(out.size, 0);
}

static void test_signed_documents(void **state)
{
	struct redactor *redactor = compile("zebra");

	(void)state;
	assert_true(redact_finds(redactor, BYTES("{\"payload\":{\"host\":\"zebra\"}}")));
	assert_true(redact_finds(redactor, BYTES("{\"entries\":[\"{}\",\"{\\\"reason\\\":\\\"a zebra\\\"}\"]}")));
	assert_false(redact_finds(redactor, BYTES("{\"payload\":{\"host\":\"horse\",\"use\":\"zebra\"}}")));
	assert_false(redact_finds(redactor, BYTES("{\"entries\":[\"{\\\"run\\\":\\\"zebra\\\"}\"]}")));
	redactor_free(redactor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_taken_out), cmocka_unit_test(test_says_so),          cmocka_unit_test(test_kept),
	    cmocka_unit_test(test_too_long),  cmocka_unit_test(test_signed_documents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
