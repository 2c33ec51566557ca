/*
 * Private to this room: a key sealed with a passphrase, as it stands in a file (LEDGER.md section 2).
 *
 *     assure.sealed-key/1 argon2id13 <passes> <bytes of memory> <salt> <nonce> <box> <public key>⏎
 *
 * the last four in Base64. The box is XSalsa20-Poly1305 (libsodium's secretbox) over the 32 bytes of the seed, under the key that
 * Argon2id makes of the passphrase.
 */
#pragma once

#include <sodium.h>

#include "ledger/host_key.h"

enum { SEALED_KEY_TEXT_SIZE = 512 };

struct sealed_key {
	uint64_t passes, memory;
	uint8_t salt[crypto_pwhash_SALTBYTES], nonce[crypto_secretbox_NONCEBYTES];
	uint8_t box[crypto_secretbox_MACBYTES + ED25519_SEED_SIZE];
	struct ed25519_key public;
};

/* False when it is not that form, or demands more time or memory than a key of ours ever did. */
bool sealed_key_parse(struct bytes text, struct sealed_key *out);
/* False with `err`: the passphrase is wrong, or there is not that much memory. */
bool sealed_key_open(const struct sealed_key *sealed, struct bytes passphrase, uint8_t seed[ED25519_SEED_SIZE],
		     struct err *err);
bool sealed_key_write(const uint8_t seed[ED25519_SEED_SIZE], const struct ed25519_key *public, struct bytes passphrase,
		      struct buf *out, struct err *err);
