/*
 * Every record of a run against its tree, and the tree against what was signed.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "base/jcs.h"
#include "base/text.h"
#include "verify_state.h"

/* The walk over records and checkpoints, side by side. */
struct walk {
	struct verifier *verifier;
	sqlite3_stmt *records, *checkpoints; /* owned */
	bool more;                           /* a checkpoint is waiting */
	uint64_t size;                       /* its size */
	bool differs;                        /* a record is not what its leaf says */
	uint64_t first;                      /* the first such */
	struct digest found;                 /* what it is instead */
	char last_type[64];
	struct buf last; /* the last record */
};

static bool next_checkpoint(struct walk *walk)
{
	int step = sqlite3_step(walk->checkpoints);

	walk->more = step == SQLITE_ROW;
	walk->size = walk->more ? (uint64_t)sqlite3_column_int64(walk->checkpoints, 0) : 0;
	return walk->more || step == SQLITE_DONE || verify_fault_sqlite(walk->verifier);
}

/* Where the fault must lie when the stored leaves do not make a signed root. */
static bool wrong_root(struct walk *walk, const char *of)
{
	struct verifier *verifier = walk->verifier;
	uint64_t from = verifier->out->covered;

	if (walk->differs)
		return verify_fault_at(verifier, walk->first, "record %" PRIu64 " was changed", walk->first);
	if (from == verifier->tree.size)
		return verify_fault(verifier, VERDICT_TAMPERED,
				    "the records are what checkpoints cover, and not what was signed %s", of);
	return verify_fault_at(verifier, from,
			       "a record from %" PRIu64 " to %" PRIu64
			       " was changed, added or removed: they do not make the root that was signed %s",
			       from, verifier->tree.size - 1, of);
}

static bool check_note(struct walk *walk, struct bytes text)
{
	struct verifier *verifier = walk->verifier;
	const struct note_key key = {bytes_of(verifier->origin), NOTE_ED25519, verifier->keys[USE_ledger]};
	struct checkpoint checkpoint;
	struct digest root;
	struct note note;
	bool good = note_parse(text, &note, NULL) && checkpoint_parse(note.text, &checkpoint, NULL) &&
		    checkpoint.extension_count == 0 && note.count == 1 && bytes_equal(checkpoint.origin, key.name) &&
		    checkpoint.size == verifier->tree.size && note_verify(&note, &key) == NOTE_GOOD;

	if (!good)
		verify_fault(verifier, VERDICT_TAMPERED, "the checkpoint of size %" PRIu64 " was changed",
			     verifier->tree.size);
	else if (!merkle_root(&verifier->tree, verifier->hasher, &root))
		good = verify_fault(verifier, VERDICT_UNREADABLE, "cannot hash");
	else if (!digest_equal(&root, &checkpoint.root))
		good = wrong_root(walk, "in a checkpoint");
	note_free(&note);
	return good;
}

/* Those of the size that the tree has reached. */
static bool check_checkpoints(struct walk *walk)
{
	struct verifier *verifier = walk->verifier;

	while (walk->more && walk->size == verifier->tree.size) {
		struct bytes text = {sqlite3_column_blob(walk->checkpoints, 1),
				     (size_t)sqlite3_column_bytes(walk->checkpoints, 1)};
		if (!check_note(walk, text))
			return false;
		verifier->out->covered = verifier->tree.size;
		verifier->out->checkpoints++;
		if (!next_checkpoint(walk))
			return false;
	}
	return true;
}

static bool is_text(struct bytes value, const char *text)
{
	size_t size = strlen(text);

	return value.size == size + 2 && memcmp(value.data + 1, text, size) == 0;
}

/* A plain string of a canonical document, without escapes; false when it is none or too long. */
static bool copy_member(struct bytes document, const char *key, char *out, size_t size)
{
	struct bytes value = jcs_member(document, key);

	if (value.size < 2 || value.data[0] != '"' || value.size - 2 >= size ||
	    memchr(value.data, '\\', value.size) != NULL)
		return false;
	memcpy(out, value.data + 1, value.size - 2);
	out[value.size - 2] = '\0';
	return true;
}

/* The first record and the certificates name each other. */
static bool check_first(struct verifier *verifier, struct bytes record)
{
	struct bytes keys = jcs_member(record, "keys");

	if (!is_text(jcs_member(record, "schema"), "assure.run/1") ||
	    !is_text(jcs_member(record, "run"), verifier->request->run))
		return verify_fault_at(verifier, 0, "record 0 does not begin this run");
	if (!is_text(jcs_member(record, "host_key"), verifier->out->host_key))
		return verify_fault_at(verifier, 0, "record 0 names another host's key than the certificates");
	for (unsigned use = 0; use < USE_COUNT; use++)
		if (!is_text(jcs_member(keys, key_use_name((enum key_use)use)), verifier->fingerprints[use]))
			return verify_fault_at(verifier, 0, "record 0 names another key for the use %s",
					       key_use_name((enum key_use)use));
	(void)copy_member(record, "name", verifier->name, sizeof(verifier->name));
	(void)copy_member(record, "class", verifier->out->class, sizeof(verifier->out->class));
	(void)copy_member(record, "key_exposed", verifier->out->exposed, sizeof(verifier->out->exposed));
	return true;
}

