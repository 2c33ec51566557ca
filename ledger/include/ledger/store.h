/*
 * Runs on disk: one folder a run under the state folder, one SQLite file in it (specs/STORE.md).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/digest.h"
#include "ledger/record.h"

enum { STORE_SCHEMA = 3, RUN_ID_SIZE = 27 };

/*
 * The state folder: $ASSURE_HOME, else as root /var/lib/assure, else $XDG_STATE_HOME/assure, else ~/.local/state/assure.
 * Made with mode 0700 when `create`. Refused when a symlink, another user's, or writable by others. `out` gets an
 * absolute path.
 */
bool store_home(char *out, size_t size, bool create, struct err *err);

/* A name that people may give: no path, no control character, not "last", not to be taken for an option. */
bool store_check_name(const char *name, struct err *err);

/* A new run identity: 128 random bits as 26 characters. */
bool store_new_run_id(char out[RUN_ID_SIZE], struct err *err);

/* ---- writing: the scribe alone ---- */

struct store_writer;

/* Make the run's folder and file. `run` is its id, `name` may be NULL; a name that another run has is refused. */
struct store_writer *store_create(const char *home, const char *run, const char *name, struct err *err);
/*
 * A run that nobody writes any more and that has no seal, to be closed after all. Refused when its scribe lives.
 */
struct store_writer *store_reopen(const char *home, const char *run, struct err *err);
/*
 * The sequence number that the next record must have. After a failed append or flush, records of the transaction that
 * was lost are not counted any more: numbers in the file never have holes.
 */
uint64_t store_next_seq(const struct store_writer *writer);
/* Records that were appended and then lost with their transaction, since the last call. */
uint64_t store_take_lost(struct store_writer *writer);
/*
 * Append one record (bytes as stored), its leaf, and the blobs that it names (NULL: none), in one transaction. Grouped into transactions; store_flush() ends the current one. After a
 * failure store_next_seq() says whether what was pending before was kept.
 */
bool store_append(struct store_writer *writer, uint64_t seq, const struct record_head *head, struct bytes record,
		  const struct digest *leaf, const struct record_blobs *blobs, struct err *err);
/* Put a checkpoint of this size into the current transaction, or into one of its own. */
bool store_put_checkpoint(struct store_writer *writer, uint64_t size, struct bytes note, struct err *err);
/* Keep a document beside the records: certificates. At once. */
bool store_put_document(struct store_writer *writer, const char *name, struct bytes document, struct err *err);
/* Effects that are stored, or pending. */
uint64_t store_effects(const struct store_writer *writer);
bool store_flush(struct store_writer *writer, struct err *err);
/* Give back the room that was set aside: for the records with which a run on a full disk ends. store_close() does it. */
void store_use_reserve(struct store_writer *writer);
/* What is left of a writer. */
struct store_end {
	bool at_rest; /* one file is left, which nothing will change any more */
	int lock;     /* owned: as long as it is open, the run is not over; -1 when there is none */
};

/* Mark the run as ended (complete, or why not) and close. `end` may be NULL: then the lock is let go. */
bool store_close(struct store_writer *writer, bool complete, const char *reason, struct store_end *end,
		 struct err *err);
/* Size and digest of a run's file. */
bool store_digest(const char *home, const char *run, uint64_t *size, struct digest *out, struct err *err);
/* Write the seal: whole and durable, or not at all. One that is there stays, and is an error. */
bool store_write_seal(const char *home, const char *run, struct bytes note, struct err *err);
/* Remove a run that never started. */
void store_discard(struct store_writer *writer);

/* ---- reading: anybody, no key, no lock ---- */

enum run_state { RUN_RUNNING, RUN_COMPLETE, RUN_INCOMPLETE };

struct run_summary {
	char id[RUN_ID_SIZE];
	char name[128];       /* empty when none */
	int64_t started_ns;   /* realtime */
	int64_t ended_ns;     /* 0 while running or unknown */
	enum run_state state; /* running only while its scribe is alive */
	char reason[256];     /* why incomplete */
	uint64_t records, effects;
	uint64_t size;                  /* bytes on disk */
	bool sealed;                    /* there is a seal, whether or not it holds: that, ledger/verify.h says */
	char root[2 * DIGEST_SIZE + 1]; /* of the tree, as the seal has it; empty without one */
};

struct run; /* an open run */

/* The identity of the run that is meant, whether or not it can be read: full id, unique prefix, name, or "last". */
bool run_find(const char *home, const char *which, char id[RUN_ID_SIZE], struct err *err);
/* "<home>/runs/<id>"; false when too long. */
bool run_folder(const char *home, const char *id, char *out, size_t size);
/* Find by full id, unique prefix of at least 4 characters (as people type it), name, or "last". */
struct run *run_open(const char *home, const char *which, struct err *err);
void run_close(struct run *run);
const struct run_summary *run_get_summary(const struct run *run);

/*
 * Filters combine with "and". A record of a newer assure may have a kind, how or state that this one does not know: the
 * head then holds the _COUNT value (for the state: RESULT_UNKNOWN).
 */
struct run_filter {
	bool by_type, by_kind, by_pid, failed_only;
	enum record_type type;
	enum effect_kind kind;
	int32_t pid;
	uint64_t from_seq;
};

/* One stored record. `json` is valid during the callback. Return false to stop early. */
typedef bool (*run_visitor)(void *context, uint64_t seq, const struct record_head *head, struct bytes json);
bool run_visit(struct run *run, const struct run_filter *filter, run_visitor visit, void *context, struct err *err);

/* Every run under `home`, newest start first; damaged ones are listed with state incomplete and the reason. */
/*
 * What was too long for a record: the bytes with this digest ("sha256:…" or its digits, or the first of them, at least 4).
 * False when there are none, or more than one.
 */
bool run_blob(struct run *run, const char *digest, struct buf *out, struct err *err);

typedef bool (*run_list_visitor)(void *context, const struct run_summary *summary);
bool run_list(const char *home, run_list_visitor visit, void *context, struct err *err);
/* Shortest unique prefix (at least 4) by which to call this run. */
size_t run_short_id(const char *home, const char *id);

/* Remove a run. A running one is refused. */
bool run_remove(const char *home, const char *which, struct err *err);
