/*
 * Private to this room: the run's keys, its tree, and what is signed of it. The only code that holds a secret while a run
 * goes on.
 */
#pragma once

#include "base/merkle.h"
#include "ledger/host_log.h"
#include "ledger/store.h"

struct sealer {
	const char *home, *run;
	struct ed25519_secret *host, *keys[USE_COUNT]; /* owned */
	char fingerprints[USE_COUNT][ED25519_FINGERPRINT_SIZE];
	char host_fingerprint[ED25519_FINGERPRINT_SIZE];
	bool host_is_sealed; /* where it is kept */
	char origin[sizeof("assure.run/") + RUN_ID_SIZE];
	struct hasher *hasher;         /* owned */
	struct merkle tree, committed; /* with what is pending in the store, and without */
	struct digest leaf;            /* of the record that is being stored */
	uint64_t covered, covered_ns;  /* size and moment of the last checkpoint */
};

/* Make the run's keys, certify them into the store, and have the host log say that the run begins. */
bool sealer_begin(struct sealer *sealer, const char *home, const char *run, struct bytes passphrase,
		  struct store_writer *store, struct err *err);
/* The leaf of a record that is about to be stored, and then that it was. */
bool sealer_leaf(struct sealer *sealer, struct bytes record);
bool sealer_add(struct sealer *sealer);
/* After a flush, or after anything that failed: what the store kept is what the tree is of. */
void sealer_follow(struct sealer *sealer, const struct store_writer *store);
/* Is a checkpoint due: 1 000 records or a second behind the last one? `all`: is there anything behind it? */
bool sealer_is_due(const struct sealer *sealer, bool all);
/* Put one of the whole tree into the store's transaction. */
bool sealer_checkpoint(struct sealer *sealer, struct store_writer *store, struct err *err);
/* When the run is closed: write its seal and tell the host log. `at_rest`: the file will not change any more. */
bool sealer_seal(struct sealer *sealer, bool complete, const char *reason, bool at_rest, struct err *err);
/* Nothing was recorded: tell the host log. */
void sealer_discard(struct sealer *sealer);
/* Destroy the keys. */
void sealer_end(struct sealer *sealer);
