/*
 * SignedEnvelopes byte for byte as the reference makes them (fixtures/vectors), what must be refused of them, and DSSE
 * against published and own answers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/envelope.h"
#include "base/jcs.h"
#include "base/sign.h"
#include "base/text.h"

#define SEED_1 "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
#define KEY_1 "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
#define NAME_1 "06e3fd8fda29bb60ab59557de61edb0aecdb231134be30e75b455f8e1b792fa9"
#define TIME "2026-07-03T00:00:00.000Z"

static struct ed25519_secret *secret;
static struct ed25519_key key;
static const struct envelope_terms terms_1 = {TIME, NAME_1, NULL};

static struct bytes text_at(json_t *row, const char *name)
{
	json_t *value = json_object_get(row, name);

	assert_true(json_is_string(value));
	return (struct bytes){json_string_value(value), json_string_length(value)};
}

static void expect_same(struct bytes found, struct bytes wanted)
{
	if (!bytes_equal(found, wanted))
		fail_msg("found %.*s\nwanted %.*s", (int)found.size, found.data, (int)wanted.size, wanted.data);
}

static struct ed25519_secret *secret_of_byte(struct bytes digits)
{
	uint8_t seed[ED25519_SEED_SIZE];

	assert_true(text_hex_parse(digits, seed, 1));
	memset(seed, seed[0], sizeof(seed));
	struct ed25519_secret *made = ed25519_from_seed(seed, NULL);
	assert_non_null(made);
	return made;
}

static void check_key(json_t *row, const struct ed25519_key *public)
{
	char name[ED25519_FINGERPRINT_SIZE];
	struct ed25519_key found;

	assert_true(sign_pem_parse(text_at(row, "pem"), &found));
	assert_memory_equal(found.bytes, public->bytes, ED25519_KEY_SIZE);
	assert_true(sign_text_fingerprint(text_at(row, "pem"), name));
	expect_same(bytes_of(name), text_at(row, "pem_fingerprint"));
	assert_true(ed25519_fingerprint(public, name));
	expect_same(bytes_of(name), text_at(row, "der_fingerprint"));
}

/* The same key, time, fields and payload give the same envelope. */
static void check_made_again(json_t *row, const struct envelope *envelope)
{
	CLEANUP_BUF struct buf payload = {.limit = 1 << 16}, again = {.limit = 1 << 16};
	struct ed25519_secret *signer = secret_of_byte(text_at(row, "seed"));
	struct bytes text = text_at(row, "envelope");
	const char *fields[ENVELOPE_FIELDS_LIMIT + 1] = {NULL};
	json_t *whole = json_loadb(text.data, text.size, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
	json_t *names = json_object_get(whole, "signedFields");

	assert_true(json_array_size(names) < ENVELOPE_FIELDS_LIMIT);
	for (size_t i = 0; i < json_array_size(names); i++)
		fields[i] = json_string_value(json_array_get(names, i));
	/* The payload as it stands there: it is the first member. */
	const char *start = text.data + strlen("{\"payload\":"), *end = strstr(text.data, ",\"signature\":");
	assert_non_null(end);
	buf_append(&payload, start, (size_t)(end - start));
	struct envelope_terms terms = {json_string_value(json_object_get(whole, "signedAt")), envelope->fingerprint,
				       fields};
	struct err err = {0};
	/* In this one all are listed, in their order. */
	if (strcmp(json_string_value(json_object_get(row, "name")), "ecmascript_all") == 0)
		terms.fields = NULL;
	if (!envelope_sign(buf_bytes(&payload), &terms, signer, &again, &err))
		fail_msg("%s: %s", json_string_value(json_object_get(row, "name")), err.text);
	expect_same(buf_bytes(&again), text);
	json_decref(whole);
	ed25519_free(signer);
}

static void check_row(json_t *row)
{
	CLEANUP_BUF struct buf found = {.limit = 1 << 16};
	struct ed25519_key public;
	struct digest digest, wanted;
	struct envelope envelope;
	struct err err = {0};

	assert_true(text_hex_parse(text_at(row, "key"), public.bytes, ED25519_KEY_SIZE));
	check_key(row, &public);
	if (!envelope_parse(text_at(row, "envelope"), &envelope, &err))
		fail_msg("%s: %s", text_at(row, "name").data, err.text);
	assert_true(envelope_signed_bytes(&envelope, &found));
	expect_same(buf_bytes(&found), text_at(row, "signed"));
	expect_same(bytes_of(envelope.fingerprint), text_at(row, "pem_fingerprint"));
	assert_true(envelope_verify(&envelope, &public));
	assert_false(envelope_verify(&envelope, &key));
	assert_true(envelope_digest(text_at(row, "envelope"), &digest, &err));
	assert_true(text_hex_parse(text_at(row, "hash"), wanted.bytes, DIGEST_SIZE));
	assert_memory_equal(digest.bytes, wanted.bytes, DIGEST_SIZE);
	check_made_again(row, &envelope);
	envelope_free(&envelope);
}

static void test_vectors(void **state)
{
	FILE *file = fopen(SOURCE_DIR "/fixtures/vectors/signed-envelopes.jsonl", "re");
	char *line = NULL;
	size_t size = 0;
	int rows = 0;

	(void)state;
	assert_non_null(file);
	for (ssize_t got; (got = getline(&line, &size, file)) > 0; rows++) {
		json_t *row = json_loadb(line, (size_t)got, 0, NULL);
		assert_non_null(row);
		check_row(row);
		json_decref(row);
	}
	free(line);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(rows, 12);
}

static bool holds(const char *text, const char *field, const char *wanted)
{
	struct envelope envelope;
	bool good = envelope_parse(bytes_of(text), &envelope, NULL) && envelope_verify(&envelope, &key);

	if (good && field) {
		struct bytes value = envelope_field(&envelope, field);
		assert_true(wanted ? bytes_equal(value, bytes_of(wanted)) : value.data == NULL);
	}
	envelope_free(&envelope);
	return good;
}

/* Whatever bit of it is changed: it is malformed, or its signature does not hold. */
static void test_one_bit(void **state)
{
	CLEANUP_BUF struct buf text = {.limit = 1 << 16};

	(void)state;
	assert_true(
	    envelope_sign(BYTES("{\"b\":[1,{\"c\":\"\xc3\xa9\"}],\"a\":\"x\\ny\"}"), &terms_1, secret, &text, NULL));
	assert_true(holds(text.data, "b", "[1,{\"c\":\"\xc3\xa9\"}]"));
	for (size_t bit = 0; bit < 8 * text.size; bit++) {
		text.data[bit / 8] ^= (char)(1 << (bit % 8));
		struct envelope envelope;
		if (envelope_parse(buf_bytes(&text), &envelope, NULL) && envelope_verify(&envelope, &key))
			fail_msg("bit %zu does not count", bit);
		envelope_free(&envelope);
		text.data[bit / 8] ^= (char)(1 << (bit % 8));
	}
}

/* An envelope of these members, with the signature of an empty payload by `key`. */
static void compose(struct buf *out, const char *payload, const char *fields, const char *more)
{
	buf_reset(out);
	buf_append_format(
	    out,
	    "{\"payload\":%s,\"signature\":\"%s\",\"publicKeyFingerprint\":\"" NAME_1 "\",\"signedAt\":\"" TIME
	    "\",\"signedFields\":%s%s}",
	    payload, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", fields,
	    more);
}

static void test_refused(void **state)
{
	static const struct {
		const char *payload, *fields, *more;
		bool good;
	} rows[] = {
	    {"{\"a\":1}", "[\"a\"]", ",\"algorithm\":\"Ed25519\"", true},
	    {"{\"a\":1}", "[\"a\"]", ",\"algorithm\":\"Ed25519\",\"publicKey\":\"mine\"", true}, /* passed over */
	    {"{\"a\":1}", "[]", ",\"algorithm\":\"Ed25519\"", true},
	    {"{\"a\":1}", "[\"a\"]", ",\"algorithm\":\"ed25519\"", false},
	    {"{\"a\":1}", "[\"a\"]", ",\"algorithm\":\"HS256\"", false},
	    {"{\"a\":1}", "[\"a\"]", ",\"algorithm\":1", false},
	    {"{\"a\":1}", "[\"a\"]", "", false},
	    {"{\"a\":1}", "[\"a\"]", ",\"algorithm\":\"Ed25519\",\"algorithm\":\"Ed25519\"", false},
	    {"{\"a\":1}", "[\"a\"]", ",\"algorithm\":\"Ed25519\",\"payload\":{}", false},
	    {"{\"a\":1,\"a\":2}", "[\"a\"]", ",\"algorithm\":\"Ed25519\"", false},
	    {"{\"__proto__\":1}", "[]", ",\"algorithm\":\"Ed25519\"", false},
	    {"{\"a\":\"\\ud800\"}", "[\"a\"]", ",\"algorithm\":\"Ed25519\"", false},
	    {"[1]", "[\"a\"]", ",\"algorithm\":\"Ed25519\"", false},
	    {"\"{\"", "[\"a\"]", ",\"algorithm\":\"Ed25519\"", false},
	    {"null", "[\"a\"]", ",\"algorithm\":\"Ed25519\"", false},
	    {"{\"a\":1}", "[\"a\",\"a\"]", ",\"algorithm\":\"Ed25519\"", false},
	    {"{\"a\":1}", "[\"a\",\"\\u0061\"]", ",\"algorithm\":\"Ed25519\"", false},
	    {"{\"a\":1}", "[1]", ",\"algorithm\":\"Ed25519\"", false},
	    {"{\"a\":1}", "[[\"a\"]]", ",\"algorithm\":\"Ed25519\"", false},
	    {"{\"a\":1}", "\"a\"", ",\"algorithm\":\"Ed25519\"", false},
	    {"{\"a\":1}", "{\"a\":1}", ",\"algorithm\":\"Ed25519\"", false},
	    {"{\"a\":1}", "[\"a\"]", ",\"algorithm\":\"Ed25519\"} ", false},
	};
	CLEANUP_BUF struct buf text = {.limit = 1 << 16};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct envelope envelope;
		struct err err = {0};
		compose(&text, rows[i].payload, rows[i].fields, rows[i].more);
		bool taken = envelope_parse(buf_bytes(&text), &envelope, &err);
		if (taken != rows[i].good || taken == err_is_set(&err))
			fail_msg("row %zu: %s", i, err.text);
		if (taken)
			assert_false(envelope_verify(&envelope, &key));
		envelope_free(&envelope);
	}
}

