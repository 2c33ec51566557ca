/*
 * The host log: which runs there were on this host, each start before its agent ran (specs/LEDGER.md section 5).
 */
#pragma once

#include <stdbool.h>

#include "base/note.h"
#include "ledger/certificate.h"

enum host_event {
#define HOST_EVENT(identifier, ...) HOST_EVENT_##identifier,
#include "host-events.def"
#undef HOST_EVENT
	HOST_EVENT_COUNT
};

const char *host_event_name(enum host_event event);

enum { HOST_NAME_SIZE = 32 };

/* "assure.host/" and the first 16 digits of the key's fingerprint: the log's origin, and its key's name in notes. */
bool host_name_of(const struct ed25519_key *key, char out[HOST_NAME_SIZE]);

struct host_entry {
	enum host_event event;
	const char *run;                                  /* but for key */
	const char *fingerprint, *replaces;               /* key; `replaces` may be NULL */
	const struct ed25519_key *key;                    /* key */
	const char (*run_keys)[ED25519_FINGERPRINT_SIZE]; /* start: by use */
	const struct digest *certificates;                /* start: by use, of the envelopes */
	uint64_t size;                                    /* seal, recovery: of the run's tree */
	const struct digest *root, *store;                /* seal, recovery; `store` may be NULL */
	bool complete;                                    /* seal */
	const char *reason;                               /* seal, recovery, discard; may be NULL */
};

/*
 * Append an entry, with a checkpoint that `signer` signs; durable when it returns. The log is made when there is none, and
 * begins with the signer's key; `entry` may be NULL: then that is all. Refused when its last checkpoint does not fit what is
 * in it, or when the last key that it knows is not the signer's.
 */
bool host_log_append(const char *home, const struct host_entry *entry, const struct ed25519_secret *signer,
		     struct err *err);

/* ---- reading: no key, no lock ---- */

struct host_log;

/* NULL with ENOENT when this host has none. */
struct host_log *host_log_open(const char *home, struct err *err);
void host_log_close(struct host_log *log);
/* The newest checkpoint, as it was signed. */
bool host_log_head(struct host_log *log, struct buf *out, struct err *err);

/* One entry; `json` is valid during the call. False ends it. */
typedef bool (*host_log_visitor)(void *context, uint64_t seq, struct bytes json);
/* All, or those of one run. */
bool host_log_visit(struct host_log *log, const char *run, host_log_visitor visit, void *context, struct err *err);
