#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/redact.h"

#define DIGITS20 "01234567890123456789"
#define WORD20 "abcdefghijklmnopqrst"

static struct redactor *redactor;

static int set_up(void **state)
{
	(void)state;
	redactor = redactor_new(NULL, 0, NULL);
	return redactor ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	redactor_free(redactor);
	return 0;
}

/* What is left of `text`; `wanted` NULL: all of it. */
static void check(const struct redactor *with, struct bytes text, enum redact_as as, const char *wanted)
{
	CLEANUP_BUF struct buf out = {.limit = 1 << 20};
	redactions what = 0;
	bool changed = redact(with, text, as, &out, &what);

	if (changed != (wanted != NULL) || changed != (what != 0))
		fail_msg("[%.*s] became [%s], wanted [%s]", (int)text.size, text.data, changed ? out.data : "itself",
			 wanted ? wanted : "itself");
	if (wanted && !bytes_equal(buf_bytes(&out), bytes_of(wanted)))
		fail_msg("[%.*s] became [%s], wanted [%s]", (int)text.size, text.data, out.data, wanted);
}

static void argument(const char *text, const char *wanted)
{
	check(redactor, bytes_of(text), REDACT_ARGUMENT, wanted);
}

static void name(const char *text, const char *wanted)
{
	check(redactor, bytes_of(text), REDACT_NAME, wanted);
}

static void test_tokens(void **state)
{
	(void)state;
	argument("sk-ant-api03-" WORD20, "[withheld:anthropic-key]");
	argument("key sk-proj-A1" WORD20 " end", "key [withheld:openai-key] end");
	argument("ghp_" DIGITS20 DIGITS20, "[withheld:github-token]");
	argument("github_pat_" DIGITS20 "_" DIGITS20, "[withheld:github-token]");
	argument("glpat-" WORD20, "[withheld:gitlab-token]");
	argument("AKIAABCDEFGHIJKLMNOP", "[withheld:aws-key]");
	argument("xoxb-1234567890-ab", "[withheld:slack-token]");
	argument("AIza" DIGITS20 WORD20, "[withheld:google-key]");
	argument("hf_" WORD20 WORD20, "[withheld:huggingface-token]");
	argument("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln" DIGITS20, "[withheld:jwt]");
	name("/tmp/ghp_" DIGITS20 DIGITS20 "/file", "/tmp/[withheld:github-token]/file");
	argument("a=ghp_" DIGITS20 DIGITS20 ",ghp_" DIGITS20 DIGITS20,
		 "a=[withheld:github-token],[withheld:github-token]");
}

static void test_no_tokens(void **state)
{
	(void)state;
	name("/usr/lib/python3/sk-learn-contrib-examples-and-more", NULL);
	name("/home/user/task-" WORD20 DIGITS20, NULL);
	name("/home/user/ask-A1" WORD20, NULL);
	name("/work/ghp_short", NULL);
	name("/work/myghp_" DIGITS20 DIGITS20, NULL);
	name("AKIA", NULL);
	name("/usr/share/eyJson.config/directory/of/something.long", NULL);
	name("", NULL);
	name("-", NULL);
	check(redactor, BYTES_NONE, REDACT_ARGUMENT, NULL);
	argument("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", NULL);
	argument("http://host/path@2x", NULL);
	argument("git@github.com:me/it.git", NULL);
	argument("ssh://git@host/it", NULL);
}

static void test_values(void **state)
{
	(void)state;
	argument("Authorization: Basic dTpw", "Authorization: [withheld:authorization]");
	argument("curl -H \"authorization: Bearer x\" http://h",
		 "curl -H \"authorization: [withheld:authorization]\" http://h");
	argument("bearer " WORD20, "bearer [withheld:authorization]");
	argument("X-Api-Key: abc", "X-Api-Key: [withheld:api-key]");
	argument("PGPASSWORD=hunter2 psql", "PGPASSWORD=[withheld:password] psql");
	argument("password='with blank'", "password='[withheld:password] blank'");
	argument("http://h/?key=abc&token=def#x", "http://h/?key=[withheld:api-key]&token=[withheld:token]");
	argument("mysql --password=abc -u root", "mysql --password=[withheld:option] -u root");
	argument("login --token abc; ls", "login --token [withheld:option]; ls");
	argument("login --token-file abc; ls", NULL);
	argument("password=$SECRET", NULL);
	argument("password=", NULL);
	name("/home/user/token=abc", NULL);
}

