/*
 * Signed notes, checkpoints and the keys that sign them, against published answers and against what must be refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/note.h"
#include "base/text.h"

#define SEED_1 "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
#define DASH "\xe2\x80\x94 "
#define FOO "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
#define FOO_TEXT "This is an example message.\n"
#define FOO_LINE                \
	DASH "example.com/foo " \
	     "Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n"
#define LOG "assure.example/run-kat+3c56f808+AddamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea"
#define WITNESS "witness.example/kat+f1349470+BD1AF8PoQ4lakrcKp00bfrycmCzPLsSWjMDNVfEq9GYM"
#define LOG_TEXT "assure.example/run-kat\n8\nXcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg=\n"
#define LOG_LINE                       \
	DASH "assure.example/run-kat " \
	     "PFb4CGFzyGtjfesrDOj8lV4VROyjaLugNXfJXDpfnYxlMCbCn+6EKUA9imyY1fxZwU8RRItV655u2CD18abLMx4ctQ0=\n"
#define WITNESS_LINE                                                                                       \
	DASH "witness.example/kat "                                                                        \
	     "8TSUcAAAAABlU/EAS7isfJyjigDPXw50kWoAUBifureaMxDrhSk+08wjvClzJUU6hXzOqjy7bKPXVPLJ/X8EdVYKdn/" \
	     "TJ4Bumtm+Dw==\n"

static struct ed25519_secret *secret_of(const char *digits)
{
	uint8_t seed[ED25519_SEED_SIZE];

	assert_true(text_hex_parse(bytes_of(digits), seed, sizeof(seed)));
	struct ed25519_secret *secret = ed25519_from_seed(seed, NULL);
	assert_non_null(secret);
	return secret;
}

/* RFC 8032 section 7.1: secret, public key, message, signature. */
static void test_rfc8032(void **state)
{
	static const struct {
		const char *seed, *key, *message, *signature;
	} rows[] = {
	    {SEED_1, "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
	     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f05"
	     "95b"
	     "be24655141438e7a100b"},
	    {"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
	     "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
	     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb"
	     "430"
	     "2aeeb00d291612bb0c00"},
	    {"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
	     "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
	     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e97"
	     "16e"
	     "d28dc027beceea1ec40a"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ed25519_secret *secret = secret_of(rows[i].seed);
		struct ed25519_signature signature, wanted;
		struct ed25519_key key;
		uint8_t message[2];
		size_t size = strlen(rows[i].message) / 2;
		assert_true(text_hex_parse(bytes_of(rows[i].key), key.bytes, sizeof(key.bytes)));
		assert_true(text_hex_parse(bytes_of(rows[i].signature), wanted.bytes, sizeof(wanted.bytes)));
		assert_true(text_hex_parse(bytes_of(rows[i].message), message, size));
		struct bytes said = {(const char *)message, size};
		assert_memory_equal(ed25519_public(secret)->bytes, key.bytes, sizeof(key.bytes));
		ed25519_sign(secret, said, &signature);
		assert_memory_equal(signature.bytes, wanted.bytes, sizeof(wanted.bytes));
		assert_true(ed25519_verify(&key, said, &signature));
		for (size_t bit = 0; bit < 8 * sizeof(signature.bytes); bit++) {
			signature.bytes[bit / 8] ^= (uint8_t)(1 << (bit % 8));
			assert_false(ed25519_verify(&key, said, &signature));
			signature.bytes[bit / 8] ^= (uint8_t)(1 << (bit % 8));
		}
		ed25519_free(secret);
	}
}

static enum note_verdict verdict(const char *text, const char *key_text)
{
	struct note_key key;
	struct note note;

	assert_true(note_key_parse(bytes_of(key_text), &key));
	enum note_verdict found = note_parse(bytes_of(text), &note, NULL) ? note_verify(&note, &key) : NOTE_BAD;
	note_free(&note);
	return found;
}

static void test_known_notes(void **state)
{
	(void)state;
	assert_int_equal(verdict(FOO_TEXT "\n" FOO_LINE, FOO), NOTE_GOOD);
	assert_int_equal(verdict("this is an example message.\n\n" FOO_LINE, FOO), NOTE_BAD);
	assert_int_equal(verdict(FOO_TEXT "\n" FOO_LINE, LOG), NOTE_UNKNOWN);
	/* Somebody else's signature is not looked at; the own one twice is not one. */
	assert_int_equal(verdict(FOO_TEXT "\n" LOG_LINE FOO_LINE, FOO), NOTE_GOOD);
	assert_int_equal(verdict(FOO_TEXT "\n" FOO_LINE FOO_LINE, FOO), NOTE_BAD);
	assert_int_equal(verdict(LOG_TEXT "\n" LOG_LINE WITNESS_LINE, LOG), NOTE_GOOD);
	assert_int_equal(verdict(LOG_TEXT "\n" LOG_LINE WITNESS_LINE, WITNESS), NOTE_GOOD);
	assert_int_equal(verdict("x" LOG_TEXT "\n" LOG_LINE WITNESS_LINE, WITNESS), NOTE_BAD);
}

static void test_signing(void **state)
{
	struct ed25519_secret *secret = secret_of(SEED_1);
	CLEANUP_BUF struct buf out = {.limit = 4096}, key = {.limit = 4096};
	struct note_key mine = {BYTES("assure.example/run-kat"), NOTE_ED25519, *ed25519_public(secret)};

	(void)state;
	note_sign(BYTES(LOG_TEXT), mine.name, secret, &out);
	assert_true(bytes_equal(buf_bytes(&out), BYTES(LOG_TEXT "\n" LOG_LINE)));
	note_key_format(&mine, &key);
	assert_true(bytes_equal(buf_bytes(&key), BYTES(LOG)));
	ed25519_free(secret);
}

/* Every byte of a note counts: with one bit changed it is malformed, or not signed by this key. */
static void test_one_bit(void **state)
{
	char text[] = LOG_TEXT "\n" LOG_LINE;
	struct note_key key;

	(void)state;
	assert_true(note_key_parse(BYTES(LOG), &key));
	for (size_t bit = 0; bit < 8 * (sizeof(text) - 1); bit++) {
		struct note note;
		text[bit / 8] ^= (char)(1 << (bit % 8));
		struct bytes bytes = {text, sizeof(text) - 1};
		assert_true(!note_parse(bytes, &note, NULL) || note_verify(&note, &key) != NOTE_GOOD);
		note_free(&note);
		text[bit / 8] ^= (char)(1 << (bit % 8));
	}
}

static void test_malformed(void **state)
{
	static const struct bytes rows[] = {
	    BYTES(""),
	    BYTES("\n"),
	    BYTES("\n\n"),
	    BYTES(FOO_TEXT),
	    BYTES(FOO_TEXT "\n"),
	    BYTES(FOO_TEXT FOO_LINE),
	    BYTES("\n" FOO_LINE),
	    BYTES(FOO_TEXT "\n" DASH "example.com/foo Uw2QOg==\n"),                       /* an id, and nothing */
	    BYTES(FOO_TEXT "\n" DASH "example.com/foo\n"),                                /* no signature */
	    BYTES(FOO_TEXT "\n" DASH "example.com/foo Uw2QOkn8srV1yJGh2VYRlL1T\nmore\n"), /* a line of text */
	    BYTES(FOO_TEXT "\n" DASH "a+b Uw2QOkn8srV1yJGh2VYRlL1T\n"),
	    BYTES(FOO_TEXT "\n" DASH " Uw2QOkn8srV1yJGh2VYRlL1T\n"),
	    BYTES(FOO_TEXT "\n" DASH "a\xc2\xa0 Uw2QOkn8srV1yJGh2VYRlL1T\n"),
	    BYTES(FOO_TEXT "\n- example.com/foo Uw2QOkn8srV1yJGh2VYRlL1T\n"),
	    BYTES(FOO_TEXT "\n" DASH "example.com/foo Uw2QOkn8srV1yJGh2VYRlL1\n"),
	    BYTES(FOO_TEXT "\n" DASH "example.com/foo Uw2QOkn8srV1yJGh2VYRlL1T"),
	    BYTES("a\tb\n\n" FOO_LINE),
	    BYTES("a\x00\n\n" FOO_LINE),
	    BYTES("a\xff\n\n" FOO_LINE),
	    BYTES("a\r\n\n" FOO_LINE),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct note note;
		struct err err = {0};
		if (note_parse(rows[i], &note, &err))
			fail_msg("row %zu was taken", i);
		assert_true(err_is_set(&err));
		note_free(&note);
	}
}

static void test_keys(void **state)
{
	static const char *const rows[] = {
	    "",
	    "example.com/foo",
	    "example.com/foo+530d903a",
	    "example.com/foo+530d903b+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
	    "example.com/foo+530D903A+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
	    "+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
	    "example.com/fop+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
	    "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2",
	    "example.com/foo+530d903a+AOkyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
	};
	struct note_key key;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_false(note_key_parse(bytes_of(rows[i]), &key));
}

static void test_checkpoints(void **state)
{
	static const struct bytes bad[] = {
	    BYTES(""),
	    BYTES("a\n"),
	    BYTES("a\n8\n"),
	    BYTES("\n8\nXcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg=\n"),
	    BYTES("a\n08\nXcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg=\n"),
	    BYTES("a\n-8\nXcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg=\n"),
	    BYTES("a\n18446744073709551616\nXcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg=\n"),
	    BYTES("a\n8\nXcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyh=\n"), /* unused bits */
	    BYTES("a\n8\nXcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/Rg\n"),
	    BYTES("a\n8\nXcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg=\n\n"),
	    BYTES("a\n8\nXcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg=\nseal"),
	    BYTES("a\n8\nXcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg=\n1\n2\n3\n4\n5\n6\n7\n8\n9\n"),
	};
	struct checkpoint checkpoint;
	CLEANUP_BUF struct buf out = {.limit = 4096};

	(void)state;
	assert_true(checkpoint_parse(BYTES(LOG_TEXT "seal\nstore 1 x\n"), &checkpoint, NULL));
	assert_int_equal(checkpoint.size, 8);
	assert_int_equal(checkpoint.extension_count, 2);
	assert_true(bytes_equal(checkpoint.extensions[0], BYTES("seal")));
	checkpoint_format(&checkpoint, &out);
	assert_true(bytes_equal(buf_bytes(&out), BYTES(LOG_TEXT "seal\nstore 1 x\n")));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (checkpoint_parse(bad[i], &checkpoint, NULL))
			fail_msg("row %zu was taken", i);
}

#define PROOF_HEAD "c2sp.org/tlog-proof@v1\n"
#define PROOF_STEPS                                      \
	"vBoGQ7EuTS18d5GPROD095qDi2z57FtcKD4fTYhZnms=\n" \
	"yoVOoSjtBQtBs1/8G4e46yveRh6eO1WW7Oa51ZdaCuA=\n" \
	"037kGJdt2VdTwcc4Yrk5j6Kiz5tP8P3+izDNlSCWFLc=\n"

/* The sixth of the classic eight leaves, under the checkpoint of them: from the text alone to a leaf that is in the tree. */
static void test_proof(void **state)
{
	static const struct bytes text =
	    BYTES(PROOF_HEAD "extra QEFCQw==\nindex 5\n" PROOF_STEPS "\n" LOG_TEXT "\n" LOG_LINE);
	CLEANUP_BUF struct buf again = {.limit = 4096};
	struct hasher *hasher = hasher_new(NULL);
	struct checkpoint checkpoint;
	struct tlog_proof proof;
	struct note_key key;
	struct digest leaf;
	struct note note = {.count = 0};

	(void)state;
	assert_true(tlog_proof_parse(text, &proof, NULL));
	assert_true(proof.has_extra && bytes_equal(buf_bytes(&proof.extra), BYTES("\x40\x41\x42\x43")));
	assert_int_equal(proof.index, 5);
	tlog_proof_format(&proof, &again);
	assert_true(bytes_equal(buf_bytes(&again), text));
	assert_true(note_key_parse(BYTES(LOG), &key) && note_parse(proof.checkpoint, &note, NULL));
	assert_int_equal(note_verify(&note, &key), NOTE_GOOD);
	assert_true(checkpoint_parse(note.text, &checkpoint, NULL));
	assert_true(merkle_leaf(hasher, buf_bytes(&proof.extra), &leaf));
	assert_true(merkle_check_leaf(hasher, &proof.proof, 5, checkpoint.size, &leaf, &checkpoint.root));
	assert_false(merkle_check_leaf(hasher, &proof.proof, 4, checkpoint.size, &leaf, &checkpoint.root));
	note_free(&note);
	tlog_proof_free(&proof);
	hasher_free(hasher);
}

static void test_proof_forms(void **state)
{
	static const struct {
		struct bytes text;
		bool good;
	} rows[] = {
	    {BYTES(PROOF_HEAD "index 5\n" PROOF_STEPS "\nx"), true},
	    {BYTES(PROOF_HEAD "index 0\n\nx"), true}, /* a tree of one leaf */
	    {BYTES(PROOF_HEAD "extra \nindex 0\n\nx"), true},
	    {BYTES(PROOF_HEAD "index 18446744073709551615\n\nx"), true},
	    {BYTES(""), false},
	    {BYTES(PROOF_HEAD), false},
	    {BYTES(PROOF_HEAD "index 0\n"), false},
	    {BYTES(PROOF_HEAD "index 0\n\n"), false},
	    {BYTES(PROOF_HEAD "index 0\n" PROOF_STEPS), false},
	    {BYTES("c2sp.org/tlog-proof@v2\nindex 0\n\nx"), false},
	    {BYTES(PROOF_HEAD "index 00\n\nx"), false},
	    {BYTES(PROOF_HEAD "index -1\n\nx"), false},
	    {BYTES(PROOF_HEAD "index 18446744073709551616\n\nx"), false},
	    {BYTES(PROOF_HEAD "index 0 \n\nx"), false},
	    {BYTES(PROOF_HEAD "index 0\nextra \n\nx"), false},
	    {BYTES(PROOF_HEAD "extra\nindex 0\n\nx"), false},
	    {BYTES(PROOF_HEAD "extra QEFCQx==\nindex 0\n\nx"), false},
	    {BYTES(PROOF_HEAD "extra \nextra \nindex 0\n\nx"), false},
	    {BYTES(PROOF_HEAD "index 0\nQEFCQw==\n\nx"), false},
	    {BYTES(PROOF_HEAD "index 0\r\n\nx"), false},
	};
	CLEANUP_BUF struct buf many = {.limit = 1 << 16};
	struct tlog_proof proof;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (tlog_proof_parse(rows[i].text, &proof, NULL) != rows[i].good)
			fail_msg("row %zu", i);
		tlog_proof_free(&proof);
	}
	buf_append_text(&many, PROOF_HEAD "index 0\n");
	for (int i = 0; i < 22; i++) /* 66 steps, one too many */
		buf_append_text(&many, PROOF_STEPS);
	buf_append_text(&many, "\nx");
	assert_false(tlog_proof_parse(buf_bytes(&many), &proof, NULL));
	tlog_proof_free(&proof);
}

