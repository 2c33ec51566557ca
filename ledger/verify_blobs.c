/*
 * What was too long for a record: each blob that a record names is there and has its digest and size, and each that is there
 * is named by the record that brought it.
 */
#include <inttypes.h>
#include <jansson.h>

#include "base/jcs.h"
#include "verify_state.h"

/* One name of one record. `brought`: the blob came with this record. */
static bool check_blob(struct verifier *verifier, uint64_t seq, const char *field, json_t *said, bool *brought)
{
	static const char sql[] =
	    "SELECT seq, bytes FROM blobs WHERE digest = ? AND typeof(bytes) = 'blob' AND length(bytes) <= ?";
	const char *text = json_string_value(json_object_get(said, "digest"));
	json_t *size = json_object_get(said, "bytes");
	struct digest digest, found;
	sqlite3_stmt *row = NULL;

	if (!text || !json_is_integer(size) || !digest_parse(bytes_of(text), &digest))
		return verify_fault_at(verifier, seq, "record %" PRIu64 " names no blob as its %s", seq, field);
	bool good = sqlite3_prepare_v2(verifier->db, sql, -1, &row, NULL) == SQLITE_OK;
	sqlite3_bind_blob64(row, 1, digest.bytes, DIGEST_SIZE, SQLITE_STATIC);
	sqlite3_bind_int(row, 2, RECORD_BLOB_LIMIT);
	int step = good ? sqlite3_step(row) : SQLITE_ERROR;
	struct bytes bytes = step == SQLITE_ROW
				 ? (struct bytes){sqlite3_column_blob(row, 1), (size_t)sqlite3_column_bytes(row, 1)}
				 : BYTES_NONE;
	/* An empty one has no bytes to point to. */
	bytes.data = bytes.data ? bytes.data : "";
	uint64_t first = step == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(row, 0) : 0;
	if (step == SQLITE_DONE)
		good = verify_fault_at(verifier, seq, "the blob that record %" PRIu64 " names as its %s is missing",
				       seq, field);
	else if (step != SQLITE_ROW)
		good = verify_fault_sqlite(verifier);
	else if (!digest_of(bytes, &found))
		good = verify_fault(verifier, VERDICT_UNREADABLE, "cannot hash");
	else if (!digest_equal(&found, &digest) || (json_int_t)bytes.size != json_integer_value(size))
		good = verify_fault_at(verifier, seq, "the blob that record %" PRIu64 " names as its %s was changed",
				       seq, field);
	else if (first > seq)
		good = verify_fault_at(verifier, seq,
				       "the blob that record %" PRIu64 " names is listed as a later one's", seq);
	*brought = good && first == seq;
	sqlite3_finalize(row);
	return good;
}

bool verify_blobs(struct verifier *verifier, uint64_t seq, struct bytes record)
{
	struct bytes member = jcs_member(record, "blobs");
	struct bytes counted[RECORD_BLOBS];
	size_t count = 0;
	const char *field;
	json_t *said;
	bool good = true;

	if (!member.data)
		return true;
	json_t *blobs = json_loadb(member.data, member.size, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(blobs) || json_object_size(blobs) > RECORD_BLOBS || !verifier->has_blobs)
		good = verify_fault_at(verifier, seq, "record %" PRIu64 " names blobs that there cannot be", seq);
	json_object_foreach(good ? blobs : NULL, field, said)
	{
		bool brought = false;
		struct bytes digest = bytes_of(json_string_value(json_object_get(said, "digest")));
		good = check_blob(verifier, seq, field, said, &brought);
		if (!good)
			break;
		/* Two fields may have the same bytes. */
		for (size_t i = 0; i < count; i++)
			brought = brought && !bytes_equal(counted[i], digest);
		counted[count++] = digest;
		verifier->blobs += brought;
	}
	json_decref(blobs);
	return good;
}

bool verify_no_other_blobs(struct verifier *verifier)
{
	sqlite3_stmt *row = NULL;
	uint64_t count = 0;

	if (!verifier->has_blobs)
		return true;
	bool good = sqlite3_prepare_v2(verifier->db, "SELECT count(*) FROM blobs", -1, &row, NULL) == SQLITE_OK &&
		    sqlite3_step(row) == SQLITE_ROW;
	count = good ? (uint64_t)sqlite3_column_int64(row, 0) : 0;
	sqlite3_finalize(row);
	if (!good)
		return verify_fault_sqlite(verifier);
	return count == verifier->blobs ||
	       verify_fault(verifier, VERDICT_TAMPERED, "%" PRIu64 " blobs are there that no record names",
			    count - verifier->blobs);
}
