/*
 * Ed25519 (RFC 8032, pure), by libsodium, and how its keys are named.
 */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"
#include "base/err.h"

enum {
	ED25519_KEY_SIZE = 32,
	ED25519_SEED_SIZE = 32,
	ED25519_SIGNATURE_SIZE = 64,
	ED25519_FINGERPRINT_SIZE = 65, /* 64 digits and a NUL */
	ED25519_SPKI_SIZE = 44,
};

/* A public key. */
struct ed25519_key {
	uint8_t bytes[ED25519_KEY_SIZE];
};

struct ed25519_signature {
	uint8_t bytes[ED25519_SIGNATURE_SIZE];
};

/*
 * A secret key, in memory that is neither swapped nor dumped nor inherited by a child, and is wiped when freed:
 * memfd_secret(2) where the kernel has it, which not even root reads through /proc; else locked memory.
 */
struct ed25519_secret;

/* A new key, or the one of a seed. NULL with an error when there is no such memory or no randomness. */
struct ed25519_secret *ed25519_generate(struct err *err);
struct ed25519_secret *ed25519_from_seed(const uint8_t seed[ED25519_SEED_SIZE], struct err *err);
void ed25519_free(struct ed25519_secret *secret);
const struct ed25519_key *ed25519_public(const struct ed25519_secret *secret);
/* The seed of a key, for writing it down; to be wiped by the caller. */
void ed25519_seed(const struct ed25519_secret *secret, uint8_t seed[ED25519_SEED_SIZE]);

void ed25519_sign(const struct ed25519_secret *secret, struct bytes message, struct ed25519_signature *out);
/* Strict: small orders and scalars out of range are refused. */
bool ed25519_verify(const struct ed25519_key *key, struct bytes message, const struct ed25519_signature *signature);

/* SHA-256 of the SubjectPublicKeyInfo in DER, as 64 lower-case digits. */
bool ed25519_fingerprint(const struct ed25519_key *key, char out[ED25519_FINGERPRINT_SIZE]);
/* The SubjectPublicKeyInfo itself (RFC 8410 section 4). */
void ed25519_spki(const struct ed25519_key *key, uint8_t out[ED25519_SPKI_SIZE]);

/* Overwrite, in a way that no compiler leaves out. */
void secret_wipe(void *data, size_t size);
