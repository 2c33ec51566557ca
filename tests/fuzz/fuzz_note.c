/*
 * Signed notes, checkpoints, proofs and the keys of verifiers: what is taken can be written again as it was.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/note.h"

static void try_key(struct bytes in)
{
	CLEANUP_BUF struct buf out = {.limit = 1 << 16};
	struct note_key key;

	if (!note_key_parse(in, &key))
		return;
	note_key_format(&key, &out);
	if (!bytes_equal(buf_bytes(&out), in))
		abort();
}

static void try_checkpoint(struct bytes in)
{
	CLEANUP_BUF struct buf out = {.limit = 1 << 17};
	struct checkpoint checkpoint;

	if (!checkpoint_parse(in, &checkpoint, NULL))
		return;
	checkpoint_format(&checkpoint, &out);
	if (!bytes_equal(buf_bytes(&out), in))
		abort();
}

static void try_proof(struct bytes in)
{
	CLEANUP_BUF struct buf out = {.limit = 1 << 19};
	struct tlog_proof proof;

	if (tlog_proof_parse(in, &proof, NULL)) {
		tlog_proof_format(&proof, &out);
		if (!bytes_equal(buf_bytes(&out), in))
			abort();
	}
	tlog_proof_free(&proof);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct bytes in = {(const char *)data, size};
	struct note_key key = {BYTES("a"), NOTE_ED25519, {{1}}};
	struct note note;

	try_key(in);
	try_checkpoint(in);
	try_proof(in);
	if (note_parse(in, &note, NULL)) {
		/* Nobody can sign with this key. */
		if (note_verify(&note, &key) == NOTE_GOOD || note.count == 0 || note.text.size >= size)
			abort();
		key.algorithm = NOTE_COSIGNATURE;
		if (note_verify(&note, &key) == NOTE_GOOD)
			abort();
		try_checkpoint(note.text);
	}
	note_free(&note);
	return 0;
}