static bool check_content(struct walk *walk, uint64_t seq, const char *type, struct bytes record)
{
	struct verifier *verifier = walk->verifier;
	struct bytes said = jcs_member(record, "seq");
	uint64_t number;

	static const char *const everywhere[] = {"class", "lane", "mono_ns", "time"};

	if (!jcs_is_canonical(record))
		return verify_fault_at(verifier, seq, "record %" PRIu64 " is not canonical JSON", seq);
	for (size_t i = 0; i < sizeof(everywhere) / sizeof(everywhere[0]); i++)
		if (!jcs_member(record, everywhere[i]).data)
			return verify_fault_at(verifier, seq, "record %" PRIu64 " has no %s", seq, everywhere[i]);
	if (!text_decimal_parse(said, &number) || number != seq)
		return verify_fault_at(verifier, seq, "record %" PRIu64 " says that it is record %.*s", seq,
				       (int)(said.size < 20 ? said.size : 20), said.data ? said.data : "");
	if (!verify_columns(verifier, walk->records, seq, type, record))
		return false;
	if (!is_text(jcs_member(record, "schema"), type))
		return verify_fault_at(verifier, seq, "record %" PRIu64 " is listed as another kind than it is", seq);
	return verify_blobs(verifier, seq, record) && (seq > 0 || check_first(verifier, record));
}

static bool take_record(struct walk *walk)
{
	struct verifier *verifier = walk->verifier;
	uint64_t seq = (uint64_t)sqlite3_column_int64(walk->records, 0), expected = verifier->tree.size;
	const char *type = (const char *)sqlite3_column_text(walk->records, 1);
	struct bytes record = {sqlite3_column_blob(walk->records, 2), (size_t)sqlite3_column_bytes(walk->records, 2)};
	struct digest leaf, stored;

	if (strcmp(walk->last_type, "assure.seal/1") == 0 || strcmp(walk->last_type, "assure.recovery/1") == 0)
		return verify_fault_at(verifier, seq, "record %" PRIu64 " stands behind the last one", seq);
	if (seq != expected)
		return verify_fault_at(verifier, expected, "record %" PRIu64 " is missing", expected);
	if (!type || !record.data || record.size > RECORD_SIZE_LIMIT ||
	    sqlite3_column_bytes(walk->records, 3) != DIGEST_SIZE)
		return verify_fault_at(verifier, seq, "record %" PRIu64 " was changed", seq);
	memcpy(stored.bytes, sqlite3_column_blob(walk->records, 3), DIGEST_SIZE);
	if (!merkle_leaf(verifier->hasher, record, &leaf) || !merkle_append(&verifier->tree, verifier->hasher, &stored))
		return verify_fault(verifier, VERDICT_UNREADABLE, "cannot hash");
	bool differs = !digest_equal(&leaf, &stored);
	if (verifier->shown.present) {
		if (!verify_shown(verifier, seq, &leaf, differs))
			return false;
		differs = false;
	}
	if (differs && !walk->differs) {
		walk->differs = true;
		walk->first = seq;
		walk->found = leaf;
	}
	/* What is wrong in itself is said when it is known whether the leaf or the record is what was sealed. */
	if (!walk->differs && !check_content(walk, seq, type, record))
		return false;
	if (strcmp(type, "assure.effect/1") == 0)
		verifier->out->effects++;
	(void)snprintf(walk->last_type, sizeof(walk->last_type), "%s", type);
	buf_reset(&walk->last);
	buf_append_bytes(&walk->last, record);
	return check_checkpoints(walk);
}

/* The leaves are what was signed: so the record is what was changed, and the leaves know whose place it took. */
static bool say_changed(struct walk *walk)
{
	struct verifier *verifier = walk->verifier;
	sqlite3_stmt *row = NULL;
	uint64_t other = walk->first;

	if (sqlite3_prepare_v2(verifier->db, "SELECT seq FROM records WHERE leaf = ? LIMIT 1", -1, &row, NULL) ==
	    SQLITE_OK) {
		sqlite3_bind_blob64(row, 1, walk->found.bytes, DIGEST_SIZE, SQLITE_STATIC);
		if (sqlite3_step(row) == SQLITE_ROW)
			other = (uint64_t)sqlite3_column_int64(row, 0);
	}
	sqlite3_finalize(row);
	if (other != walk->first)
		return verify_fault_at(verifier, walk->first,
				       "record %" PRIu64 " is not there: record %" PRIu64 " stands in its place",
				       walk->first, other);
	return verify_fault_at(verifier, walk->first, "record %" PRIu64 " was changed", walk->first);
}