/* A member that is not listed is not the signer's word. */
static void test_unsigned_member(void **state)
{
	CLEANUP_BUF struct buf text = {.limit = 1 << 16}, changed = {.limit = 1 << 16};

	(void)state;
	assert_true(envelope_sign(BYTES("{\"a\":1}"), &terms_1, secret, &text, NULL));
	assert_true(holds(text.data, "a", "1"));
	buf_append_text(&changed, "{\"payload\":{\"b\":2,\"a\":1}");
	buf_append_text(&changed, text.data + strlen("{\"payload\":{\"a\":1}"));
	assert_true(holds(changed.data, "b", NULL));
	assert_true(holds(changed.data, "a", "1"));
}

static void test_not_signed(void **state)
{
	static const struct {
		const char *payload, *time, *name;
	} rows[] = {
	    {"[]", TIME, NAME_1},
	    {"1", TIME, NAME_1},
	    {"", TIME, NAME_1},
	    {"{\"a\":1,\"a\":1}", TIME, NAME_1},
	    {"{}", "", NAME_1},
	    {"{}", NULL, NAME_1},
	    {"{}", TIME, NULL},
	    {"{}", "\"", NAME_1},
	    {"{}", "\\u0041", NAME_1},
	    {"{}", "a\nb", NAME_1},
	    {"{}", "\xff", NAME_1},
	    {
		"{}",
		TIME,
		"",
	    },
	    {"{}", TIME, "06E3"},
	    {"{\"__proto__\":1}", TIME, NAME_1},
	};
	CLEANUP_BUF struct buf text = {.limit = 1 << 16}, small = {.limit = 100};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = {0};
		struct envelope_terms terms = {rows[i].time, rows[i].name, NULL};
		if (envelope_sign(bytes_of(rows[i].payload), &terms, secret, &text, &err))
			fail_msg("row %zu was signed", i);
		assert_true(err_is_set(&err));
		assert_int_equal(text.size, 0);
	}
	static const char *const twice[] = {"a", "a", NULL}, *const no_text[] = {"\xff", NULL};
	struct envelope_terms odd = {TIME, NAME_1, twice};
	assert_false(envelope_sign(BYTES("{\"a\":1}"), &odd, secret, &text, NULL));
	odd.fields = no_text;
	assert_false(envelope_sign(BYTES("{\"a\":1}"), &odd, secret, &text, NULL));
	assert_int_equal(text.size, 0);
	assert_false(envelope_sign(BYTES("{}"), &terms_1, secret, &small, NULL));
	assert_int_equal(small.size, 0);
}

