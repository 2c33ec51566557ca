#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/text.h"

typedef void encoder(struct buf *out, struct bytes bytes);

static void check(encoder *encode, struct bytes in, const char *expected)
{
	struct buf out CLEANUP_BUF = {0};
	encode(&out, in);
	buf_append_char(&out, '\0');
	assert_string_equal(out.data, expected);
	assert_int_equal(out.size, strlen(expected) + 1);
}

static void test_utf8(void **state)
{
	(void)state;
	static const struct {
		struct bytes bytes;
		bool valid;
	} rows[] = {
	    {{"", 0}, true},
	    {{"a\0b", 3}, true},
	    {{"\xc3\xa9", 2}, true},
	    {{"\xc3", 1}, false},
	    {{"\xc0\x80", 2}, false},
	    {{"\xc1\xbf", 2}, false},
	    {{"\xc2\x80", 2}, true},
	    {{"\x80", 1}, false},
	    {{"\xe0\x9f\xbf", 3}, false},
	    {{"\xe0\xa0\x80", 3}, true},
	    {{"\xed\x9f\xbf", 3}, true},
	    {{"\xed\xa0\x80", 3}, false},
	    {{"\xed\xbf\xbf", 3}, false},
	    {{"\xee\x80\x80", 3}, true},
	    {{"\xe2\x82", 2}, false},
	    {{"\xe2\x82\x41", 3}, false},
	    {{"\xf0\x8f\xbf\xbf", 4}, false},
	    {{"\xf0\x90\x80\x80", 4}, true},
	    {{"\xf4\x8f\xbf\xbf", 4}, true},
	    {{"\xf4\x90\x80\x80", 4}, false},
	    {{"\xf5\x80\x80\x80", 4}, false},
	    {{"\xf0\x9f\x98", 3}, false},
	    {{"\xff", 1}, false},
	    {{"\xfe", 1}, false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(text_is_utf8(rows[i].bytes), rows[i].valid);
	uint32_t code_point = 0;
	assert_int_equal(text_utf8_decode(BYTES("\xf0\x9f\x98\x80!"), &code_point), 4);
	assert_int_equal(code_point, 0x1f600);
	/* NOLINTNEXTLINE(misc-misleading-bidirectional): escapes in the source mislead nobody */
	assert_int_equal(text_utf8_decode(BYTES("\xe2\x80\xae"), &code_point), 3);
	assert_int_equal(code_point, 0x202e);
	assert_int_equal(text_utf8_decode(BYTES("\xc3\xa9"), &code_point), 2);
	assert_int_equal(code_point, 0xe9);
	assert_int_equal(text_utf8_decode(BYTES_NONE, &code_point), 0);
}

static void test_base64_hex(void **state)
{
	(void)state;
	check(text_base64, BYTES(""), "");
	check(text_base64, BYTES("f"), "Zg==");
	check(text_base64, BYTES("fo"), "Zm8=");
	check(text_base64, BYTES("foo"), "Zm9v");
	check(text_base64, BYTES("foobar"), "Zm9vYmFy");
	check(text_base64, BYTES("\xfb\xff\xfe"), "+//+");
	check(text_hex, BYTES("\0\x0f\xa5\xff"), "000fa5ff");
	check(text_hex, BYTES_NONE, "");
}

static void test_crockford(void **state)
{
	(void)state;
	char out[27];
	uint8_t value[16];
	memset(value, 0xff, sizeof(value));
	text_crockford128(value, out);
	assert_string_equal(out, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
	memset(value, 0, sizeof(value));
	value[15] = 33;
	text_crockford128(value, out);
	assert_string_equal(out, "00000000000000000000000011");
	/* The ULID 01ARZ3NDEKTSV4RRFFQ69G5FAV of its specification. */
	static const uint8_t ulid[16] = {0x01, 0x56, 0x3e, 0x3a, 0xb5, 0xd3, 0xd6, 0x76,
					 0x4c, 0x61, 0xef, 0xb9, 0x93, 0x02, 0xbd, 0x5b};
	text_crockford128(ulid, out);
	assert_string_equal(out, "01ARZ3NDEKTSV4RRFFQ69G5FAV");
	static const char *const rows = "0011oOiIlLzZaA9u U@-";
	static const char expected[] = {'0', '0', '1', '1', '0', '0', '1', '1', '1', '1',
					'Z', 'Z', 'A', 'A', '9', 0,   0,   0,   0,   0};
	for (size_t i = 0; rows[i]; i++)
		assert_int_equal(text_crockford_canonical(rows[i]), expected[i]);
	assert_int_equal(text_crockford_canonical('\0'), 0);
	assert_int_equal(text_crockford_canonical('\xe9'), 0);
}

static void test_terminal(void **state)
{
	(void)state;
	check(text_for_terminal, BYTES("plain \xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80"),
	      "plain \xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80");
	check(text_for_terminal, BYTES("a\nb\tc\rd\\e"), "a\\nb\\tc\\x0dd\\\\e");
	check(text_for_terminal, BYTES("\x1b[31m\x7f\0"), "\\x1b[31m\\x7f\\x00");
	check(text_for_terminal, BYTES("\x9b"), "\\x9b");
	check(text_for_terminal, BYTES("\xc2\x9b\xc2\x80\xc2\x9f"), "\\u{009b}\\u{0080}\\u{009f}");
	check(text_for_terminal, BYTES("\xed\xa0\x80"), "\\xed\\xa0\\x80");
	check(text_for_terminal, BYTES("\xe2\x82"), "\\xe2\\x82");
	check(text_for_terminal, BYTES("\xef\xbb\xbf"), "\\u{feff}");
	check(text_for_terminal, BYTES("\xf3\xa0\x81\x81"), "\\u{e0041}");
}

/* Every code point that the header promises to show as an escape, and none of the plain ones around them. */
static void test_terminal_hidden(void **state)
{
	(void)state;
	static const uint32_t hidden[][2] = {{0x80, 0x9f},     {0x200b, 0x200f}, {0x2028, 0x202e},
					     {0x2066, 0x2069}, {0xfeff, 0xfeff}, {0xe0000, 0xe007f}};
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
		for (uint32_t c = hidden[i][0]; c <= hidden[i][1]; c++) {
			char in[4], expected[16];
			size_t size = 0;
			if (c >= 0x10000) {
				in[size++] = (char)(0xf0 | c >> 18);
				in[size++] = (char)(0x80 | (c >> 12 & 63));
			} else if (c >= 0x800) {
				in[size++] = (char)(0xe0 | c >> 12);
			}
			if (c >= 0x800)
				in[size++] = (char)(0x80 | (c >> 6 & 63));
			else
				in[size++] = (char)(0xc0 | c >> 6);
			in[size++] = (char)(0x80 | (c & 63));
			snprintf(expected, sizeof(expected), "\\u{%04x}", (unsigned)c);
			check(text_for_terminal, (struct bytes){in, size}, expected);
		}
	}
	check(text_for_terminal, BYTES("\xc2\xa1\xe2\x80\x90\xe2\x80\xb0"), "\xc2\xa1\xe2\x80\x90\xe2\x80\xb0");
}

static void test_shell_word(void **state)
{
	(void)state;
	check(text_shell_word, BYTES(""), "''");
	check(text_shell_word, BYTES("/usr/bin/ls"), "/usr/bin/ls");
	check(text_shell_word, BYTES("--a=b"), "--a=b");
	check(text_shell_word, BYTES("A=b"), "'A=b'");
	check(text_shell_word, BYTES("=b"), "'=b'");
	check(text_shell_word, BYTES("~"), "'~'");
	check(text_shell_word, BYTES("a b"), "'a b'");
	check(text_shell_word, BYTES("it's"), "'it'\\''s'");
	check(text_shell_word, BYTES("a\\b$(x)`y`"), "'a\\b$(x)`y`'");
	check(text_shell_word, BYTES("\xc3\xa9"), "'\xc3\xa9'");
	check(text_shell_word,
	      BYTES("a\n\t'\\\x1b"
		    "1"),
	      "$'a\\n\\t\\'\\\\\\0331'");
	check(text_shell_word, BYTES("\xff"), "$'\\377'");
	/* NOLINTNEXTLINE(misc-misleading-bidirectional): escapes in the source mislead nobody */
	check(text_shell_word, BYTES("\xe2\x80\xae"), "$'\\342\\200\\256'");
}

/* A real shell reads back what was written. */
static void test_shell_round_trip(void **state)
{
	(void)state;
	if (access("/bin/bash", X_OK) != 0)
		skip();
	static const char *const words[] = {
	    /* NOLINTNEXTLINE(misc-misleading-bidirectional): escapes in the source mislead nobody */
	    "x", "a b'c\"d", "$HOME\n'\t\\", "\x1b[0m7\xff\x80 'q'", "*?[a]!#~{a,b}", "A=\xe2\x80\xae\0019"};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct buf script CLEANUP_BUF = {0};
		buf_append_text(&script, "printf %s ");
		text_shell_word(&script, bytes_of(words[i]));
		/* sh may not know $'...': the script reaches bash by its environment instead. */
		assert_int_equal(setenv("SCRIPT", script.data, 1), 0);
		/* NOLINTNEXTLINE(cert-env33-c): a shell is what is tested */
		FILE *pipe = popen("exec /bin/bash -c 'eval \"$SCRIPT\"'", "r");
		assert_non_null(pipe);
		char got[64];
		size_t size = fread(got, 1, sizeof(got), pipe);
		assert_int_equal(pclose(pipe), 0);
		assert_int_equal(size, strlen(words[i]));
		assert_memory_equal(got, words[i], size);
	}
}

static void test_width(void **state)
{
	(void)state;
	assert_int_equal(text_width(BYTES_NONE), 0);
	assert_int_equal(text_width(BYTES("abc")), 3);
	assert_int_equal(text_width(BYTES("\xc3\xa9")), 1);
	assert_int_equal(text_width(BYTES("e\xcc\x81")), 1);
	assert_int_equal(text_width(BYTES("\xe6\x97\xa5\xe6\x9c\xac")), 4);
	assert_int_equal(text_width(BYTES("\xf0\x9f\x98\x80x")), 3);
}

static void test_clock(void **state)
{
	(void)state;
	char out[31];
	clock_rfc3339(0, out);
	assert_string_equal(out, "1970-01-01T00:00:00.000000000Z");
	clock_rfc3339(1709210096789012345, out);
	assert_string_equal(out, "2024-02-29T12:34:56.789012345Z");
	clock_rfc3339(-1, out);
	assert_string_equal(out, "1969-12-31T23:59:59.999999999Z");
	clock_rfc3339(INT64_MAX, out);
	assert_string_equal(out, "2262-04-11T23:47:16.854775807Z");
	clock_rfc3339(INT64_MIN, out);
	assert_string_equal(out, "1677-09-21T00:12:43.145224192Z");
	uint64_t before = clock_monotonic_ns();
	assert_true(clock_monotonic_ns() >= before);
	assert_true(clock_realtime_ns() > 1700000000000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_utf8),
	    cmocka_unit_test(test_base64_hex),
	    cmocka_unit_test(test_crockford),
	    cmocka_unit_test(test_terminal),
	    cmocka_unit_test(test_terminal_hidden),
	    cmocka_unit_test(test_shell_word),
	    cmocka_unit_test(test_shell_round_trip),
	    cmocka_unit_test(test_width),
	    cmocka_unit_test(test_clock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
