/*
 * What stands beside the records of a run: who shows it chooses by these columns and reads these values, so they must say what
 * the records say. A file at rest is covered by its digest; one that is not, or whose key was copied, is not.
 */
#include <inttypes.h>

#include "base/jcs.h"
#include "base/text.h"
#include "verify_state.h"

static struct bytes unquoted(struct bytes value)
{
	return value.size < 2 || value.data[0] != '"' ? BYTES_NONE : (struct bytes){value.data + 1, value.size - 2};
}

bool verify_tables(struct verifier *verifier)
{
	static const struct {
		const char *name, *all;
		int columns;
	} tables[] = {
	    {"blobs", "SELECT * FROM blobs", 3},         {"checkpoints", "SELECT * FROM checkpoints", 2},
	    {"documents", "SELECT * FROM documents", 2}, {"meta", "SELECT * FROM meta", 2},
	    {"records", "SELECT * FROM records", 9},
	};
	enum { COUNT = sizeof(tables) / sizeof(tables[0]) };
	sqlite3_stmt *row = NULL, *all = NULL;
	/* An older schema has no blobs. */
	size_t found = verifier->has_blobs ? 0 : 1;
	int step = SQLITE_ERROR;
	bool good = true;

	if (sqlite3_prepare_v2(verifier->db,
			       "SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
			       "ORDER BY name",
			       -1, &row, NULL) == SQLITE_OK)
		while (good && (step = sqlite3_step(row)) == SQLITE_ROW) {
			const char *type = (const char *)sqlite3_column_text(row, 0);
			const char *name = (const char *)sqlite3_column_text(row, 1);
			good = type && name && found < COUNT && strcmp(type, "table") == 0 &&
			       strcmp(name, tables[found].name) == 0;
			if (good) {
				good =
				    sqlite3_prepare_v2(verifier->db, tables[found].all, -1, &all, NULL) == SQLITE_OK &&
				    sqlite3_column_count(all) == tables[found].columns;
				sqlite3_finalize(all);
				all = NULL;
			}
			found++;
		}
	sqlite3_finalize(row);
	if (good && step != SQLITE_DONE)
		return verify_fault_sqlite(verifier);
	return (good && found == COUNT) ||
	       verify_fault(verifier, VERDICT_TAMPERED, "its file holds other tables than a run's");
}

static bool same_text(sqlite3_stmt *row, int column, struct bytes member)
{
	struct bytes text = unquoted(member);

	if (sqlite3_column_type(row, column) == SQLITE_NULL)
		return !member.data;
	const char *stored = (const char *)sqlite3_column_text(row, column);
	return stored && bytes_equal((struct bytes){stored, (size_t)sqlite3_column_bytes(row, column)}, text);
}

/* A number that is 0 stands as none. */
static bool same_number(sqlite3_stmt *row, int column, struct bytes member)
{
	uint64_t number = 0;
	bool some = text_decimal_parse(member, &number) && number != 0;

	if (sqlite3_column_type(row, column) == SQLITE_NULL)
		return !some;
	return some && sqlite3_column_type(row, column) == SQLITE_INTEGER &&
	       (uint64_t)sqlite3_column_int64(row, column) == number;
}

bool verify_columns(struct verifier *verifier, sqlite3_stmt *row, uint64_t seq, const char *type, struct bytes record)
{
	enum { KIND = 4, HOW, STATE, PROCESS, PID };
	bool effect = strcmp(type, "assure.effect/1") == 0, process = strcmp(type, "assure.process/1") == 0;
	struct bytes whose = jcs_member(record, process ? "id" : "process"), pid = jcs_member(record, "pid");

	if (effect) {
		pid = jcs_member(whose, "pid");
		whose = jcs_member(whose, "id");
	}
	bool same = same_text(row, KIND, effect ? jcs_member(record, "kind") : BYTES_NONE) &&
		    same_text(row, HOW, effect ? jcs_member(record, "how") : BYTES_NONE) &&
		    same_text(row, STATE, effect ? jcs_member(jcs_member(record, "result"), "state") : BYTES_NONE) &&
		    same_number(row, PROCESS, whose) && same_number(row, PID, pid);

	return same ||
	       verify_fault_at(verifier, seq, "record %" PRIu64 ": the columns beside it say something else", seq);
}

static bool check_value(const struct verifier *verifier, const char *key, sqlite3_stmt *row)
{
	const struct verification *out = verifier->out;
	const char *text = (const char *)sqlite3_column_text(row, 1);
	int64_t number = sqlite3_column_int64(row, 1);

	if (strcmp(key, "run") == 0)
		return text && strcmp(text, verifier->request->run) == 0;
	/* One with an escape in it was not kept. */
	if (strcmp(key, "name") == 0)
		return text && (strpbrk(text, "\"\\") || strcmp(text, verifier->name) == 0);
	if (strcmp(key, "reason") == 0)
		return text != NULL;
	if (strcmp(key, "started_ns") == 0 || strcmp(key, "ended_ns") == 0)
		return number > 0;
	if (strcmp(key, "complete") == 0)
		return !out->sealed || (number != 0) == out->complete;
	if (strcmp(key, "records") == 0)
		return !out->sealed || (uint64_t)number == out->records;
	return strcmp(key, "effects") == 0 && (!out->sealed || (uint64_t)number == out->effects);
}

bool verify_meta(struct verifier *verifier)
{
	sqlite3_stmt *row = NULL;
	int step = SQLITE_ERROR;
	bool good = true, named = false;

	if (sqlite3_prepare_v2(verifier->db, "SELECT key, value FROM meta", -1, &row, NULL) == SQLITE_OK)
		while (good && (step = sqlite3_step(row)) == SQLITE_ROW) {
			const char *key = (const char *)sqlite3_column_text(row, 0);
			good = key && check_value(verifier, key, row);
			named = named || (key && strcmp(key, "name") == 0);
		}
	sqlite3_finalize(row);
	if (good && step != SQLITE_DONE)
		return verify_fault_sqlite(verifier);
	good = good && (named || !verifier->name[0]);
	return good || verify_fault(verifier, VERDICT_TAMPERED,
				    "what stands beside the records of the run says other than they do");
}
