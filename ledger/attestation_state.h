/*
 * What the parts of an attestation share. Not public.
 */
#pragma once

#include "base/jcs.h"
#include "base/json.h"
#include "ledger/attestation.h"
#include "ledger/claim.h"

#define STATEMENT_MEDIA_TYPE "application/vnd.in-toto+json"
#define STATEMENT_TYPE "https://in-toto.io/Statement/v1"
#define PREDICATE_TRACE "https://in-toto.io/attestation/runtime-trace/v0.1"
#define PREDICATE_EVIDENCE "assure:evidence/v1"
#define EVIDENCE_SCHEMA "assure.evidence/1"
#define ROOT_DIGEST "rfc6962_sha256"

/* Both together leave room in an envelope for Base64 and the frame. */
enum { ATTESTATION_LIST_SIZE = 1500000, ATTESTATION_SUBJECTS_SIZE = 1 << 20, ATTESTATION_PAYLOAD_SIZE = 6 << 20 };

/* ---- the files that a run made or wrote ---- */

struct produced;

struct produced_counts {
	uint64_t written, hashed, gone, changed, unprovable, unreadable, over_limit;
};

struct produced *produced_new(struct err *err);
void produced_free(struct produced *produced);
/* An effect, in the order of records. */
bool produced_note(struct produced *produced, uint64_t seq, const struct record_head *head, struct bytes json);
/*
 * Look at them now, and append a subject for each that has been as it is since `end_ns`, after what the list holds already.
 * `weakest`: what the run's claims are worth at most.
 */
bool produced_hash(struct produced *produced, int64_t end_ns, enum record_class weakest, struct json *subjects,
		   struct produced_counts *counts, struct err *err);

/* ---- what the records say ---- */

enum trace_list { TRACE_FILES, TRACE_NETWORK, TRACE_PROCESSES, TRACE_LISTS };

struct trace_part {
	struct buf text; /* owned: a JSON array */
	struct json json;
	uint64_t left_out;
};

struct trace {
	struct trace_part parts[TRACE_LISTS];
	struct produced *produced; /* owned */
	struct buf first;          /* owned: the first record */
	int64_t ended_ns;          /* of the last record that is not a recovery's */
	char ended[31];
	uint64_t records, effects, processes, gaps;
	enum record_class weakest;
	struct buf reason; /* owned: why not complete, as JSON */
};

/* Read a run whole. Free with trace_free() also when it failed. */
bool trace_read(const char *home, const char *run, struct trace *out, struct err *err);
void trace_free(struct trace *trace);

/* `name` (or `name_b64`) and `uri` of a path that stands in a record under `key`; false when it does not. */
bool trace_path(struct bytes record, const char *key, struct buf *path);
void trace_uri(struct bytes path, struct buf *out);
