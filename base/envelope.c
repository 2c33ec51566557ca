#include "base/envelope.h"

#include "base/jcs.h"
#include "base/json.h"
#include "base/text.h"

/* What is walked here came out of jcs_write_as(): it has no blanks and is known to be JSON. */

/* Off the start of `rest`, up to where the value ends. */
static struct bytes take_value(struct bytes *rest)
{
	bool quoted = false;
	size_t depth = 0, size = 0;

	for (; size < rest->size; size++) {
		char c = rest->data[size];
		if (quoted) {
			size += c == '\\';
			quoted = c != '"';
		} else if (c == '"') {
			quoted = true;
		} else if (c == '{' || c == '[') {
			depth++;
		} else if (depth > 0) {
			depth -= c == '}' || c == ']';
		} else if (c == ',' || c == ':' || c == '}' || c == ']') {
			break;
		}
	}
	struct bytes value = {rest->data, size};
	rest->data += size;
	rest->size -= size;
	return value;
}

static bool take(struct bytes *rest, char c)
{
	if (rest->size == 0 || rest->data[0] != c)
		return false;
	rest->data++;
	rest->size--;
	return true;
}

/* The next element, or member with its name in quotes; false at the end. `rest` begins behind the bracket. */
static bool next_element(struct bytes *rest, struct bytes *value)
{
	if (rest->size == 0 || rest->data[0] == ']' || rest->data[0] == '}')
		return false;
	*value = take_value(rest);
	(void)take(rest, ',');
	return true;
}

static bool next_member(struct bytes *rest, struct bytes *name, struct bytes *value)
{
	if (rest->size == 0 || rest->data[0] == '}')
		return false;
	*name = take_value(rest);
	(void)take(rest, ':');
	return next_element(rest, value);
}

/* What stands between the quotes of a string; absent when it is none, or needs escapes. */
static struct bytes plain_text(struct bytes value)
{
	if (value.size < 2 || value.data[0] != '"' || memchr(value.data, '\\', value.size))
		return BYTES_NONE;
	return (struct bytes){value.data + 1, value.size - 2};
}

static bool is_quoted(struct bytes value, struct bytes name)
{
	struct bytes text = plain_text(value);

	return text.data && bytes_equal(text, name);
}

/* The member of an object; absent when it is no object or has no such member. `name` is plain ASCII. */
static struct bytes member(struct bytes object, const char *name)
{
	struct bytes at, value;

	if (!take(&object, '{'))
		return BYTES_NONE;
	while (next_member(&object, &at, &value))
		if (is_quoted(at, bytes_of(name)))
			return value;
	return BYTES_NONE;
}

static bool is_listed(const struct envelope *envelope, struct bytes quoted)
{
	for (size_t i = 0; i < envelope->field_count; i++)
		if (bytes_equal(envelope->fields[i], quoted))
			return true;
	return false;
}

static bool add_field(struct envelope *envelope, struct bytes quoted)
{
	if (envelope->field_count == ENVELOPE_FIELDS_LIMIT || quoted.data[0] != '"' || is_listed(envelope, quoted))
		return false;
	envelope->fields[envelope->field_count++] = quoted;
	return true;
}

static bool not_an_envelope(struct err *err, const char *why)
{
	return err_set(err, 0, "not a signed envelope: %s", why);
}

static bool take_fields(struct envelope *envelope, struct bytes list, struct err *err)
{
	struct bytes value;

	if (!take(&list, '['))
		return not_an_envelope(err, "signedFields is no list");
	while (next_element(&list, &value))
		if (!add_field(envelope, value))
			return not_an_envelope(err, "signedFields has too many, one twice, or something else than names");
	return true;
}

static bool take_signature(struct envelope *envelope, struct bytes value)
{
	CLEANUP_BUF struct buf decoded = {.limit = ED25519_SIGNATURE_SIZE};

	if (!text_base64_parse(&decoded, plain_text(value)) || decoded.size != ED25519_SIGNATURE_SIZE)
		return false;
	memcpy(envelope->signature.bytes, decoded.data, ED25519_SIGNATURE_SIZE);
	return true;
}

/* 64 lower-case digits. */
static bool take_fingerprint(struct envelope *envelope, struct bytes text)
{
	uint8_t digest[DIGEST_SIZE];

	if (!text.data || !text_hex_parse(text, digest, sizeof(digest)))
		return false;
	memcpy(envelope->fingerprint, text.data, text.size);
	envelope->fingerprint[text.size] = '\0';
	return true;
}

