/*
 * Canonical JSON: numbers against the published digest of a generated list, documents against what RFC 8785 says of each of
 * its rules, and the fast check against the slow writer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/digest.h"
#include "base/jcs.h"
#include "base/text.h"
#include "jcs_numbers.h"

static double of_bits(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static void expect_number(uint64_t bits, const char *wanted)
{
	char text[JCS_NUMBER_SIZE];

	assert_true(jcs_number(of_bits(bits), text));
	assert_string_equal(text, wanted);
}

static void test_numbers(void **state)
{
	char text[JCS_NUMBER_SIZE];

	(void)state;
	expect_number(0x4340000000000001, "9007199254740994");
	expect_number(0x4340000000000002, "9007199254740996");
	expect_number(0x444b1ae4d6e2ef50, "1e+21");
	expect_number(0x3eb0c6f7a0b5ed8d, "0.000001");
	expect_number(0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7");
	expect_number(0x8000000000000000, "0");
	expect_number(0, "0");
	expect_number(0x0000000000000001, "5e-324");
	expect_number(0x7fefffffffffffff, "1.7976931348623157e+308");
	expect_number(0xffefffffffffffff, "-1.7976931348623157e+308");
	expect_number(0x0060000000000000, "7.120236347223045e-307"); /* next to a power of two */
	expect_number(0x4480f0cf064dd592, "1e+22");
	expect_number(0x433fffffffffffff, "9007199254740991");
	expect_number(0x3ff8000000000000, "1.5");
	assert_false(jcs_number(of_bits(0x7ff0000000000000), text));
	assert_false(jcs_number(of_bits(0x7ff8000000000000), text));
}

/* The fixed numbers, 2 000 in a row from the smallest normal one on, and then what a chain of SHA-256 gives. */
struct sequence {
	size_t index, used;
	struct digest block;
};

static uint64_t next_bits(struct sequence *sequence)
{
	enum { FIXED = sizeof(fixed_bits) / sizeof(fixed_bits[0]), ROW = 2000, PARTS = DIGEST_SIZE / 8 };
	size_t index = sequence->index++;
	uint64_t bits;

	if (index < FIXED)
		return fixed_bits[index];
	if (index < FIXED + ROW)
		return 0x0010000000000000 + (index - FIXED);
	do {
		if (sequence->used % PARTS == 0)
			assert_true(digest_of(digest_bytes(&sequence->block), &sequence->block));
		bits = 0;
		for (size_t i = 0; i < 8; i++)
			bits |= (uint64_t)sequence->block.bytes[8 * (sequence->used % PARTS) + i] << (8 * i);
		sequence->used++;
	} while ((bits << 1) == 0 || (bits & 0x7ff0000000000000) == 0x7ff0000000000000);
	return bits;
}

static void test_generated(void **state)
{
	static const struct {
		size_t lines;
		const char *digest;
	} rows[] = {
	    {1000, "be18b62b6f69cdab33a7e0dae0d9cfa869fda80ddc712221570f9f40a5878687"},
	    {10000, "b9f7a8e75ef22a835685a52ccba7f7d6bdc99e34b010992cbc5864cd12be6892"},
	    {100000, "22776e6d4b49fa294a0d0f349268e5c28808fe7e0cb2bcbe28f63894e494d4c7"},
	    {1000000, "49415fee2c56c77864931bd3624faad425c3c577d6d74e89a83bc725506dad16"},
	};
	const char *full = getenv("ASSURE_TEST_FULL");
	size_t most = full && strcmp(full, "yes") == 0 ? 4 : 3;
	CLEANUP_BUF struct buf text = {.limit = 1 << 26};
	struct sequence sequence = {.index = 0};

	(void)state;
	for (size_t row = 0; row < most; row++) {
		while (sequence.index < rows[row].lines) {
			uint64_t bits = next_bits(&sequence);
			char number[JCS_NUMBER_SIZE];
			assert_true(jcs_number(of_bits(bits), number));
			buf_append_format(&text, "%lx,%s\n", bits, number);
			assert_true(jcs_is_canonical(bytes_of(number)));
		}
		struct digest found, wanted;
		assert_true(digest_of(buf_bytes(&text), &found));
		assert_true(text_hex_parse(bytes_of(rows[row].digest), wanted.bytes, DIGEST_SIZE));
		assert_memory_equal(found.bytes, wanted.bytes, DIGEST_SIZE);
	}
}

