/*
 * The host's key: who vouches for the runs of this host. The secret is the scribe's and `assure keys`' alone.
 */
#pragma once

#include <stdbool.h>

#include "base/ed25519.h"

/*
 * <home>/keys/host.key: 64 lower-case hexadecimal digits of the seed and a line end. Refused when it, or its folder, is a
 * symbolic link, another user's, or open to group or others. NULL with errno ENOENT in `err` when there is none.
 */
struct ed25519_secret *host_key_load(const char *home, struct err *err);
/* The same; one that is not there is made, exclusively, and synced. `made` says whether it was. */
struct ed25519_secret *host_key_ensure(const char *home, bool *made, struct err *err);
/*
 * A new key in three steps, so that whatever ends us in between loses none: it is written beside the present one, the host
 * log is told (by the caller), and it takes the place of the present one, which is kept as keys/<fingerprint>.old.
 */
bool host_key_stage(const char *home, const struct ed25519_secret *next, struct err *err);
bool host_key_promote(const char *home, struct err *err);
/* One that was written and has not taken its place yet; NULL when there is none. */
struct ed25519_secret *host_key_staged(const char *home);
/* The present key, or an old one that was kept, by its fingerprint. */
struct ed25519_secret *host_key_load_named(const char *home, const char *fingerprint, struct err *err);
