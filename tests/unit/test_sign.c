/*
 * Ed25519: what a strict verifier must refuse, where secret keys lie, and how keys are written down.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sign.h"
#include "base/text.h"

#define BEGIN "-----BEGIN PUBLIC KEY-----"
#define END "-----END PUBLIC KEY-----"
#define BODY "MCowBQYDK2VwAyEAiojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w="

static struct ed25519_secret *secret;
static const struct ed25519_key *key;

static void take_hex(const char *digits, void *out, size_t size)
{
	assert_true(text_hex_parse(bytes_of(digits), out, size));
}

/* RFC 8032 section 7.1, TEST SHA(abc). */
static void test_rfc8032(void **state)
{
	uint8_t seed[ED25519_SEED_SIZE], again[ED25519_SEED_SIZE], message[64], wanted[ED25519_SIGNATURE_SIZE];
	struct ed25519_signature signature;
	struct ed25519_key public;

	(void)state;
	take_hex("833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42", seed, sizeof(seed));
	take_hex("ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf", public.bytes,
		 sizeof(public.bytes));
	take_hex("ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
		 "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
		 message, sizeof(message));
	take_hex("dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b589"
		 "09351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704",
		 wanted, sizeof(wanted));
	struct ed25519_secret *made = ed25519_from_seed(seed, NULL);
	assert_non_null(made);
	assert_memory_equal(ed25519_public(made)->bytes, public.bytes, sizeof(public.bytes));
	ed25519_sign(made, (struct bytes){(const char *)message, sizeof(message)}, &signature);
	assert_memory_equal(signature.bytes, wanted, sizeof(wanted));
	ed25519_seed(made, again);
	assert_memory_equal(again, seed, sizeof(seed));
	ed25519_free(made);
}

/* The same signature with the group's order added to its scalar: the equation holds, a strict verifier refuses. */
static void test_scalar_out_of_range(void **state)
{
	static const uint8_t order[32] = {0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7,
					  0xa2, 0xde, 0xf9, 0xde, 0x14, 0,    0,    0,    0,    0,    0,
					  0,    0,    0,    0,    0,    0,    0,    0,    0,    0x10};
	struct ed25519_signature signature;
	unsigned carry = 0;

	(void)state;
	ed25519_sign(secret, BYTES("m"), &signature);
	assert_true(ed25519_verify(key, BYTES("m"), &signature));
	for (size_t i = 0; i < sizeof(order); i++) {
		carry += (unsigned)signature.bytes[32 + i] + order[i];
		signature.bytes[32 + i] = (uint8_t)carry;
		carry >>= 8;
	}
	assert_int_equal(carry, 0);
	assert_false(ed25519_verify(key, BYTES("m"), &signature));
}

/* Keys of small order, under which one signature would hold for every message (or every eighth). */
static void test_small_order(void **state)
{
	static const char *const keys[] = {
	    "0100000000000000000000000000000000000000000000000000000000000000",
	    "0000000000000000000000000000000000000000000000000000000000000000",
	    "0000000000000000000000000000000000000000000000000000000000000080",
	    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
	    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct ed25519_signature signature = {{0}};
		struct ed25519_key weak;
		take_hex(keys[i], weak.bytes, sizeof(weak.bytes));
		for (size_t j = 0; j < sizeof(keys) / sizeof(keys[0]); j++) {
			take_hex(keys[j], signature.bytes, 32);
			for (int message = 0; message < 16; message++) {
				char text = (char)message;
				assert_false(ed25519_verify(&weak, (struct bytes){&text, 1}, &signature));
			}
		}
	}
}

static void test_generated(void **state)
{
	struct ed25519_secret *other = ed25519_generate(NULL);
	struct ed25519_signature signature;

	(void)state;
	assert_non_null(other);
	assert_memory_not_equal(ed25519_public(other)->bytes, key->bytes, ED25519_KEY_SIZE);
	ed25519_sign(other, BYTES_NONE, &signature);
	assert_true(ed25519_verify(ed25519_public(other), BYTES(""), &signature));
	assert_false(ed25519_verify(key, BYTES(""), &signature));
	ed25519_free(other);
	ed25519_free(NULL);
}

/* A child that looks at the key dies of it. */
static void test_not_inherited(void **state)
{
	int status;

	(void)state;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)signal(SIGSEGV, SIG_DFL);
		_exit(*(const volatile uint8_t *)key->bytes == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

/* The flags that the kernel shows of the key's page: not in a dump (dd), not in a child (dc), not swapped (lo). */
static void test_page(void **state)
{
	FILE *maps = fopen("/proc/self/smaps", "re");
	uintptr_t start, end, at = (uintptr_t)key;
	bool here = false, found = false;
	char line[4096];

	(void)state;
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &start, &end) == 2) /* NOLINT(cert-err34-c) */
			here = at >= start && at < end;
		if (!here || strncmp(line, "VmFlags:", 8) != 0)
			continue;
		found = true;
		assert_non_null(strstr(line, " dd"));
		assert_non_null(strstr(line, " dc"));
		assert_non_null(strstr(line, " lo"));
	}
	assert_int_equal(fclose(maps), 0);
	assert_true(found);
}

