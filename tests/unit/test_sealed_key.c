#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "../../ledger/sealed_key.h"

static const uint8_t seed[ED25519_SEED_SIZE] = {1, 2, 3};
static const struct ed25519_key public = {{4, 5, 6}};

static void test_round(void **state)
{
	CLEANUP_BUF struct buf text = {.limit = SEALED_KEY_TEXT_SIZE}, again = {.limit = SEALED_KEY_TEXT_SIZE};
	struct sealed_key sealed;
	uint8_t found[ED25519_SEED_SIZE];
	struct err err = {.number = 0};

	(void)state;
	assert_true(sealed_key_write(seed, &public, BYTES("pass"), &text, &err));
	assert_true(sealed_key_parse(buf_bytes(&text), &sealed));
	assert_memory_equal(sealed.public.bytes, public.bytes, sizeof(public.bytes));
	assert_true(sealed_key_open(&sealed, BYTES("pass"), found, &err));
	assert_memory_equal(found, seed, sizeof(seed));
	assert_false(sealed_key_open(&sealed, BYTES("pass\n"), found, &err));
	assert_int_equal(err.number, EACCES);
	sealed.box[3] ^= 1;
	assert_false(sealed_key_open(&sealed, BYTES("pass"), found, NULL));
	/* Two of one key have nothing in common that says so but the public key. */
	assert_true(sealed_key_write(seed, &public, BYTES("pass"), &again, &err));
	assert_false(bytes_equal(buf_bytes(&text), buf_bytes(&again)));
}

/* What is nearly one. */
static void test_forms(void **state)
{
	static const char *const wrong[] = {
	    "",
	    "assure.sealed-key/1 argon2id13 4 67108864\n",
	    "assure.sealed-key/2 argon2id13 4 67108864 AAAAAAAAAAAAAAAAAAAAAA== AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA "
	    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA "
	    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n",
	};
	char text[SEALED_KEY_TEXT_SIZE];
	struct sealed_key sealed;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(sealed_key_parse(bytes_of(wrong[i]), &sealed));
	memset(text, 'A', sizeof(text));
	assert_false(sealed_key_parse((struct bytes){text, sizeof(text)}, &sealed));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_round), cmocka_unit_test(test_forms)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
