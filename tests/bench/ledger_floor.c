/*
 * The floor of a verification: the records of a run read, hashed with the same library and parsed with jansson, and nothing
 * else. And that of storing: a bare loop of SQLite inserts of the same bytes.
 *
 *     ledger_floor verify FILE | ledger_floor insert FILE NEW
 */
#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/digest.h"

static sqlite3 *open_run(const char *path)
{
	sqlite3 *db = NULL;

	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
		fprintf(stderr, "ledger_floor: %s: %s\n", path, sqlite3_errmsg(db));
		exit(1);
	}
	return db;
}

static int verify(const char *path)
{
	sqlite3 *db = open_run(path);
	sqlite3_stmt *row = NULL;
	struct hasher *hasher = hasher_new(NULL);
	struct digest digest;
	uint64_t start = clock_monotonic_ns(), count = 0;

	if (!hasher || sqlite3_prepare_v2(db, "SELECT json FROM records ORDER BY seq", -1, &row, NULL) != SQLITE_OK)
		return 1;
	for (; sqlite3_step(row) == SQLITE_ROW; count++) {
		struct bytes json = {sqlite3_column_blob(row, 0), (size_t)sqlite3_column_bytes(row, 0)};
		hasher_begin(hasher);
		hasher_add(hasher, json);
		json_t *parsed = json_loadb(json.data, json.size, JSON_REJECT_DUPLICATES, NULL);
		if (!hasher_end(hasher, &digest) || !parsed)
			return 1;
		json_decref(parsed);
	}
	printf("%lu records, %.3f s\n", count, (double)(clock_monotonic_ns() - start) / 1e9);
	sqlite3_finalize(row);
	sqlite3_close(db);
	hasher_free(hasher);
	return 0;
}

static int insert(const char *path, const char *target)
{
	enum { BATCH = 1000 };
	sqlite3 *from = open_run(path), *to = NULL;
	sqlite3_stmt *row = NULL, *insert = NULL;
	uint64_t start = clock_monotonic_ns(), count = 0;

	if (sqlite3_open(target, &to) != SQLITE_OK ||
	    sqlite3_exec(to,
			 "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
			 "CREATE TABLE records(seq INTEGER PRIMARY KEY, json BLOB); BEGIN",
			 NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(from, "SELECT json FROM records ORDER BY seq", -1, &row, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(to, "INSERT INTO records VALUES(?,?)", -1, &insert, NULL) != SQLITE_OK)
		return 1;
	for (; sqlite3_step(row) == SQLITE_ROW; count++) {
		sqlite3_bind_int64(insert, 1, (sqlite3_int64)count);
		sqlite3_bind_blob(insert, 2, sqlite3_column_blob(row, 0), sqlite3_column_bytes(row, 0), SQLITE_STATIC);
		if (sqlite3_step(insert) != SQLITE_DONE)
			return 1;
		sqlite3_reset(insert);
		if (count % BATCH == BATCH - 1)
			(void)sqlite3_exec(to, "COMMIT; BEGIN", NULL, NULL, NULL);
	}
	(void)sqlite3_exec(to, "COMMIT", NULL, NULL, NULL);
	printf("%lu records, %.3f s\n", count, (double)(clock_monotonic_ns() - start) / 1e9);
	sqlite3_finalize(row);
	sqlite3_finalize(insert);
	sqlite3_close(to);
	sqlite3_close(from);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "verify") == 0)
		return verify(argv[2]);
	if (argc == 4 && strcmp(argv[1], "insert") == 0)
		return insert(argv[2], argv[3]);
	fputs("usage: ledger_floor verify FILE | insert FILE NEW\n", stderr);
	return 64;
}