static void test_wipe(void **state)
{
	char text[] = "secret";

	(void)state;
	secret_wipe(text, sizeof(text));
	for (size_t i = 0; i < sizeof(text); i++)
		assert_int_equal(text[i], 0);
}

static void test_spki(void **state)
{
	uint8_t der[ED25519_SPKI_SIZE + 1] = {0};
	struct ed25519_key found;

	(void)state;
	ed25519_spki(key, der);
	assert_true(sign_spki_parse((struct bytes){(const char *)der, ED25519_SPKI_SIZE}, &found));
	assert_memory_equal(found.bytes, key->bytes, ED25519_KEY_SIZE);
	assert_false(sign_spki_parse((struct bytes){(const char *)der, ED25519_SPKI_SIZE - 1}, &found));
	assert_false(sign_spki_parse((struct bytes){(const char *)der, ED25519_SPKI_SIZE + 1}, &found));
	assert_false(sign_spki_parse(BYTES_NONE, &found));
	for (size_t i = 0; i < ED25519_SPKI_SIZE - ED25519_KEY_SIZE; i++) {
		der[i] ^= 1;
		assert_false(sign_spki_parse((struct bytes){(const char *)der, ED25519_SPKI_SIZE}, &found));
		der[i] ^= 1;
	}
}

static void test_pem(void **state)
{
	static const struct {
		struct bytes text;
		bool good;
	} rows[] = {
	    {BYTES(BEGIN "\n" BODY "\n" END "\n"), true},
	    {BYTES(BEGIN "\n" BODY "\n" END), true},
	    {BYTES(BEGIN "\r\n" BODY "\r\n" END "\r\n"), true},
	    {BYTES(""), false},
	    {BYTES(BEGIN), false},
	    {BYTES(BEGIN "\n"), false},
	    {BYTES(BEGIN "\n" BODY), false},
	    {BYTES(BEGIN "\n" BODY "\n"), false},
	    {BYTES(BEGIN "\n\n" END "\n"), false},
	    {BYTES(BEGIN "\n" BODY "\n" END "\n\n"), false},
	    {BYTES(BEGIN "\n" BODY "\n" END "\nx"), false},
	    {BYTES("x\n" BEGIN "\n" BODY "\n" END "\n"), false},
	    {BYTES(" " BEGIN "\n" BODY "\n" END "\n"), false},
	    {BYTES(BEGIN "\n " BODY "\n" END "\n"), false},
	    {BYTES(BEGIN "\nMCowBQYDK2VwAyEAiojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1x=\n" END "\n"), false},
	    {BYTES(BEGIN "\nMCowBQYDK2VuAyEAiojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w=\n" END "\n"),
	     false}, /* X25519 */
	    {BYTES("-----BEGIN PRIVATE KEY-----\n" BODY "\n-----END PRIVATE KEY-----\n"), false},
	};
	CLEANUP_BUF struct buf out = {.limit = 256};

	(void)state;
	sign_pem_write(key, &out);
	assert_true(bytes_equal(buf_bytes(&out), rows[0].text));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ed25519_key found;
		if (sign_pem_parse(rows[i].text, &found) != rows[i].good)
			fail_msg("row %zu", i);
		if (rows[i].good)
			assert_memory_equal(found.bytes, key->bytes, ED25519_KEY_SIZE);
	}
}

/* The key of 32 bytes 01, by the two names that it has. */
static void test_names(void **state)
{
	char name[ED25519_FINGERPRINT_SIZE], other[ED25519_FINGERPRINT_SIZE];

	(void)state;
	assert_true(sign_text_fingerprint(BYTES(BEGIN "\n" BODY "\n" END "\n"), name));
	assert_string_equal(name, "3d4c030534b1c1c6a5238bf5932d7e4b97aad59b927aa0f504717dcb8e8a785f");
	assert_true(sign_text_fingerprint(BYTES(BEGIN "\n" BODY "\n" END), other));
	assert_string_not_equal(name, other);
	assert_true(ed25519_fingerprint(key, name));
	assert_string_equal(name, "fd110d301d2f077de1414b8f99f441b1403fab207b2052fbd2c065e4ee8e7dc2");
}

static int begin(void **state)
{
	uint8_t seed[ED25519_SEED_SIZE];

	(void)state;
	memset(seed, 1, sizeof(seed));
	secret = ed25519_from_seed(seed, NULL);
	if (!secret)
		return -1;
	key = ed25519_public(secret);
	return 0;
}

static int end(void **state)
{
	(void)state;
	ed25519_free(secret);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rfc8032),       cmocka_unit_test(test_scalar_out_of_range),
	    cmocka_unit_test(test_small_order),   cmocka_unit_test(test_generated),
	    cmocka_unit_test(test_not_inherited), cmocka_unit_test(test_page),
	    cmocka_unit_test(test_wipe),          cmocka_unit_test(test_spki),
	    cmocka_unit_test(test_pem),           cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
