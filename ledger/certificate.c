#include "ledger/certificate.h"

#include <jansson.h>
#include <stdio.h>

#include "base/json.h"
#include "base/text.h"

/* In canonical order, which is also that of the list. */
static const char *const fields[] = {"host", "payloadType", "publicKey", "runId", "startedAt", "use"};

enum { FIELD_COUNT = sizeof(fields) / sizeof(fields[0]) };

static void write_base64(struct json *json, const char *key, const void *data, size_t size)
{
	CLEANUP_BUF struct buf text = {.limit = 256};

	text_base64(&text, (struct bytes){data, size});
	json_word(json, key, buf_bytes(&text));
}

static void write_fields(struct json *json)
{
	json_begin_array(json, "signedFields");
	for (size_t i = 0; i < FIELD_COUNT; i++)
		json_text(json, NULL, fields[i]);
	json_end_array(json);
}

static void write_payload(struct json *json, const char *key, const struct certificate *certificate)
{
	json_begin_object(json, key);
	json_text(json, "host", certificate->host);
	json_text(json, "payloadType", "run-key");
	write_base64(json, "publicKey", certificate->key.bytes, ED25519_KEY_SIZE);
	json_text(json, "runId", certificate->run);
	json_text(json, "startedAt", certificate->started);
	json_text(json, "use", key_use_name(certificate->use));
	json_end_object(json);
}

/* The bytes that the signature is about. */
static void write_signed(struct buf *out, const struct certificate *certificate)
{
	struct json json;

	json_start(&json, out);
	json_begin_object(&json, NULL);
	json_begin_object(&json, "_meta");
	json_text(&json, "algorithm", "Ed25519");
	json_text(&json, "publicKeyFingerprint", certificate->signer);
	json_text(&json, "signedAt", certificate->signed_at);
	write_fields(&json);
	json_end_object(&json);
	write_payload(&json, "_payload", certificate);
	json_end_object(&json);
}

static void write_envelope(struct buf *out, const struct certificate *certificate)
{
	struct json json;

	json_start(&json, out);
	json_begin_object(&json, NULL);
	json_text(&json, "algorithm", "Ed25519");
	write_payload(&json, "payload", certificate);
	json_text(&json, "publicKeyFingerprint", certificate->signer);
	write_base64(&json, "signature", certificate->signature.bytes, ED25519_SIGNATURE_SIZE);
	json_text(&json, "signedAt", certificate->signed_at);
	write_fields(&json);
	json_end_object(&json);
}

bool certificate_make(struct certificate *certificate, const struct ed25519_secret *host, struct buf *out)
{
	CLEANUP_BUF struct buf text = {.limit = CERTIFICATE_SIZE_LIMIT};

	if (!ed25519_fingerprint(ed25519_public(host), certificate->signer))
		return false;
	write_signed(&text, certificate);
	if (text.failed)
		return false;
	ed25519_sign(host, buf_bytes(&text), &certificate->signature);
	write_envelope(out, certificate);
	return !out->failed;
}

static bool copy_field(json_t *object, const char *key, char *out, size_t size)
{
	json_t *value = json_object_get(object, key);

	if (!json_is_string(value) || json_string_length(value) >= size)
		return false;
	memcpy(out, json_string_value(value), json_string_length(value) + 1);
	return true;
}

static bool copy_base64(json_t *object, const char *key, void *out, size_t size)
{
	CLEANUP_BUF struct buf bytes = {.limit = 256};
	json_t *value = json_object_get(object, key);

	if (!json_is_string(value) ||
	    !text_base64_parse(&bytes, (struct bytes){json_string_value(value), json_string_length(value)}) ||
	    bytes.size != size)
		return false;
	memcpy(out, bytes.data, size);
	return true;
}

static bool take_apart(json_t *envelope, struct certificate *out)
{
	json_t *payload = json_object_get(envelope, "payload");
	char use[32];

	if (!copy_field(payload, "host", out->host, sizeof(out->host)) ||
	    !copy_base64(payload, "publicKey", out->key.bytes, ED25519_KEY_SIZE) ||
	    !copy_field(payload, "runId", out->run, sizeof(out->run)) ||
	    !copy_field(payload, "startedAt", out->started, sizeof(out->started)) ||
	    !copy_field(payload, "use", use, sizeof(use)) ||
	    !copy_field(envelope, "publicKeyFingerprint", out->signer, sizeof(out->signer)) ||
	    !copy_field(envelope, "signedAt", out->signed_at, sizeof(out->signed_at)) ||
	    !copy_base64(envelope, "signature", out->signature.bytes, ED25519_SIGNATURE_SIZE))
		return false;
	for (unsigned i = 0; i < USE_COUNT; i++) {
		out->use = (enum key_use)i;
		if (strcmp(use, key_use_name(out->use)) == 0)
			return true;
	}
	return false;
}

bool certificate_read(struct bytes envelope, struct certificate *out, struct err *err)
{
	CLEANUP_BUF struct buf again = {.limit = CERTIFICATE_SIZE_LIMIT};
	bool good = false;

	*out = (struct certificate){.use = USE_COUNT};
	json_t *json = envelope.size > CERTIFICATE_SIZE_LIMIT ? NULL
							      : json_loadb(envelope.data ? envelope.data : "",
									   envelope.size, JSON_REJECT_DUPLICATES, NULL);
	if (take_apart(json, out)) {
		/* What else might be in it, and in which form, is not asked: there is one form, and this is it. */
		write_envelope(&again, out);
		good = bytes_equal(buf_bytes(&again), envelope);
	}
	json_decref(json);
	return good || err_set(err, 0, "not a certificate of a run's key");
}

bool certificate_verify(const struct certificate *certificate, const struct ed25519_key *host)
{
	CLEANUP_BUF struct buf text = {.limit = CERTIFICATE_SIZE_LIMIT};
	char fingerprint[ED25519_FINGERPRINT_SIZE];

	if (!ed25519_fingerprint(host, fingerprint) || strcmp(fingerprint, certificate->signer) != 0)
		return false;
	write_signed(&text, certificate);
	return !text.failed && ed25519_verify(host, buf_bytes(&text), &certificate->signature);
}
