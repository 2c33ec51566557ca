/*
 * What the host key says of a run's key: whose it is, and for what (specs/LEDGER.md section 2).
 */
#pragma once

#include <stdbool.h>

#include "base/ed25519.h"
#include "ledger/store.h"

enum { CERTIFICATE_SIZE_LIMIT = 4096, CERTIFICATE_HOST_SIZE = 256, CERTIFICATE_TIME_SIZE = 31 };

struct certificate {
	struct ed25519_key key;
	enum key_use use;
	char run[RUN_ID_SIZE];
	char host[CERTIFICATE_HOST_SIZE];
	char started[CERTIFICATE_TIME_SIZE];   /* RFC 3339 */
	char signed_at[CERTIFICATE_TIME_SIZE]; /* the same */
	char signer[ED25519_FINGERPRINT_SIZE]; /* of the host key */
	struct ed25519_signature signature;
};

/* Sign it: fills `signer` and `signature`, and appends the envelope. */
bool certificate_make(struct certificate *certificate, const struct ed25519_secret *host, struct buf *out);
/* Take an envelope apart. One that is not byte for byte what certificate_make() would write is malformed. */
bool certificate_read(struct bytes envelope, struct certificate *out, struct err *err);
/* Does this host key's signature hold? */
bool certificate_verify(const struct certificate *certificate, const struct ed25519_key *host);