static void test_urls_and_blocks(void **state)
{
	(void)state;
	argument("https://user:pass@host/x", "https://user:[withheld:url-password]@host/x");
	argument("https://user:pa:ss@wo@host/x", "https://user:[withheld:url-password]@host/x");
	argument("https://" WORD20 "@host", "https://[withheld:url-password]@host");
	argument("https://user:@host", NULL);
	name("https://user:pass@host", "https://user:[withheld:url-password]@host");
	argument("a -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- b",
		 "a [withheld:private-key] b");
	argument("-----BEGIN PRIVATE KEY-----\nMII", "[withheld:private-key]");
}

static void test_bytes(void **state)
{
	CLEANUP_BUF struct buf out = {.limit = 1 << 16};
	redactions what = 0;

	(void)state;
	assert_true(redact(redactor, BYTES("\xff\0ghp_" DIGITS20 DIGITS20 "\0\xfe"), REDACT_NAME, &out, &what));
	assert_true(bytes_equal(buf_bytes(&out), BYTES("\xff\0[withheld:github-token]\0\xfe")));
}

static void test_options(void **state)
{
	CLEANUP_BUF struct buf out = {.limit = 1 << 16};
	redactions what = 0;

	(void)state;
	assert_true(redact_argument(redactor, BYTES("--password"), BYTES("x"), &out, &what));
	assert_string_equal(out.data, "[withheld:option]");
	assert_int_equal(what, UINT64_C(1) << redaction_count());
	what = 0;
	assert_false(redact_argument(redactor, BYTES("--passwords"), BYTES("x"), &out, &what));
	assert_false(redact_argument(redactor, BYTES_NONE, BYTES("x"), &out, &what));
	assert_false(redact_argument(redactor, BYTES("--password"), BYTES_NONE, &out, &what));
	assert_int_equal(what, 0);
}

static void test_patterns(void **state)
{
	const char *const patterns[] = {"hunter[0-9]+", "(?i)project x", "^$|\\Kz"};
	const char *const wrong[] = {"fine", "(unclosed"};
	const char *const slow[] = {"(a+)+$"};
	char text[4096];
	struct err err = {0};

	(void)state;
	struct redactor *with = redactor_new(patterns, 3, &err);
	assert_non_null(with);
	check(with, BYTES("hunter12 on Project X"), REDACT_NAME, "[withheld:pattern] on [withheld:pattern]");
	check(with, BYTES("ghp_" DIGITS20 DIGITS20 " hunter1"), REDACT_NAME,
	      "[withheld:github-token] [withheld:pattern]");
	check(with, BYTES("ghp_" DIGITS20 DIGITS20), REDACT_NAME, "[withheld:github-token]");
	check(with, BYTES("nothing"), REDACT_NAME, NULL);
	redactor_free(with);
	assert_null(redactor_new(wrong, 2, &err));
	assert_non_null(strstr(err.text, "expression 2"));
	assert_null(strstr(err.text, "unclosed"));

	/* What cannot be decided is withheld whole. */
	with = redactor_new(slow, 1, NULL);
	assert_non_null(with);
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = 'b';
	check(with, (struct bytes){text, sizeof(text)}, REDACT_NAME, "[withheld:pattern]");
	redactor_free(with);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_tokens),          cmocka_unit_test(test_no_tokens), cmocka_unit_test(test_values),
	    cmocka_unit_test(test_urls_and_blocks), cmocka_unit_test(test_bytes),     cmocka_unit_test(test_options),
	    cmocka_unit_test(test_patterns),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
