/*
 * What exports that the host signs share. Not public.
 */
#pragma once

#include "ledger/export.h"
#include "ledger/redacted.h"
#include "ledger/verify.h"

/* Is the run one that its host can vouch for: sealed, and as it was sealed? Nobody should sign what does not verify. */
bool export_check(const struct export_request *request, const char *what, struct verification *out, struct err *err);
/* The host key that certified the run's; freed by the caller. NULL when this host has not got it. */
struct ed25519_secret *export_key(const struct export_request *request, const char *what,
				  const struct verification *found, struct err *err);
/* Append a DSSE envelope by that key, and a line end. */
bool export_sign(const char *type, struct bytes payload, const struct ed25519_secret *host, struct buf *out,
		 struct err *err);

/* What a redaction is about, and what is signed of it. */
struct redaction {
	uint64_t count, size, store_size;
	struct digest root, shown, store;
	struct buf records; /* owned: a JSON array of pairs */
};

/*
 * Write the store of a run anew to `path`, which must not exist, and say what was done. `out->root` and `out->size` are those
 * that were verified.
 */
bool redact_store(const struct export_request *request, const char *path, struct redaction *out, struct err *err);
/* Append the part of a bundle that says so. */
bool redact_sign(const char *run, const struct redaction *redaction, const struct ed25519_secret *host, struct buf *out,
		 struct err *err);
#define REDACTION_MEDIA_TYPE "application/vnd.assure.redaction+json"
#define REDACTION_SCHEMA "assure.redaction/1"