static void expect_written(struct bytes in, const char *wanted)
{
	CLEANUP_BUF struct buf out = {.limit = 1 << 16};
	struct err err = {0};

	if (!jcs_write(in, &out, &err))
		fail_msg("%s", err.text);
	assert_true(bytes_equal(buf_bytes(&out), bytes_of(wanted)));
	assert_true(jcs_is_canonical(buf_bytes(&out)));
	assert_int_equal(jcs_is_canonical(in), bytes_equal(in, buf_bytes(&out)));
}

static void test_documents(void **state)
{
	(void)state;
	expect_written(BYTES(" [ 56 , { \"d\" : true , \"10\" : null , \"1\" : [ ] } ] \n"),
		       "[56,{\"1\":[],\"10\":null,\"d\":true}]");
	expect_written(BYTES("{\"peach\":1,\"p\xc3\xa9"
			     "ch\xc3\xa9\":2,\"p\xc3\xaa"
			     "che\":3,\"sin\":4}"),
		       "{\"peach\":1,\"p\xc3\xa9"
		       "ch\xc3\xa9\":2,\"p\xc3\xaa"
		       "che\":3,\"sin\":4}");
	/* By UTF-16: U+1F602 is two units, the first of them below U+FB33. */
	expect_written(
	    BYTES("{\"\xef\xac\xb3\":1,\"\xf0\x9f\x98\x82\":2,\"\xe2\x82\xac\":3,\"\\r\":4,\"1\":5,\"\xc2\x80\":6}"),
	    "{\"\\r\":4,\"1\":5,\"\xc2\x80\":6,\"\xe2\x82\xac\":3,\"\xf0\x9f\x98\x82\":2,\"\xef\xac\xb3\":1}");
	expect_written(BYTES("[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001,-0,-0.0,1e0]"),
		       "[333333333.3333333,1e+30,4.5,0.002,1e-27,0,0,1]");
	expect_written(BYTES("\"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\\u007f\""),
		       "\"\xe2\x82\xac$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\x7f\"");
	expect_written(BYTES("\"\\ud83d\\ude02\""), "\"\xf0\x9f\x98\x82\"");
	expect_written(BYTES("{\"a\":{\"b\":{},\"\":[[]]}}"), "{\"a\":{\"\":[[]],\"b\":{}}}");
	expect_written(BYTES("\"\\u0000\""), "\"\\u0000\"");
}

static void test_refused(void **state)
{
	static const struct bytes rows[] = {
	    BYTES(""),
	    BYTES(" "),
	    BYTES("{\"a\":1,\"a\":2}"),
	    BYTES("{\"a\":1,\"\\u0061\":2}"),
	    BYTES("\"\\ud800\""),
	    BYTES("\"\\udc00\""),
	    BYTES("\"\\ud800\\u0041\""),
	    BYTES("\"\xed\xa0\x80\""),
	    BYTES("\"\xff\""),
	    BYTES("\"\n\""),
	    BYTES("\"a"),
	    BYTES("\"\\"),
	    BYTES("\"\\x\""),
	    BYTES("\"\\u12\""),
	    BYTES("1 2"),
	    BYTES("[1,]"),
	    BYTES("[1 2]"),
	    BYTES("{1:2}"),
	    BYTES("{\"a\"}"),
	    BYTES("{\"a\":1,}"),
	    BYTES("01"),
	    BYTES("+1"),
	    BYTES("1."),
	    BYTES(".5"),
	    BYTES("1e"),
	    BYTES("1e999"),
	    BYTES("0x1"),
	    BYTES("nan"),
	    BYTES("Infinity"),
	    BYTES("tru"),
	    BYTES("["),
	    BYTES("]"),
	};
	CLEANUP_BUF struct buf deep = {.limit = 1 << 16};
	CLEANUP_BUF struct buf out = {.limit = 1 << 16};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = {0};
		if (jcs_write(rows[i], &out, &err))
			fail_msg("row %zu was taken", i);
		assert_true(err_is_set(&err));
		assert_int_equal(out.size, 0);
		assert_false(jcs_is_canonical(rows[i]));
	}
	for (int i = 0; i < 1000; i++)
		buf_append_char(&deep, '[');
	assert_false(jcs_write(buf_bytes(&deep), &out, NULL));
	assert_false(jcs_is_canonical(buf_bytes(&deep)));
}

