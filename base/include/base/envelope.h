/*
 * Signed statements that stand by themselves: SignedEnvelope, a JSON object of six members whose signature is about
 * some fields of its payload, and DSSE 1.0 (secure-systems-lab/dsse), whose signature is about bytes. Both with Ed25519
 * alone. What is said here of a signature is that it holds. Whether its key may say this is for those who know the key.
 */
#pragma once

#include <stdbool.h>

#include "base/digest.h"
#include "base/ed25519.h"

enum {
	ENVELOPE_SIZE_LIMIT = 1 << 20,
	ENVELOPE_FIELDS_LIMIT = 64,
	DSSE_SIZE_LIMIT = 1 << 23,
	DSSE_TYPE_LIMIT = 256,
	DSSE_SIGNATURES_LIMIT = 16,
};

/*
 * A SignedEnvelope taken apart. Its views lie in `text`, so it is not to be copied: values as JSON in the order that is
 * signed, `signed_at` without its quotes.
 */
struct envelope {
	struct buf text; /* owned */
	struct bytes payload;
	struct bytes fields[ENVELOPE_FIELDS_LIMIT]; /* signedFields as given, each with its quotes */
	size_t field_count;
	struct bytes signed_at;
	char fingerprint[ED25519_FINGERPRINT_SIZE]; /* what the signer's key is said to be called */
	struct ed25519_signature signature;
};

/*
 * Refused: another algorithm than Ed25519, members that are missing or of another type, a name twice (also in
 * signedFields), and what jcs_write_as() refuses. Further members are passed over: an envelope that brings its own key
 * proves nothing by it. Free with envelope_free() also when it failed.
 */
bool envelope_parse(struct bytes document, struct envelope *out, struct err *err);
void envelope_free(struct envelope *envelope);

/* Append the bytes that are signed: `_meta`, and of the payload those members that signedFields lists. */
bool envelope_signed_bytes(const struct envelope *envelope, struct buf *out);
bool envelope_verify(const struct envelope *envelope, const struct ed25519_key *key);
/*
 * The member of the payload as it was signed; absent unless it is there and signed: a member that is not listed can be
 * changed by anybody. `name` is plain ASCII.
 */
struct bytes envelope_field(const struct envelope *envelope, const char *name);

/* How a payload is to be signed. */
struct envelope_terms {
	const char *signed_at;     /* a time, in a form that needs no escape */
	const char *fingerprint;   /* what verifiers call the key: 64 lower-case digits */
	const char *const *fields; /* UTF-8, NULL at the end; NULL for all, in their order */
};

/*
 * Append an envelope on one line; `payload` is a JSON object. Fields that it does not have are listed all the same,
 * which commits the signer to their absence. Nothing is appended when it fails.
 */
bool envelope_sign(struct bytes payload, const struct envelope_terms *terms, const struct ed25519_secret *secret,
		   struct buf *out, struct err *err);
/* What other statements call an envelope by: the digest of its text without blanks, members in the given order. */
bool envelope_digest(struct bytes document, struct digest *out, struct err *err);

/* Append what a DSSE signature is about (its pre-authentication encoding). */
void dsse_encode(struct bytes type, struct bytes payload, struct buf *out);
/* Append an envelope with one signature; `key_id` is a hint, absent for none. Both are UTF-8. */
bool dsse_sign(struct bytes type, struct bytes payload, struct bytes key_id, const struct ed25519_secret *secret,
	       struct buf *out, struct err *err);

struct dsse_signature {
	struct bytes key_id; /* as JSON without its quotes; nothing is decided by it */
	struct bytes blob;   /* of any size: other signers may use other algorithms */
};

/* A DSSE envelope taken apart. Its views lie in its own buffers: it is not to be copied. */
struct dsse {
	struct buf text, payload, blobs; /* owned; `payload` is not to be read before dsse_verify() */
	struct bytes type;
	struct dsse_signature signatures[DSSE_SIGNATURES_LIMIT];
	size_t count;
};

/* Base64 of either alphabet. Unknown members are passed over. Free with dsse_free() also when it failed. */
bool dsse_parse(struct bytes document, struct dsse *out, struct err *err);
void dsse_free(struct dsse *dsse);
/* Did this key sign it? */
bool dsse_verify(const struct dsse *dsse, const struct ed25519_key *key);
