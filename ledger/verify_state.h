/*
 * What the parts of a verification share. Not public.
 */
#pragma once

#include "base/merkle.h"
#include "base/note.h"
#include "ledger/verify.h"
#include "store_file.h"

/* The seal, or what stands in its place. */
struct seal {
	bool present, recovered, has_store;
	uint64_t size, covered, store_size; /* `covered`: what the run's own key had signed, of a recovered run */
	struct digest root, store;
	struct bytes origin; /* lies in `note` */
	struct buf bytes;    /* owned; `note` lies in it */
	struct note note;    /* owned */
};

/* What the host says of a bundle in which values are withheld, and how far the walk has come in its list. */
struct shown {
	bool present, any, none; /* `any`: `first` and `last` are a stretch; `none`: no other follows */
	uint64_t first, last, count, store_size;
	struct digest root, store;
	struct merkle tree; /* over the records as they are shown */
	struct buf records; /* owned; `rest` lies in it */
	struct bytes rest;
};

/* What a note from the file `seal` says; whose signature it has is not looked at. `note` is to be freed in any case. */
bool seal_parse(struct bytes text, struct seal *out, struct err *err);

struct verifier {
	const struct verify_request *request;
	struct verification *out;
	sqlite3 *db;           /* of `run`, or owned */
	struct run *run;       /* owned; NULL when the file is read as it stands */
	struct hasher *hasher; /* owned */
	char file[STORE_PATH_SIZE];
	char origin[sizeof("assure.run/") + RUN_ID_SIZE];
	struct seal seal;
	struct ed25519_key host, keys[USE_COUNT];
	struct digest certificates[USE_COUNT];
	char fingerprints[USE_COUNT][ED25519_FINGERPRINT_SIZE];
	char name[256];     /* of the first record, as it is written there; empty without one */
	struct merkle tree; /* of the stored leaves */
	struct shown shown;
	bool has_blobs;    /* the schema has a table of them */
	uint64_t blobs;    /* that were found with the record that brought them */
	bool of_this_host; /* the host log that was asked knows the run and its key */
};

/* Say what is wrong, once: the first fault stays. Returns false. */
bool verify_fault(struct verifier *verifier, enum verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same, of one record. */
bool verify_fault_at(struct verifier *verifier, uint64_t seq, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* SQLite cannot read on: damaged, or worse. */
bool verify_fault_sqlite(struct verifier *verifier);

/* The file `seal`, as far as it can be read without a key. */
bool verify_read_seal(struct verifier *verifier);
/* The documents: certificates, and the host key that signed them. */
bool verify_documents(struct verifier *verifier);
/* Who signed the seal, and that nothing stands beside what belongs to a run. */
bool verify_seal_signature(struct verifier *verifier);
bool verify_folder(struct verifier *verifier);
/* What stands beside the records must say the same: the columns by which they are chosen, and what is kept of the run. */
bool verify_tables(struct verifier *verifier);
bool verify_columns(struct verifier *verifier, sqlite3_stmt *row, uint64_t seq, const char *type, struct bytes record);
bool verify_meta(struct verifier *verifier);
/* What a record names is there; and, when all were looked at, nothing else is. */
bool verify_blobs(struct verifier *verifier, uint64_t seq, struct bytes record);
bool verify_no_other_blobs(struct verifier *verifier);
/* Every record and checkpoint, and the end. */
bool verify_records(struct verifier *verifier);
/* The bytes of the file against the seal. */
bool verify_store_bytes(struct verifier *verifier);
/* What the host log says of this run, and what a bundle brought of another. */
bool verify_against_log(struct verifier *verifier);
bool verify_against_extract(struct verifier *verifier);
/* What the host says that was redacted; one record of that, which differs from its leaf or does not; and all of them. */
bool verify_redaction(struct verifier *verifier);
bool verify_shown(struct verifier *verifier, uint64_t seq, const struct digest *leaf, bool differs);
bool verify_shown_root(struct verifier *verifier);