/* As many signatures as a reader has to take, and more than this one takes. */
static void test_many_signatures(void **state)
{
	CLEANUP_BUF struct buf text = {.limit = NOTE_SIZE_LIMIT};
	struct note note;

	(void)state;
	buf_append_text(&text, FOO_TEXT "\n" FOO_LINE);
	for (int i = 1; i < NOTE_SIGNATURES_LIMIT; i++)
		buf_append_format(&text, DASH "signer%d Uw2QOkn8srV1yJGh2VYRlL1T\n", i);
	assert_int_equal(verdict(text.data, FOO), NOTE_GOOD);
	buf_append_text(&text, LOG_LINE);
	assert_false(note_parse(buf_bytes(&text), &note, NULL));
	note_free(&note);
}

static void test_fingerprint(void **state)
{
	struct ed25519_secret *secret = secret_of(SEED_1);
	char found[ED25519_FINGERPRINT_SIZE];

	(void)state;
	assert_true(ed25519_fingerprint(ed25519_public(secret), found));
	/* sha256sum of openssl pkey -pubout -outform DER */
	assert_string_equal(found, "06e3fd8fda29bb60ab59557de61edb0aecdb231134be30e75b455f8e1b792fa9");
	ed25519_free(secret);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rfc8032),     cmocka_unit_test(test_known_notes),     cmocka_unit_test(test_signing),
	    cmocka_unit_test(test_one_bit),     cmocka_unit_test(test_malformed),       cmocka_unit_test(test_keys),
	    cmocka_unit_test(test_checkpoints), cmocka_unit_test(test_fingerprint),     cmocka_unit_test(test_proof),
	    cmocka_unit_test(test_proof_forms), cmocka_unit_test(test_many_signatures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
