/*
 * The floor of a verification: the records of a run read, hashed with the same library and parsed with jansson, and nothing
 * else. And that of storing: a bare loop of SQLite inserts of the same bytes.
 *
 *     ledger_floor verify FILE | ledger_floor insert FILE NEW | ledger_floor size FILE
 *
 * `size` says how many bytes the records have.
 */
#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The records of a run in memory: reading them is no part of storing them. */
struct record {
	void *data;
	int size;
};

static struct record *load(sqlite3 *db, size_t *count)
{
	sqlite3_stmt *row = NULL;
	struct record *records = NULL;
	size_t room = 0;

	*count = 0;
	if (sqlite3_prepare_v2(db, "SELECT json FROM records ORDER BY seq", -1, &row, NULL) != SQLITE_OK)
		return NULL;
	while (sqlite3_step(row) == SQLITE_ROW) {
		if (*count == room) {
			room = room ? 2 * room : 1024;
			struct record *more = realloc(records, room * sizeof(*records));
			if (!more)
				exit(1);
			records = more;
		}
		struct record *record = &records[(*count)++];
		record->size = sqlite3_column_bytes(row, 0);
		record->data = malloc((size_t)record->size);
		if (!record->data)
			exit(1);
		memcpy(record->data, sqlite3_column_blob(row, 0), (size_t)record->size);
	}
	sqlite3_finalize(row);
	return records;
}

static int insert(const char *path, const char *target)
{
	enum { BATCH = 1000 };
	sqlite3 *from = open_run(path), *to = NULL;
	sqlite3_stmt *insert = NULL;
	size_t count;
	struct record *records = load(from, &count);
	uint64_t start = clock_monotonic_ns();

	if (!records || sqlite3_open(target, &to) != SQLITE_OK ||
	    sqlite3_exec(to,
			 "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
			 "CREATE TABLE records(seq INTEGER PRIMARY KEY, json BLOB); BEGIN",
			 NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(to, "INSERT INTO records VALUES(?,?)", -1, &insert, NULL) != SQLITE_OK)
		exit(1);
	for (size_t i = 0; i < count; i++) {
		sqlite3_bind_int64(insert, 1, (sqlite3_int64)i);
		sqlite3_bind_blob(insert, 2, records[i].data, records[i].size, SQLITE_STATIC);
		if (sqlite3_step(insert) != SQLITE_DONE)
			exit(1);
		sqlite3_reset(insert);
		if (i % BATCH == BATCH - 1)
			(void)sqlite3_exec(to, "COMMIT; BEGIN", NULL, NULL, NULL);
	}
	(void)sqlite3_exec(to, "COMMIT", NULL, NULL, NULL);
	sqlite3_finalize(insert);
	/* At the end the file stands by itself, as that of a run does. */
	sqlite3_close(to);
	printf("%zu records, %.6f s\n", count, (double)(clock_monotonic_ns() - start) / 1e9);
	for (size_t i = 0; i < count; i++)
		free(records[i].data);
	free(records);
	sqlite3_close(from);
	return 0;
}

static int size(const char *path)
{
	sqlite3 *db = open_run(path);
	sqlite3_stmt *row = NULL;

	if (sqlite3_prepare_v2(db, "SELECT sum(length(json)) FROM records", -1, &row, NULL) != SQLITE_OK ||
	    sqlite3_step(row) != SQLITE_ROW)
		return 1;
	printf("%lld\n", (long long)sqlite3_column_int64(row, 0));
	sqlite3_finalize(row);
	sqlite3_close(db);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "verify") == 0)
		return verify(argv[2]);
	if (argc == 4 && strcmp(argv[1], "insert") == 0)
		return insert(argv[2], argv[3]);
	if (argc == 3 && strcmp(argv[1], "size") == 0)
		return size(argv[2]);
	fputs("usage: ledger_floor verify FILE | insert FILE NEW | size FILE\n", stderr);
	return 64;
}