static bool take_apart(struct envelope *envelope, struct err *err)
{
	struct bytes text = buf_bytes(&envelope->text);

	if (!is_quoted(member(text, "algorithm"), BYTES("Ed25519")))
		return not_an_envelope(err, "its algorithm is not Ed25519");
	envelope->payload = member(text, "payload");
	if (envelope->payload.size == 0 || envelope->payload.data[0] != '{')
		return not_an_envelope(err, "its payload is no object");
	envelope->signed_at = plain_text(member(text, "signedAt"));
	if (!envelope->signed_at.data)
		return not_an_envelope(err, "signedAt is no time");
	if (!take_fingerprint(envelope, plain_text(member(text, "publicKeyFingerprint"))))
		return not_an_envelope(err, "publicKeyFingerprint is none");
	if (!take_signature(envelope, member(text, "signature")))
		return not_an_envelope(err, "its signature is none of Ed25519");
	return take_fields(envelope, member(text, "signedFields"), err);
}

bool envelope_parse(struct bytes document, struct envelope *out, struct err *err)
{
	*out = (struct envelope){.text = {.limit = 2 * ENVELOPE_SIZE_LIMIT}};
	if (document.size > ENVELOPE_SIZE_LIMIT)
		return not_an_envelope(err, "too large");
	return jcs_write_as(document, JCS_ECMA_SORTED, &out->text, err) && take_apart(out, err);
}

void envelope_free(struct envelope *envelope)
{
	buf_free(&envelope->text);
}

static void write_fields(const struct envelope *envelope, struct buf *out)
{
	buf_append_char(out, '[');
	for (size_t i = 0; i < envelope->field_count; i++) {
		if (i > 0)
			buf_append_char(out, ',');
		buf_append_bytes(out, envelope->fields[i]);
	}
	buf_append_char(out, ']');
}

bool envelope_signed_bytes(const struct envelope *envelope, struct buf *out)
{
	struct bytes rest = envelope->payload, name, value;
	bool first = true;

	/* Pieces of JSON that are whole and checked, put together: nothing in them can end what is around them. */
	buf_append_text(out, "{\"_meta\":{\"algorithm\":\"Ed25519\",\"publicKeyFingerprint\":\"");
	buf_append_text(out, envelope->fingerprint);
	buf_append_text(out, "\",\"signedAt\":\"");
	buf_append_bytes(out, envelope->signed_at);
	buf_append_text(out, "\",\"signedFields\":");
	write_fields(envelope, out);
	buf_append_text(out, "},\"_payload\":{");
	(void)take(&rest, '{');
	while (next_member(&rest, &name, &value)) {
		if (!is_listed(envelope, name))
			continue;
		if (!first)
			buf_append_char(out, ',');
		first = false;
		buf_append_bytes(out, name);
		buf_append_char(out, ':');
		buf_append_bytes(out, value);
	}
	buf_append_text(out, "}}");
	return !out->failed;
}

bool envelope_verify(const struct envelope *envelope, const struct ed25519_key *key)
{
	CLEANUP_BUF struct buf text = {.limit = 4 * ENVELOPE_SIZE_LIMIT};

	return envelope_signed_bytes(envelope, &text) && ed25519_verify(key, buf_bytes(&text), &envelope->signature);
}

struct bytes envelope_field(const struct envelope *envelope, const char *name)
{
	for (size_t i = 0; i < envelope->field_count; i++)
		if (is_quoted(envelope->fields[i], bytes_of(name)))
			return member(envelope->payload, name);
	return BYTES_NONE;
}

/* The envelope that has still to be signed; `given` is the payload in its own order. */
static bool prepare(struct envelope *envelope, struct bytes given, const char *signed_at, const char *fingerprint,
		    struct err *err)
{
	struct bytes rest = given, name, value;

	if (!take(&rest, '{') || !jcs_write_as(given, JCS_ECMA_SORTED, &envelope->text, err))
		return not_an_envelope(err, "its payload is no object");
	envelope->payload = buf_bytes(&envelope->text);
	envelope->signed_at = bytes_of(signed_at);
	if (signed_at[strcspn(signed_at, "\"\\")] != '\0' || !text_is_utf8(envelope->signed_at) ||
	    !take_fingerprint(envelope, bytes_of(fingerprint)))
		return not_an_envelope(err, "when, or by whom it is to be signed");
	while (next_member(&rest, &name, &value))
		if (!add_field(envelope, name))
			return not_an_envelope(err, "too many fields to sign");
	return true;
}

