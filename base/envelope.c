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

/* Text that stands between quotes as it is. */
static bool needs_no_escape(struct bytes text)
{
	for (size_t i = 0; i < text.size; i++)
		if ((unsigned char)text.data[i] < 0x20 || text.data[i] == '"' || text.data[i] == '\\')
			return false;
	return text_is_utf8(text);
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
			return not_an_envelope(err,
					       "signedFields has too many, one twice, or something else than names");
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

/* All names of the payload that stands at `rest`, in its order. */
static bool list_all(struct envelope *envelope, struct bytes rest)
{
	struct bytes name, value;

	(void)take(&rest, '{');
	while (next_member(&rest, &name, &value))
		if (!add_field(envelope, name))
			return false;
	return true;
}

/* These names; `list` is where they stand afterwards. */
static bool list_fields(struct envelope *envelope, const char *const *names, struct buf *list, struct err *err)
{
	struct json json;

	json_start(&json, list);
	json_begin_array(&json, NULL);
	for (; *names; names++)
		json_element(&json, bytes_of(*names));
	json_end_array(&json);
	return !list->failed && take_fields(envelope, buf_bytes(list), err);
}

/* The envelope that has still to be signed; `given` is the payload in its own order. */
static bool prepare(struct envelope *envelope, struct bytes given, const struct envelope_terms *terms, struct buf *list,
		    struct err *err)
{
	if (given.data[0] != '{' || !jcs_write_as(given, JCS_ECMA_SORTED, &envelope->text, err))
		return not_an_envelope(err, "its payload is no object");
	envelope->payload = buf_bytes(&envelope->text);
	envelope->signed_at = bytes_of(terms->signed_at);
	if (envelope->signed_at.size == 0 || !needs_no_escape(envelope->signed_at) ||
	    !take_fingerprint(envelope, bytes_of(terms->fingerprint)))
		return not_an_envelope(err, "when, or by whom it is to be signed");
	return (terms->fields ? list_fields(envelope, terms->fields, list, err) : list_all(envelope, given)) ||
	       not_an_envelope(err, "fields to sign, which are too many, or one twice");
}

static void write_envelope(const struct envelope *envelope, struct bytes payload, struct buf *out)
{
	buf_append_text(out, "{\"payload\":");
	buf_append_bytes(out, payload);
	buf_append_text(out, ",\"signature\":\"");
	text_base64(out, (struct bytes){(const char *)envelope->signature.bytes, ED25519_SIGNATURE_SIZE});
	buf_append_text(out, "\",\"publicKeyFingerprint\":\"");
	buf_append_text(out, envelope->fingerprint);
	buf_append_text(out, "\",\"signedAt\":\"");
	buf_append_bytes(out, envelope->signed_at);
	buf_append_text(out, "\",\"signedFields\":");
	write_fields(envelope, out);
	buf_append_text(out, ",\"algorithm\":\"Ed25519\"}");
}

bool envelope_sign(struct bytes payload, const struct envelope_terms *terms, const struct ed25519_secret *secret,
		   struct buf *out, struct err *err)
{
	CLEANUP_BUF struct buf given = {.limit = ENVELOPE_SIZE_LIMIT}, text = {.limit = 4 * ENVELOPE_SIZE_LIMIT},
			       list = {.limit = ENVELOPE_SIZE_LIMIT};
	struct envelope envelope = {.text = {.limit = ENVELOPE_SIZE_LIMIT}};
	size_t before = out->size;
	bool good = jcs_write_as(payload, JCS_ECMA_GIVEN, &given, err) &&
		    prepare(&envelope, buf_bytes(&given), terms, &list, err) &&
		    (envelope_signed_bytes(&envelope, &text) || not_an_envelope(err, "too large"));

	if (good) {
		ed25519_sign(secret, buf_bytes(&text), &envelope.signature);
		write_envelope(&envelope, buf_bytes(&given), out);
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
	json->out->failed = json->out->failed || text.failed;
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

	if (!type.data || type.size > DSSE_TYPE_LIMIT || !needs_no_escape(type) || !needs_no_escape(key_id))
		return err_set(err, 0, "DSSE: a type or key id that is not plain text");
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

static bool not_dsse(struct err *err, const char *why)
{
	return err_set(err, 0, "not a DSSE envelope: %s", why);
}

/* Base64 of the standard or of the URL-safe alphabet, not of both. */
static bool decode(struct bytes text, struct buf *out)
{
	CLEANUP_BUF struct buf standard = {.limit = 2 * DSSE_SIZE_LIMIT};
	bool other = text.size > 0 && (memchr(text.data, '-', text.size) || memchr(text.data, '_', text.size));

	if (!text.data)
		return false;
	if (!other)
		return text_base64_parse(out, text);
	if (memchr(text.data, '+', text.size) || memchr(text.data, '/', text.size))
		return false;
	buf_append_bytes(&standard, text);
	for (size_t i = 0; i < standard.size; i++) {
		char c = standard.data[i];
		standard.data[i] = (char)(c == '-' ? '+' : c == '_' ? '/' : c);
	}
	return !standard.failed && text_base64_parse(out, buf_bytes(&standard));
}

static bool take_dsse_signature(struct dsse *dsse, struct bytes object)
{
	struct bytes key_id = member(object, "keyid");
	size_t before = dsse->blobs.size;

	if (dsse->count == DSSE_SIGNATURES_LIMIT || (key_id.data && key_id.data[0] != '"') ||
	    !decode(plain_text(member(object, "sig")), &dsse->blobs))
		return false;
	/* The buffer has its final size from the start: nothing in it moves. */
	dsse->signatures[dsse->count++] = (struct dsse_signature){
	    .key_id = key_id.data ? (struct bytes){key_id.data + 1, key_id.size - 2} : BYTES_NONE,
	    .blob = {dsse->blobs.data + before, dsse->blobs.size - before},
	};
	return true;
}

bool dsse_parse(struct bytes document, struct dsse *out, struct err *err)
{
	struct bytes value;

	*out = (struct dsse){.text = {.limit = 2 * DSSE_SIZE_LIMIT},
			     .payload = {.limit = DSSE_SIZE_LIMIT},
			     .blobs = {.limit = DSSE_SIZE_LIMIT}};
	if (document.size > DSSE_SIZE_LIMIT)
		return not_dsse(err, "too large");
	if (!jcs_write_as(document, JCS_RFC8785, &out->text, err))
		return false;
	struct bytes text = buf_bytes(&out->text), list = member(text, "signatures");
	out->type = plain_text(member(text, "payloadType"));
	if (!out->type.data || out->type.size > DSSE_TYPE_LIMIT)
		return not_dsse(err, "payloadType is no plain text");
	if (!decode(plain_text(member(text, "payload")), &out->payload))
		return not_dsse(err, "its payload is no Base64");
	if (!take(&list, '[') || !buf_reserve(&out->blobs, list.size))
		return not_dsse(err, "it has no signatures");
	while (next_element(&list, &value))
		if (!take_dsse_signature(out, value))
			return not_dsse(err, "a signature that is none, or too many");
	return out->count > 0 || not_dsse(err, "it has no signatures");
}

void dsse_free(struct dsse *dsse)
{
	buf_free(&dsse->text);
	buf_free(&dsse->payload);
	buf_free(&dsse->blobs);
}

bool dsse_verify(const struct dsse *dsse, const struct ed25519_key *key)
{
	CLEANUP_BUF struct buf message = {.limit = 2 * DSSE_SIZE_LIMIT};
	struct ed25519_signature signature;

	dsse_encode(dsse->type, buf_bytes(&dsse->payload), &message);
	for (size_t i = 0; !message.failed && i < dsse->count; i++) {
		struct bytes blob = dsse->signatures[i].blob;
		if (blob.size != ED25519_SIGNATURE_SIZE)
			continue;
		memcpy(signature.bytes, blob.data, ED25519_SIGNATURE_SIZE);
		if (ed25519_verify(key, buf_bytes(&message), &signature))
			return true;
	}
	return false;
}