/* The form is one: whatever differs from it in a byte is another document, or none. */
static void test_one_form(void **state)
{
	static const char *const rows[] = {
	    " 1",
	    "1 ",
	    "[1, 2]",
	    "{\"a\" :1}",
	    "1.0",
	    "1e2",
	    "100e0",
	    "-0",
	    "\"\\/\"",
	    "\"\\u0041\"",
	    "\"\\u000A\"",
	    "\"\\u001F\"",
	    "{\"b\":1,\"a\":2}",
	    "0.0000001",
	    "1E+21",
	    "10000000000000000000000",
	    "9007199254740993",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CLEANUP_BUF struct buf out = {.limit = 4096};
		if (jcs_is_canonical(bytes_of(rows[i])))
			fail_msg("%s was taken for canonical", rows[i]);
		assert_true(jcs_write(bytes_of(rows[i]), &out, NULL));
		assert_true(jcs_is_canonical(buf_bytes(&out)));
	}
}

static void test_members(void **state)
{
	static const struct bytes document = BYTES("{\"a\":[1,{\"b\":2}],\"b\":\"x\\ny\",\"c\":{\"a\":3}}");

	(void)state;
	assert_true(bytes_equal(jcs_member(document, "a"), BYTES("[1,{\"b\":2}]")));
	assert_true(bytes_equal(jcs_member(document, "b"), BYTES("\"x\\ny\"")));
	assert_true(bytes_equal(jcs_member(document, "c"), BYTES("{\"a\":3}")));
	assert_null(jcs_member(document, "d").data);
	assert_null(jcs_member(BYTES("[1]"), "a").data);
	assert_null(jcs_member(BYTES("{\"a\":"), "a").data);
	assert_null(jcs_member(BYTES(""), "a").data);
}

/* The shapes that need most memory for their size. */
static void test_shapes(void **state)
{
	static const char *const shapes[] = {"[],",       "{},",          "\"\",", "1,",
					     "{\"\":0},", "{\"\":\"\"},", "[[]],", "[0,0],"};

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		CLEANUP_BUF struct buf in = {.limit = 1 << 20}, out = {.limit = 1 << 20};
		buf_append_char(&in, '[');
		for (int count = 0; count < 20000; count++)
			buf_append_text(&in, shapes[i]);
		buf_append_text(&in, "0]");
		assert_true(jcs_write(buf_bytes(&in), &out, NULL));
		assert_true(bytes_equal(buf_bytes(&in), buf_bytes(&out)));
	}
}

/* What ECMAScript's JSON.stringify makes of the same names: array indices first, the rest sorted or as given. */
static void expect_content(struct bytes value, const char *text, size_t size)
{
	CLEANUP_BUF struct buf out = {.limit = 64};

	assert_true(jcs_string(value, &out));
	assert_int_equal(out.size, size);
	assert_memory_equal(buf_bytes(&out).data, text, size);
}

static void test_strings(void **state)
{
	static const struct bytes refused[] = {
	    BYTES(""),  BYTES("\""),      BYTES("\"a"),         BYTES("a"),        BYTES("\"a\"b"),
	    BYTES("1"), BYTES("\"\\/\""), BYTES("\"\\u0041\""), BYTES("\"\xff\""), BYTES("[\"a\"]"),
	};
	CLEANUP_BUF struct buf out = {.limit = 64};

	(void)state;
	expect_content(BYTES("\"\""), "", 0);
	expect_content(BYTES("\"a b\""), "a b", 3);
	expect_content(BYTES("\"\\\"\\\\\\b\\f\\n\\r\\t\""), "\"\\\b\f\n\r\t", 7);
	expect_content(BYTES("\"\\u0000\\u001f\""), "\0\x1f", 2);
	expect_content(BYTES("\"\xc3\xa4\xf0\x9f\x98\x80/\""), "\xc3\xa4\xf0\x9f\x98\x80/", 7);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_false(jcs_string(refused[i], &out));
}