bool envelope_sign(struct bytes payload, const char *signed_at, const char *fingerprint,
		   const struct ed25519_secret *secret, struct buf *out, struct err *err)
{
	CLEANUP_BUF struct buf given = {.limit = ENVELOPE_SIZE_LIMIT}, text = {.limit = 4 * ENVELOPE_SIZE_LIMIT};
	struct envelope envelope = {.text = {.limit = ENVELOPE_SIZE_LIMIT}};
	size_t before = out->size;
	bool good = jcs_write_as(payload, JCS_ECMA_GIVEN, &given, err) &&
		    prepare(&envelope, buf_bytes(&given), signed_at, fingerprint, err) &&
		    (envelope_signed_bytes(&envelope, &text) || not_an_envelope(err, "too large"));

	if (good) {
		ed25519_sign(secret, buf_bytes(&text), &envelope.signature);
		buf_append_text(out, "{\"payload\":");
		buf_append_bytes(out, buf_bytes(&given));
		buf_append_text(out, ",\"signature\":\"");
		text_base64(out, (struct bytes){(const char *)envelope.signature.bytes, ED25519_SIGNATURE_SIZE});
		buf_append_text(out, "\",\"publicKeyFingerprint\":\"");
		buf_append_text(out, envelope.fingerprint);
		buf_append_text(out, "\",\"signedAt\":\"");
		buf_append_bytes(out, envelope.signed_at);
		buf_append_text(out, "\",\"signedFields\":");
		write_fields(&envelope, out);
		buf_append_text(out, ",\"algorithm\":\"Ed25519\"}");
		good = (!out->failed && out->size - before <= ENVELOPE_SIZE_LIMIT) || not_an_envelope(err, "too large");
		if (!good)
			out->size = before;
	}
	envelope_free(&envelope);
	return good;
}

bool envelope_digest(struct bytes document, struct digest *out, struct err *err)
{
	CLEANUP_BUF struct buf text = {.limit = 2 * ENVELOPE_SIZE_LIMIT};

	if (document.size > ENVELOPE_SIZE_LIMIT)
		return not_an_envelope(err, "too large");
	return jcs_write_as(document, JCS_ECMA_GIVEN, &text, err) &&
	       (digest_of(buf_bytes(&text), out) || err_set(err, 0, "OpenSSL cannot hash"));
}

void dsse_encode(struct bytes type, struct bytes payload, struct buf *out)
{
	buf_append_text(out, "DSSEv1 ");
	text_decimal(out, type.size);
	buf_append_char(out, ' ');
	buf_append_bytes(out, type);
	buf_append_char(out, ' ');
	text_decimal(out, payload.size);
	buf_append_char(out, ' ');
	buf_append_bytes(out, payload);
}

static void write_base64(struct json *json, const char *key, struct bytes bytes)
{
	CLEANUP_BUF struct buf text = {.limit = 2 * DSSE_SIZE_LIMIT};

	text_base64(&text, bytes);
	json_word(json, key, buf_bytes(&text));
}

static void write_dsse(struct bytes type, struct bytes payload, struct bytes key_id,
		       const struct ed25519_signature *signature, struct buf *out)
{
	struct json json;

	json_start(&json, out);
	json_begin_object(&json, NULL);
	write_base64(&json, "payload", payload);
	json_bytes(&json, "payloadType", type);
	json_begin_array(&json, "signatures");
	json_begin_object(&json, NULL);
	json_bytes(&json, "keyid", key_id);
	write_base64(&json, "sig", (struct bytes){(const char *)signature->bytes, ED25519_SIGNATURE_SIZE});
	json_end_object(&json);
	json_end_array(&json);
	json_end_object(&json);
}

bool dsse_sign(struct bytes type, struct bytes payload, struct bytes key_id, const struct ed25519_secret *secret,
	       struct buf *out, struct err *err)
{
	CLEANUP_BUF struct buf text = {.limit = DSSE_SIZE_LIMIT}, made = {.limit = DSSE_SIZE_LIMIT};
	struct ed25519_signature signature;

	if (!type.data || type.size > DSSE_TYPE_LIMIT || !text_is_utf8(type) || !text_is_utf8(key_id))
		return err_set(err, 0, "DSSE: a type or key id that is not text");
	dsse_encode(type, payload, &text);
	if (text.failed)
		return err_set(err, 0, "DSSE: too large");
	ed25519_sign(secret, buf_bytes(&text), &signature);
	write_dsse(type, payload, key_id, &signature, &made);
	if (made.failed)
		return err_set(err, 0, "DSSE: too large");
	buf_append_bytes(out, buf_bytes(&made));
	return !out->failed || err_set(err, 0, "DSSE: too large");
}