static void test_encoding(void **state)
{
	static const struct {
		struct bytes type, payload, wanted;
		const char *digest;
	} rows[] = {
	    {BYTES("http://example.com/HelloWorld"), BYTES("hello world"),
	     BYTES("DSSEv1 29 http://example.com/HelloWorld 11 hello world"),
	     "217751fac2c4f14edb2c9297fbc34abcb016ba88e74757e875ec4ac16fb6b6a1"},
	    {BYTES(""), BYTES(""), BYTES("DSSEv1 0  0 "),
	     "956e625084667c50b492ede8cbd6475245288079498c3ef6d433f3abd913f636"},
	    {BYTES("application/vnd.in-toto+json"), BYTES("{}"), BYTES("DSSEv1 28 application/vnd.in-toto+json 2 {}"),
	     "4842cb1ba6fed6e460d8a0d56f6b64ccf1f1e11f7714a7f282080d5780251b63"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CLEANUP_BUF struct buf out = {.limit = 1 << 16};
		struct digest digest, wanted;
		dsse_encode(rows[i].type, rows[i].payload, &out);
		expect_same(buf_bytes(&out), rows[i].wanted);
		assert_true(digest_of(buf_bytes(&out), &digest));
		assert_true(text_hex_parse(bytes_of(rows[i].digest), wanted.bytes, DIGEST_SIZE));
		assert_memory_equal(digest.bytes, wanted.bytes, DIGEST_SIZE);
	}
}

static bool dsse_holds(struct bytes text, struct bytes type, struct bytes payload)
{
	struct dsse dsse;
	bool good = dsse_parse(text, &dsse, NULL) && dsse_verify(&dsse, &key) && bytes_equal(dsse.type, type) &&
		    bytes_equal(buf_bytes(&dsse.payload), payload);

	dsse_free(&dsse);
	return good;
}

#define HELLO_TYPE "http://example.com/HelloWorld"
#define HELLO_SIGNATURE "4DHX3Zn4qpBKvEj7maE8O9u9bjXEnPLLnyXVUJ2PXJR8DSLcL3QDpFvfJOj3pB/SPHsl6Jg4boxsMb6KvuYABw=="

static void test_dsse(void **state)
{
	static const struct bytes statement =
	    BYTES("{\"_type\":\"https://in-toto.io/Statement/v1\",\"predicateType\":\"https://in-toto.io/attestation/"
		  "runtime-trace/v0.1\",\"subject\":[]}");
	CLEANUP_BUF struct buf out = {.limit = 1 << 16}, second = {.limit = 1 << 16};

	(void)state;
	assert_true(dsse_sign(BYTES(HELLO_TYPE), BYTES("hello world"), BYTES("k"), secret, &out, NULL));
	expect_same(buf_bytes(&out), BYTES("{\"payload\":\"aGVsbG8gd29ybGQ=\",\"payloadType\":\"" HELLO_TYPE
					   "\",\"signatures\":[{\"keyid\":\"k\",\"sig\":\"" HELLO_SIGNATURE "\"}]}"));
	assert_true(dsse_holds(buf_bytes(&out), BYTES(HELLO_TYPE), BYTES("hello world")));
	assert_true(dsse_sign(BYTES("application/vnd.in-toto+json"), statement, BYTES_NONE, secret, &second, NULL));
	assert_non_null(strstr(second.data, "{\"sig\":\"QqS7h2WdNyMfhikR6jRcQpJRVP8KgLFXpAleUq40HYdUaMs/"
					    "ixc95WI61y+4biPvLdC55UaYhRx1fanegsPOAg==\"}"));
	assert_true(dsse_holds(buf_bytes(&second), BYTES("application/vnd.in-toto+json"), statement));
}

/* What others may write: the other alphabet, escapes, further members and signatures. */
static void test_dsse_forms(void **state)
{
#define HELLO(payload, signatures) \
	BYTES("{\"payload\":\"" payload "\",\"payloadType\":\"" HELLO_TYPE "\",\"signatures\":[" signatures "]}")
#define GOOD "{\"sig\":\"" HELLO_SIGNATURE "\"}"
#define URL_SAFE                                                                                            \
	"{\"sig\":\"4DHX3Zn4qpBKvEj7maE8O9u9bjXEnPLLnyXVUJ2PXJR8DSLcL3QDpFvfJOj3pB_SPHsl6Jg4boxsMb6KvuYABw" \
	"==\"}"
	static const struct {
		struct bytes text;
		bool good;
	} rows[] = {
	    {HELLO("aGVsbG8gd29ybGQ=", GOOD), true},
	    {HELLO("aGVsbG8gd29ybGQ=", URL_SAFE), true},
	    {HELLO("aGVsbG8gd29ybGQ=", "{\"sig\":\"AAAA\"}," GOOD), true}, /* of somebody else, by another algorithm */
	    {HELLO("aGVsbG8gd29ybGQ=", "{\"cert\":[],\"keyid\":\"\\u0001\",\"sig\":\"" HELLO_SIGNATURE "\"}"), true},
	    {HELLO("aGVsbG8gd29ybGQ=\",\"x\":\"", GOOD), true},
	    {HELLO("aGVsbG8gd29ybGQ=", ""), false},
	    {HELLO("aGVsbG8gd29ybGQ=", "{\"sig\":\"AAAA\"}"), false},
	    {HELLO("aGVsbG8gd29ybGQ=", "{\"keyid\":1,\"sig\":\"" HELLO_SIGNATURE "\"}"), false},
	    {HELLO("aGVsbG8gd29ybGQ=", "\"" HELLO_SIGNATURE "\""), false},
	    {HELLO("aGVsbG8gd29ybGQ", GOOD), false},
	    {HELLO("aGVsbG8gd29ybGR=", GOOD), false},
	    {HELLO("aGVsbG8gd29ybGQ=\",\"payload\":\"aGVsbG8gd29ybGQ=", GOOD), false},
	    {HELLO("aGVsbG8gd29ybGQh", GOOD), false},
	    {HELLO("-+VsbG8gd29ybGQ=", GOOD), false},
	    {BYTES("{\"payload\":\"aGVsbG8gd29ybGQ=\",\"signatures\":[" GOOD "]}"), false},
	    {BYTES("[]"), false},
	    {BYTES(""), false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (dsse_holds(rows[i].text, BYTES(HELLO_TYPE), BYTES("hello world")) != rows[i].good)
			fail_msg("row %zu", i);
}

static void test_dsse_limits(void **state)
{
	CLEANUP_BUF struct buf out = {.limit = 1 << 16};
	struct dsse dsse;

	(void)state;
	assert_true(dsse_parse(HELLO("-_8=", GOOD), &dsse, NULL));
	assert_true(bytes_equal(buf_bytes(&dsse.payload), BYTES("\xfb\xff")));
	dsse_free(&dsse);
	assert_false(dsse_parse(HELLO("-/8=", GOOD), &dsse, NULL));
	dsse_free(&dsse);
	assert_false(dsse_parse(HELLO("", ""), &dsse, NULL));
	dsse_free(&dsse);
	assert_false(dsse_sign(BYTES("a\"b"), BYTES("x"), BYTES_NONE, secret, &out, NULL));
	assert_false(dsse_sign(BYTES("a\xff"), BYTES("x"), BYTES_NONE, secret, &out, NULL));
	assert_false(dsse_sign(BYTES("a"), BYTES("x"), BYTES("\n"), secret, &out, NULL));
	assert_int_equal(out.size, 0);
	buf_append_text(&out, "{\"payload\":\"\",\"payloadType\":\"\",\"signatures\":[");
	for (int i = 0; i <= DSSE_SIGNATURES_LIMIT; i++)
		buf_append_text(&out, i ? ",{\"sig\":\"AAAA\"}" : "{\"sig\":\"AAAA\"}");
	buf_append_text(&out, "]}");
	assert_false(dsse_parse(buf_bytes(&out), &dsse, NULL));
	assert_int_equal(dsse.count, DSSE_SIGNATURES_LIMIT);
	dsse_free(&dsse);
}

static int begin(void **state)
{
	uint8_t seed[ED25519_SEED_SIZE];

	(void)state;
	if (!text_hex_parse(BYTES(SEED_1), seed, sizeof(seed)) ||
	    !text_hex_parse(BYTES(KEY_1), key.bytes, sizeof(key.bytes)))
		return -1;
	secret = ed25519_from_seed(seed, NULL);
	return secret ? 0 : -1;
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
	    cmocka_unit_test(test_vectors),     cmocka_unit_test(test_one_bit),
	    cmocka_unit_test(test_refused),     cmocka_unit_test(test_unsigned_member),
	    cmocka_unit_test(test_not_signed),  cmocka_unit_test(test_encoding),
	    cmocka_unit_test(test_dsse),        cmocka_unit_test(test_dsse_forms),
	    cmocka_unit_test(test_dsse_limits),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
