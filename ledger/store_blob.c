/*
 * What was too long for a record: put beside it, and found by its digest.
 */
#include <ctype.h>
#include <stdio.h>

#include "base/digest.h"
#include "ledger/record.h"
#include "store_read.h"

enum { DIGITS = 2 * DIGEST_SIZE, LEAST = 4 };

/* The digits, in upper case as hex() has them; false when they are none. */
static bool take_digits(const char *digest, char digits[DIGITS + 1])
{
	static const char prefix[] = "sha256:";
	size_t size = 0;

	if (strncmp(digest, prefix, strlen(prefix)) == 0)
		digest += strlen(prefix);
	for (; digest[size]; size++) {
		if (size == DIGITS || !isxdigit((unsigned char)digest[size]))
			return false;
		digits[size] = (char)toupper((unsigned char)digest[size]);
	}
	digits[size] = '\0';
	return size >= LEAST;
}

bool run_blob(struct run *run, const char *digest, struct buf *out, struct err *err)
{
	static const char sql[] =
	    "SELECT bytes FROM blobs WHERE substr(hex(digest), 1, ?2) = ?1 AND length(bytes) <= ?3";
	char digits[DIGITS + 1];
	sqlite3_stmt *row = NULL;
	const char *file;
	int found = 0;

	if (!take_digits(digest, digits))
		return err_set(err, 0, "blob: %s is not a SHA-256, nor at least 4 of its digits", digest);
	/* An older schema has no such table: nothing is found in it. */
	if (sqlite3_prepare_v2(run_database(run, &file), sql, -1, &row, NULL) == SQLITE_OK) {
		sqlite3_bind_text(row, 1, digits, -1, SQLITE_STATIC);
		sqlite3_bind_int(row, 2, (int)strlen(digits));
		sqlite3_bind_int(row, 3, RECORD_BLOB_LIMIT);
		for (; sqlite3_step(row) == SQLITE_ROW; found++) {
			buf_reset(out);
			buf_append(out, sqlite3_column_blob(row, 0), (size_t)sqlite3_column_bytes(row, 0));
		}
	}
	sqlite3_finalize(row);
	if (found == 1 && !out->failed)
		return true;
	err_set(err, 0, found == 0 ? "blob: the run has none with the digest %s" : "blob: more than one begins with %s",
		digest);
	return err_hint(err, "records name their blobs: assure effects RUN --json");
}

/* Rare, so no statement is kept for it. What another record had already is there. */
bool store_put_blobs(sqlite3 *db, const char *file, uint64_t seq, const struct record_blobs *blobs, struct err *err)
{
	static const char sql[] = "INSERT OR IGNORE INTO blobs VALUES(?,?,?)";
	bool good = true;

	for (size_t i = 0; blobs && i < blobs->count && good; i++) {
		const struct record_blob *blob = &blobs->items[i];
		struct bytes bytes = buf_bytes(&blob->bytes);
		sqlite3_stmt *row = NULL;
		good = sqlite3_prepare_v2(db, sql, -1, &row, NULL) == SQLITE_OK;
		sqlite3_bind_blob64(row, 1, blob->digest.bytes, DIGEST_SIZE, SQLITE_STATIC);
		sqlite3_bind_int64(row, 2, (sqlite3_int64)seq);
		sqlite3_bind_blob64(row, 3, bytes.data, bytes.size, SQLITE_STATIC);
		good = good && sqlite3_step(row) == SQLITE_DONE;
		if (!good)
			store_sqlite_error(db, file, "store run", err);
		sqlite3_finalize(row);
	}
	return good;
}
