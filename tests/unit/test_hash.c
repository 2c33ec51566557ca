/*
 * SHA-256 against published answers, whole and in pieces, and the one form in which digests are written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/fd.h"
#include "base/text.h"

static const struct {
	struct bytes data;
	const char *text;
} known[] = {
    {BYTES(""), "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {BYTES("abc"), "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {BYTES("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
     "sha256:248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
};

static const char million[] = "sha256:cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

static void expect_text(const struct digest *digest, const char *wanted)
{
	char text[DIGEST_TEXT_SIZE];

	digest_text(digest, text);
	assert_string_equal(text, wanted);
}

static void test_known(void **state)
{
	struct hasher *hasher = hasher_new(NULL);
	struct digest digest;

	(void)state;
	assert_non_null(hasher);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		assert_true(digest_of(known[i].data, &digest));
		expect_text(&digest, known[i].text);
		/* Cut anywhere, it is the same. */
		for (size_t cut = 0; cut <= known[i].data.size; cut++) {
			hasher_begin(hasher);
			hasher_add(hasher, (struct bytes){known[i].data.data, cut});
			hasher_add(hasher, (struct bytes){known[i].data.data + cut, known[i].data.size - cut});
			assert_true(hasher_end(hasher, &digest));
			expect_text(&digest, known[i].text);
		}
	}
	assert_true(digest_of(BYTES_NONE, &digest));
	expect_text(&digest, known[0].text);
	hasher_free(hasher);
}

/* What was begun and not ended leaves nothing behind. */
static void test_begun_again(void **state)
{
	struct hasher *hasher = hasher_new(NULL);
	struct digest digest;

	(void)state;
	assert_non_null(hasher);
	hasher_begin(hasher);
	hasher_add(hasher, BYTES("something else"));
	hasher_begin(hasher);
	hasher_add(hasher, BYTES("abc"));
	assert_true(hasher_end(hasher, &digest));
	expect_text(&digest, known[1].text);
	hasher_free(hasher);
}

static void test_file(void **state)
{
	enum { MILLION = 1000000 };
	int fd CLEANUP_FD = memfd_create("digest", MFD_CLOEXEC);
	char *data = malloc(MILLION);
	struct digest digest;
	struct err err = {0};
	uint64_t size;

	(void)state;
	assert_non_null(data);
	memset(data, 'a', MILLION);
	assert_true(fd_write_full(fd, data, MILLION));
	free(data);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_true(digest_of_file(fd, &digest, &size, &err));
	assert_int_equal(size, MILLION);
	expect_text(&digest, million);
	/* From where it stands: the end. */
	assert_true(digest_of_file(fd, &digest, NULL, &err));
	expect_text(&digest, known[0].text);
	assert_false(digest_of_file(-1, &digest, &size, &err));
	assert_true(err_is_set(&err));
}

static void test_text(void **state)
{
	static const struct bytes bad[] = {
	    BYTES(""),
	    BYTES("sha256:"),
	    BYTES("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
	    BYTES("sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015a"),
	    BYTES("sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad0"),
	    BYTES("sha256:BA7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
	    BYTES("sha256:ga7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
	    BYTES("sha257:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
	};
	struct digest digest, found;

	(void)state;
	assert_true(digest_of(known[1].data, &digest));
	assert_true(digest_parse(bytes_of(known[1].text), &found));
	assert_true(digest_equal(&digest, &found));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (digest_parse(bad[i], &found))
			fail_msg("row %zu was taken", i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_known),
	    cmocka_unit_test(test_begun_again),
	    cmocka_unit_test(test_file),
	    cmocka_unit_test(test_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