static bool check_root(struct walk *walk)
{
	struct verifier *verifier = walk->verifier;
	const struct seal *seal = &verifier->seal;

	if (walk->more)
		return verify_fault_at(verifier, verifier->tree.size,
				       "record %" PRIu64 " is missing, and all behind it: a checkpoint has %" PRIu64,
				       verifier->tree.size, walk->size);
	if (!merkle_root(&verifier->tree, verifier->hasher, &verifier->out->root))
		return verify_fault(verifier, VERDICT_UNREADABLE, "cannot hash");
	if (seal->present && verifier->tree.size < seal->size)
		return verify_fault_at(verifier, verifier->tree.size,
				       "record %" PRIu64 " is missing, and all behind it: the seal has %" PRIu64,
				       verifier->tree.size, seal->size);
	if (seal->present && verifier->tree.size > seal->size)
		return verify_fault_at(verifier, seal->size, "record %" PRIu64 " stands behind the seal", seal->size);
	if (seal->present && !digest_equal(&seal->root, &verifier->out->root))
		return wrong_root(walk, "in the seal");
	if (walk->differs)
		return say_changed(walk);
	if (seal->recovered && seal->covered != verifier->out->covered)
		return verify_fault(verifier, VERDICT_TAMPERED, "the seal was made over other checkpoints");
	if (seal->present)
		verifier->out->covered = verifier->tree.size;
	return true;
}

/* What the last record counts is what there is. */
static bool check_end(struct walk *walk)
{
	struct verifier *verifier = walk->verifier;
	struct verification *out = verifier->out;
	const char *wanted = verifier->seal.recovered ? "assure.recovery/1" : "assure.seal/1";

	if (!verifier->seal.present)
		return true;
	json_t *json = json_loadb(walk->last.data, walk->last.size, JSON_REJECT_DUPLICATES, NULL);
	const char *reason = json_string_value(json_object_get(json, "reason"));
	json_t *complete = json_object_get(json, "complete"), *covered = json_object_get(json, "covered");
	bool good = strcmp(walk->last_type, wanted) == 0;
	if (good && verifier->seal.recovered)
		good = json_is_integer(covered) && json_integer_value(covered) == (json_int_t)verifier->seal.covered;
	else if (good)
		good = json_is_boolean(complete) &&
		       json_integer_value(json_object_get(json, "records")) == (json_int_t)verifier->tree.size &&
		       json_integer_value(json_object_get(json, "effects")) == (json_int_t)out->effects;
	out->complete = good && json_is_true(complete);
	if (good && !out->complete && !verifier->seal.recovered)
		(void)snprintf(out->why, sizeof(out->why), "%s", reason ? reason : "its reason cannot be shown");
	json_decref(json);
	return good ||
	       verify_fault_at(verifier, verifier->tree.size - 1, "the last record does not end the run that is there");
}

static bool walk_all(struct walk *walk)
{
	struct verifier *verifier = walk->verifier;
	int step;

	if (!next_checkpoint(walk))
		return false;
	while ((step = sqlite3_step(walk->records)) == SQLITE_ROW)
		if (!take_record(walk))
			return false;
	if (step != SQLITE_DONE)
		return verify_fault_sqlite(verifier);
	verifier->out->records = verifier->tree.size;
	if (verifier->tree.size == 0 && !walk->more && !verifier->seal.present)
		return verify_fault(verifier, VERDICT_INCOMPLETE, "it holds no record");
	return check_root(walk) && verify_shown_root(verifier) && check_end(walk) && verify_no_other_blobs(verifier) &&
	       verify_meta(verifier);
}

bool verify_records(struct verifier *verifier)
{
	struct walk walk = {.verifier = verifier, .last = {.limit = RECORD_SIZE_LIMIT + 1}};
	bool good =
	    sqlite3_prepare_v2(verifier->db,
			       "SELECT seq, type, json, leaf, kind, how, state, process, pid FROM records ORDER BY seq",
			       -1, &walk.records, NULL) == SQLITE_OK &&
	    sqlite3_prepare_v2(verifier->db, "SELECT size, note FROM checkpoints ORDER BY size", -1, &walk.checkpoints,
			       NULL) == SQLITE_OK;

	good = good ? walk_all(&walk) : verify_fault_sqlite(verifier);
	sqlite3_finalize(walk.records);
	sqlite3_finalize(walk.checkpoints);
	buf_free(&walk.last);
	return good;
}
