/*
 * How Ed25519 keys are written down: SubjectPublicKeyInfo (RFC 8410) in DER and as PEM text (RFC 7468), and what a key
 * is called that is known by its text. Signing itself, and keys in memory, are base/ed25519.h's.
 */
#pragma once

#include <stdbool.h>

#include "base/ed25519.h"

/* The key of a SubjectPublicKeyInfo in DER: exactly the 44 bytes that ed25519_spki() writes. */
bool sign_spki_parse(struct bytes der, struct ed25519_key *out);

/* Append "-----BEGIN PUBLIC KEY-----", one line of Base64, "-----END PUBLIC KEY-----", each with a line feed. */
void sign_pem_write(const struct ed25519_key *key, struct buf *out);
/*
 * The key of such a text. Its lines may end in CR LF, and the last one may have no end: that is another identity where
 * keys are called by their text, but the same key.
 */
bool sign_pem_parse(struct bytes text, struct ed25519_key *out);

/*
 * SHA-256 of a text as 64 lower-case digits. Trust roots call a key by that of its PEM text as it is stored; not to be
 * taken for ed25519_fingerprint(), which is of the DER. False when the library refuses.
 */
bool sign_text_fingerprint(struct bytes text, char out[ED25519_FINGERPRINT_SIZE]);
