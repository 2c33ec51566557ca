#include "base/sign.h"

#include "base/digest.h"
#include "base/text.h"

static const struct bytes begin = BYTES("-----BEGIN PUBLIC KEY-----"), end = BYTES("-----END PUBLIC KEY-----");

bool sign_spki_parse(struct bytes der, struct ed25519_key *out)
{
	uint8_t again[ED25519_SPKI_SIZE];

	if (der.size != ED25519_SPKI_SIZE)
		return false;
	memcpy(out->bytes, der.data + ED25519_SPKI_SIZE - ED25519_KEY_SIZE, ED25519_KEY_SIZE);
	/* There is one encoding, and this writes it. */
	ed25519_spki(out, again);
	return memcmp(again, der.data, sizeof(again)) == 0;
}

void sign_pem_write(const struct ed25519_key *key, struct buf *out)
{
	uint8_t spki[ED25519_SPKI_SIZE];

	ed25519_spki(key, spki);
	buf_append_bytes(out, begin);
	buf_append_char(out, '\n');
	text_base64(out, (struct bytes){(const char *)spki, sizeof(spki)});
	buf_append_char(out, '\n');
	buf_append_bytes(out, end);
	buf_append_char(out, '\n');
}

/* The next line without its end; what is left when it has none. */
static struct bytes take_line(struct bytes *rest)
{
	const char *found = rest->size ? memchr(rest->data, '\n', rest->size) : NULL;
	struct bytes line = {rest->data, found ? (size_t)(found - rest->data) : rest->size};
	size_t taken = line.size + (found != NULL);

	rest->data += taken;
	rest->size -= taken;
	if (found && line.size > 0 && line.data[line.size - 1] == '\r')
		line.size--;
	return line;
}

bool sign_pem_parse(struct bytes text, struct ed25519_key *out)
{
	CLEANUP_BUF struct buf der = {.limit = ED25519_SPKI_SIZE};

	return text.size > 0 && bytes_equal(take_line(&text), begin) && text_base64_parse(&der, take_line(&text)) &&
	       bytes_equal(take_line(&text), end) && text.size == 0 && sign_spki_parse(buf_bytes(&der), out);
}

bool sign_text_fingerprint(struct bytes text, char out[ED25519_FINGERPRINT_SIZE])
{
	char named[DIGEST_TEXT_SIZE];
	struct digest digest;

	if (!digest_of(text, &digest))
		return false;
	digest_text(&digest, named);
	memcpy(out, named + sizeof("sha256:") - 1, ED25519_FINGERPRINT_SIZE);
	return true;
}
