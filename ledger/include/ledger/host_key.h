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
 * Put a new key in place of the present one, which goes to keys/<fingerprint>.old; the caller has written to the host log
 * what replaces what before.
 */
bool host_key_replace(const char *home, const struct ed25519_secret *next, struct err *err);
