/*
 * The host's key: who vouches for the runs of this host. The secret is the scribe's and `assure keys`' alone.
 */
#pragma once

#include <stdbool.h>

#include "base/ed25519.h"

enum { PASSPHRASE_LIMIT = 1024 };

/* What a sealed key is opened with; to be wiped as soon as it was used. */
struct passphrase {
	bool present;
	size_t size;
	char text[PASSPHRASE_LIMIT];
};

/* Absent when there is none. */
static inline struct bytes passphrase_bytes(const struct passphrase *passphrase)
{
	return passphrase && passphrase->present ? (struct bytes){passphrase->text, passphrase->size} : BYTES_NONE;
}

static inline void passphrase_wipe(struct passphrase *passphrase)
{
	if (passphrase)
		secret_wipe(passphrase, sizeof(*passphrase));
}

/*
 * <home>/keys/host.key: 64 lower-case hexadecimal digits of the seed and a line end; or the seed sealed with a passphrase
 * (LEDGER.md section 2). Refused when it, or its folder, is a symbolic link, another user's, or open to group or others.
 * `passphrase` is absent when there is none: a sealed key is EACCES then. NULL with errno ENOENT when there is no key.
 */
struct ed25519_secret *host_key_load(const char *home, struct bytes passphrase, struct err *err);
/* The same; one that is not there is made, exclusively, and synced. `made` says whether it was. */
struct ed25519_secret *host_key_ensure(const char *home, struct bytes passphrase, bool *made, struct err *err);
/* What everybody may know of it, for which no passphrase is needed; and whether it is sealed. */
bool host_key_public(const char *home, struct ed25519_key *key, bool *sealed, struct err *err);
/* Write the present key anew, sealed or (without a passphrase) not. */
bool host_key_reseal(const char *home, const struct ed25519_secret *secret, struct bytes passphrase, struct err *err);
/*
 * A new key in three steps, so that whatever ends us in between loses none: it is written beside the present one, the host
 * log is told (by the caller), and it takes the place of the present one, which is kept as keys/<fingerprint>.old.
 */
bool host_key_stage(const char *home, const struct ed25519_secret *next, struct bytes passphrase, struct err *err);
bool host_key_promote(const char *home, struct err *err);
/* One that was written and has not taken its place yet; NULL when there is none. */
struct ed25519_secret *host_key_staged(const char *home, struct bytes passphrase);
/* The present key, or an old one that was kept, by its fingerprint. */
struct ed25519_secret *host_key_load_named(const char *home, const char *fingerprint, struct bytes passphrase,
					   struct err *err);
