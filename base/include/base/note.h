/*
 * Signed notes, the checkpoints in them, and proofs that bring theirs along: C2SP signed-note 1.0, tlog-checkpoint 1.0,
 * tlog-cosignature 1.0, tlog-proof (draft).
 */
#pragma once

#include <stdbool.h>

#include "base/digest.h"
#include "base/ed25519.h"
#include "base/merkle.h"

enum {
	NOTE_SIZE_LIMIT = 1 << 16,
	NOTE_SIGNATURES_LIMIT = 64,
	NOTE_NAME_LIMIT = 256,
	CHECKPOINT_EXTENSIONS_LIMIT = 8,
	TLOG_PROOF_SIZE_LIMIT = 1 << 18,
};

enum note_algorithm {
	NOTE_ED25519 = 1,
	NOTE_COSIGNATURE = 4, /* Ed25519 with a time */
};

/* A key with the name by which notes call it. */
struct note_key {
	struct bytes name; /* borrowed */
	enum note_algorithm algorithm;
	struct ed25519_key key;
};

/* A name that a note may use: not empty, UTF-8, no space, no '+', no control character. */
bool note_name_is_good(struct bytes name);
/* The first four bytes of SHA-256(name ‖ 0x0a ‖ algorithm ‖ key). */
bool note_key_id(const struct note_key *key, uint8_t out[4]);
/* NAME+ID+KEY, as such keys are passed about; the parsed name lies in `text`. */
void note_key_format(const struct note_key *key, struct buf *out);
bool note_key_parse(struct bytes text, struct note_key *out);

/* Append `text` (whole lines), an empty line, and one signature. */
void note_sign(struct bytes text, struct bytes name, const struct ed25519_secret *secret, struct buf *out);

struct note_signature {
	struct bytes name;
	uint8_t id[4];
	struct bytes blob; /* what stands behind the id, decoded */
};

/* A note taken apart; `text` and names lie in what was parsed, blobs in `decoded`. */
struct note {
	struct bytes text;
	struct note_signature signatures[NOTE_SIGNATURES_LIMIT];
	size_t count;
	struct buf decoded; /* owned */
};

/* Strict: whatever the specification does not allow is malformed. Free with note_free() also when it failed. */
bool note_parse(struct bytes bytes, struct note *out, struct err *err);
void note_free(struct note *note);

enum note_verdict {
	NOTE_GOOD,
	NOTE_UNKNOWN, /* no signature of this key */
	NOTE_BAD,     /* one that does not hold */
};

enum note_verdict note_verify(const struct note *note, const struct note_key *key);

/* What a checkpoint says: a tree of this name, how large, and its root. */
struct checkpoint {
	struct bytes origin;
	uint64_t size;
	struct digest root;
	struct bytes extensions[CHECKPOINT_EXTENSIONS_LIMIT]; /* further lines, without their ends */
	size_t extension_count;
};

/* The lines of a note's text. */
void checkpoint_format(const struct checkpoint *checkpoint, struct buf *out);
bool checkpoint_parse(struct bytes text, struct checkpoint *out, struct err *err);

/*
 * What shows offline that a leaf is in a tree: its index, the proof, and the checkpoint, a signed note, with the root that it
 * leads to. `extra` is for whoever made it.
 */
struct tlog_proof {
	bool has_extra;
	struct buf extra; /* owned by tlog_proof_parse()'s caller */
	uint64_t index;
	struct merkle_proof proof;
	struct bytes checkpoint; /* what stands behind the empty line, as it is */
};

void tlog_proof_format(const struct tlog_proof *proof, struct buf *out);
/* Only the form: neither note nor proof is checked. Free with tlog_proof_free() also when it failed. */
bool tlog_proof_parse(struct bytes text, struct tlog_proof *out, struct err *err);
void tlog_proof_free(struct tlog_proof *proof);
