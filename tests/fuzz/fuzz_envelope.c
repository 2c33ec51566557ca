/*
 * SignedEnvelopes, DSSE envelopes and PEM keys: no input holds under a key that nobody has signed with, what is signed here
 * holds, and what is signed of an envelope is JSON in the order that it promises.
 */
#include "base/envelope.h"
#include "base/jcs.h"
#include "base/sign.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct ed25519_secret *secret;
static char name[ED25519_FINGERPRINT_SIZE];

static void make_key(void)
{
	static const uint8_t seed[ED25519_SEED_SIZE] = {7};

	secret = ed25519_from_seed(seed, NULL);
	need(secret && ed25519_fingerprint(ed25519_public(secret), name));
}

PREPARE_BY(make_key)

static void try_envelope(struct bytes in)
{
	CLEANUP_BUF struct buf text = {.limit = 1 << 22}, again = {.limit = 1 << 22};
	struct envelope envelope;
	struct digest digest;
	struct err err = {0};

	if (envelope_parse(in, &envelope, &err)) {
		need(envelope_signed_bytes(&envelope, &text));
		need(jcs_write_as(buf_bytes(&text), JCS_ECMA_SORTED, &again, NULL));
		need(bytes_equal(buf_bytes(&text), buf_bytes(&again)));
		need(!envelope_verify(&envelope, ed25519_public(secret)));
		need(envelope_digest(in, &digest, NULL));
		(void)envelope_field(&envelope, "a");
	} else {
		need(err_is_set(&err));
	}
	envelope_free(&envelope);
}

/* The input as a payload. */
static void try_signing(struct bytes in)
{
	CLEANUP_BUF struct buf text = {.limit = 1 << 22};
	struct envelope envelope;
	const struct envelope_terms terms = {"2026-07-03T00:00:00.000Z", name, NULL};

	if (!envelope_sign(in, &terms, secret, &text, NULL)) {
		need(text.size == 0);
		return;
	}
	need(envelope_parse(buf_bytes(&text), &envelope, NULL));
	need(envelope_verify(&envelope, ed25519_public(secret)));
	envelope_free(&envelope);
}

static void try_dsse(struct bytes in)
{
	struct dsse dsse;
	struct err err = {0};

	if (dsse_parse(in, &dsse, &err))
		need(dsse.count > 0 && !dsse_verify(&dsse, ed25519_public(secret)));
	else
		need(err_is_set(&err));
	dsse_free(&dsse);
}

static void try_dsse_signing(struct bytes in)
{
	CLEANUP_BUF struct buf text = {.limit = 1 << 22};
	size_t cut = in.size > 0 ? (unsigned char)in.data[0] : 0;
	struct bytes type = {in.data, cut < in.size ? cut : in.size};
	struct bytes payload = {in.data + type.size, in.size - type.size};
	struct dsse dsse;

	if (!dsse_sign(type, payload, BYTES("k"), secret, &text, NULL))
		return;
	need(dsse_parse(buf_bytes(&text), &dsse, NULL) && dsse_verify(&dsse, ed25519_public(secret)));
	need(bytes_equal(dsse.type, type) && bytes_equal(buf_bytes(&dsse.payload), payload));
	dsse_free(&dsse);
}

static void try_pem(struct bytes in)
{
	CLEANUP_BUF struct buf text = {.limit = 256};
	struct ed25519_key key, again;

	if (!sign_pem_parse(in, &key))
		return;
	sign_pem_write(&key, &text);
	need(sign_pem_parse(buf_bytes(&text), &again) && memcmp(&key, &again, sizeof(key)) == 0);
	need(in.size + 1 >= text.size && in.size <= text.size + 3);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct bytes in = {(const char *)data, size};

	try_envelope(in);
	try_signing(in);
	try_dsse(in);
	try_dsse_signing(in);
	try_pem(in);
	return 0;
}
