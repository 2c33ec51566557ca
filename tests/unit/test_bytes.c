#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"

static void test_path_below(void **state)
{
	(void)state;
	static const struct {
		const char *path, *directory;
		bool below;
	} rows[] = {
	    {"/a/b", "/a", true}, {"/a", "/a", true},  {"/ab", "/a", false},     {"/", "/a", false},
	    {"/a", "/", true},    {"/", "/", true},    {"/a/b/c", "/a/b", true}, {"/a", "/a/b", false},
	    {"/a", "", false},    {"a/b", "a", false}, {"", "/", false},         {"/b/a", "/a", false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(bytes_path_below(bytes_of(rows[i].path), bytes_of(rows[i].directory)), rows[i].below);
	assert_true(bytes_path_below((struct bytes){"/a/\0x", 5}, BYTES("/a")));
	assert_false(bytes_path_below((struct bytes){"/a\0/x", 5}, BYTES("/a")));
	assert_false(bytes_path_below(BYTES_NONE, BYTES_NONE));
}

static void test_compare(void **state)
{
	(void)state;
	assert_true(bytes_equal(BYTES("a\0b"), BYTES("a\0b")));
	assert_false(bytes_equal(BYTES("a\0b"), BYTES("a\0c")));
	assert_false(bytes_equal(BYTES("a"), BYTES("a\0")));
	assert_true(bytes_start_with(BYTES_NONE, BYTES_NONE));
	assert_false(bytes_start_with(BYTES("a"), BYTES("ab")));
	assert_null(bytes_of(NULL).data);
}

static void test_buf_limit(void **state)
{
	(void)state;
	struct buf buf CLEANUP_BUF = {.limit = 100};
	assert_non_null(buf_bytes(&buf).data);
	for (int i = 0; i < 10; i++)
		buf_append_text(&buf, "0123456789");
	assert_false(buf.failed);
	assert_int_equal(buf.size, 100);
	assert_int_equal(buf.data[100], 0);
	buf_append(&buf, NULL, 0);
	assert_false(buf.failed);
	buf_append_char(&buf, 'x');
	assert_true(buf.failed);
	assert_int_equal(buf.size, 100);

	buf_reset(&buf);
	assert_int_equal(buf_bytes(&buf).size, 0);
	buf_append_format(&buf, "%099d", 7);
	assert_int_equal(buf.size, 99);
	buf_append_format(&buf, "%d", 12);
	assert_true(buf.failed);
	buf_append_char(&buf, 'x'); /* would fit, but something before it is missing */
	assert_int_equal(buf.size, 99);
}

static void test_buf_reserve(void **state)
{
	(void)state;
	struct buf buf CLEANUP_BUF;
	buf_init(&buf, 0);
	assert_null(buf_reserve(&buf, SIZE_MAX));
	assert_true(buf.failed);
	buf_reset(&buf);
	assert_null(buf_reserve(&buf, ((size_t)1 << 30) + 1));
	buf_reset(&buf);
	char *to = buf_reserve(&buf, 3);
	assert_non_null(to);
	struct bytes part = BYTES("a\0b");
	memcpy(to, part.data, part.size);
	buf_commit(&buf, part.size);
	assert_true(bytes_equal(buf_bytes(&buf), part));
	buf_commit(&buf, 1000);
	assert_true(buf.failed);
	assert_int_equal(buf.size, 3);
	buf_free(&buf);
	assert_null(buf.data);
	buf_commit(&buf, 0);
	assert_true(buf.failed);
}

static void test_arena(void **state)
{
	(void)state;
	struct arena arena;
	assert_true(arena_init(&arena, 64));
	assert_int_equal((uintptr_t)arena_alloc(&arena, 1) % 16, 0);
	assert_int_equal((uintptr_t)arena_alloc(&arena, 1) % 16, 0);
	assert_int_equal(arena.used, 17);
	assert_null(arena_alloc(&arena, 33));
	assert_null(arena_alloc(&arena, SIZE_MAX));
	assert_non_null(arena_alloc(&arena, 32));
	assert_int_equal(arena.used, 64);
	assert_null(arena_alloc(&arena, 1));
	arena_reset(&arena);
	struct bytes copy = arena_copy(&arena, BYTES("x\0y"));
	assert_true(bytes_equal(copy, BYTES("x\0y")));
	assert_int_equal(copy.data[3], 0);
	assert_null(arena_copy(&arena, BYTES_NONE).data);
	assert_non_null(arena_copy(&arena, BYTES("")).data);
	assert_true(bytes_equal(arena_format(&arena, "%d-%s", 4, "z"), BYTES("4-z")));
	assert_null(arena_format(&arena, "%065d", 1).data);
	arena_free(&arena);
	assert_null(arena_alloc(&arena, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_path_below),  cmocka_unit_test(test_compare), cmocka_unit_test(test_buf_limit),
	    cmocka_unit_test(test_buf_reserve), cmocka_unit_test(test_arena),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