static void test_elements(void **state)
{
	struct bytes rest = BYTES("[1,[2],\"a,b\"]"), one;

	(void)state;
	assert_true(jcs_element(&rest, &one) && bytes_equal(one, BYTES("1")));
	assert_true(jcs_element(&rest, &one) && bytes_equal(one, BYTES("[2]")));
	assert_true(jcs_element(&rest, &one) && bytes_equal(one, BYTES("\"a,b\"")));
	assert_false(jcs_element(&rest, &one));
	rest = BYTES("[]");
	assert_false(jcs_element(&rest, &one));
	rest = BYTES("{\"a\":1}");
	assert_false(jcs_element(&rest, &one));
	rest = BYTES_NONE;
	assert_false(jcs_element(&rest, &one));
}

static void test_pairs(void **state)
{
	struct bytes rest = BYTES("{\"a\":1,\"b\":{\"c\":[2]}}"), key, value;

	(void)state;
	assert_true(jcs_pair(&rest, &key, &value) && bytes_equal(key, BYTES("a")) && bytes_equal(value, BYTES("1")));
	assert_true(jcs_pair(&rest, &key, &value) && bytes_equal(key, BYTES("b")) &&
		    bytes_equal(value, BYTES("{\"c\":[2]}")));
	assert_false(jcs_pair(&rest, &key, &value));
	rest = BYTES("{}");
	assert_false(jcs_pair(&rest, &key, &value));
	rest = BYTES("[1]");
	assert_false(jcs_pair(&rest, &key, &value));
	rest = BYTES_NONE;
	assert_false(jcs_pair(&rest, &key, &value));
	assert_null(jcs_member(BYTES_NONE, "a").data);
	assert_false(jcs_is_canonical(BYTES_NONE));
}

static void test_orders(void **state)
{
	static const struct bytes in =
	    BYTES("{\"b\":1,\"10\":2,\"9\":3,\"-1\":4,\"01\":5,\"4294967294\":6,\"4294967295\":7,\"\xef\xbf\xbf\":8,"
		  "\"\xf0\x9f\x98\x80\":9,\"\":{\"z\":[],\"1\":{},\"0\":0,\"a\":1},\"1.0\":-0,\"0\":1e1}");
	static const struct {
		enum jcs_order order;
		const char *text;
	} rows[] = {
	    {JCS_RFC8785,
	     "{\"\":{\"0\":0,\"1\":{},\"a\":1,\"z\":[]},\"-1\":4,\"0\":10,\"01\":5,\"1.0\":0,\"10\":2,"
	     "\"4294967294\":6,\"4294967295\":7,\"9\":3,\"b\":1,\"\xf0\x9f\x98\x80\":9,\"\xef\xbf\xbf\":8}"},
	    {JCS_ECMA_SORTED, "{\"0\":10,\"9\":3,\"10\":2,\"4294967294\":6,\"\":{\"0\":0,\"1\":{},\"a\":1,\"z\":[]},"
			      "\"-1\":4,\"01\":5,\"1.0\":0,\"4294967295\":7,\"b\":1,\"\xf0\x9f\x98\x80\":9,"
			      "\"\xef\xbf\xbf\":8}"},
	    {JCS_ECMA_GIVEN, "{\"0\":10,\"9\":3,\"10\":2,\"4294967294\":6,\"b\":1,\"-1\":4,\"01\":5,\"4294967295\":7,"
			     "\"\xef\xbf\xbf\":8,\"\xf0\x9f\x98\x80\":9,\"\":{\"0\":0,\"1\":{},\"z\":[],\"a\":1},"
			     "\"1.0\":0}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CLEANUP_BUF struct buf out = {.limit = 1 << 16};
		assert_true(jcs_write_as(in, rows[i].order, &out, NULL));
		assert_string_equal(out.data, rows[i].text);
		assert_false(jcs_write_as(BYTES("{\"a\":1,\"b\":2,\"a\":1}"), rows[i].order, &out, NULL));
		assert_false(jcs_write_as(BYTES("{\"7\":1,\"b\":2,\"7\":1}"), rows[i].order, &out, NULL));
		assert_int_equal(jcs_write_as(BYTES("[{\"__proto__\":{}}]"), rows[i].order, &out, NULL),
				 rows[i].order == JCS_RFC8785);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_numbers), cmocka_unit_test(test_generated), cmocka_unit_test(test_documents),
	    cmocka_unit_test(test_refused), cmocka_unit_test(test_one_form),  cmocka_unit_test(test_members),
	    cmocka_unit_test(test_strings), cmocka_unit_test(test_elements),  cmocka_unit_test(test_pairs),
	    cmocka_unit_test(test_orders),  cmocka_unit_test(test_shapes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
