/*
 * The store of a run, written anew without what is withheld: a row that is overwritten may live on in bytes of the file that
 * SQLite does not use.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/envelope.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/merkle.h"
#include "base/text.h"
#include "export_state.h"
#include "store_read.h"

static const char what[] = "redact";

struct copying {
	const struct redactor *redactor;
	sqlite3 *from, *to; /* `to` is owned */
	sqlite3_stmt *blob; /* owned: one by its digest; NULL when the schema has none */
	const char *file;
	struct hasher *hasher; /* owned */
	struct merkle shown;
	struct redaction *out;
	struct json ranges;
	uint64_t first, next; /* of the stretch that is open; `next` 0: none */
	struct err *err;
};

static bool sqlite_failed(struct copying *copying, sqlite3 *db)
{
	return err_set(copying->err, 0, "%s: %s", what, sqlite3_errmsg(db));
}

static bool run_sql(struct copying *copying, const char *sql)
{
	return sqlite3_exec(copying->to, sql, NULL, NULL, NULL) == SQLITE_OK || sqlite_failed(copying, copying->to);
}

/* ---- which records ---- */

static void end_stretch(struct copying *copying)
{
	if (copying->next == 0)
		return;
	json_begin_array(&copying->ranges, NULL);
	json_at_uint(&copying->ranges, BYTES_NONE, copying->first);
	json_at_uint(&copying->ranges, BYTES_NONE, copying->next - 1);
	json_end_array(&copying->ranges);
	copying->next = 0;
}

static void list_record(struct copying *copying, uint64_t seq)
{
	copying->out->count++;
	if (copying->next != seq)
		end_stretch(copying);
	if (copying->next == 0)
		copying->first = seq;
	copying->next = seq + 1;
}

/* ---- blobs ---- */

static bool blob_matches(void *context, struct bytes digest, redactions *found)
{
	struct copying *copying = context;
	struct digest key;
	bool known = digest.size >= 2 && digest_parse((struct bytes){digest.data + 1, digest.size - 2}, &key);

	sqlite3_reset(copying->blob);
	if (!known || !copying->blob)
		return false;
	sqlite3_bind_blob64(copying->blob, 1, key.bytes, DIGEST_SIZE, SQLITE_TRANSIENT);
	if (sqlite3_step(copying->blob) != SQLITE_ROW)
		return false;
	const struct bytes bytes = {sqlite3_column_blob(copying->blob, 0),
				    (size_t)sqlite3_column_bytes(copying->blob, 0)};
	return redact_blob(copying->redactor, bytes, found);
}

/* ---- one row of each table, which `into` is bound to as it is ---- */

enum { RECORD_SEQ = 0, RECORD_JSON = 7, META_KEY = 0, META_VALUE = 1, BLOB_BYTES = 2 };
enum row { ROW_COPIED, ROW_LEFT_OUT, ROW_FAILED };

static enum row failed_row(bool good)
{
	return good ? ROW_COPIED : ROW_FAILED;
}

static enum row redact_bytes(struct copying *copying, sqlite3_stmt *row, sqlite3_stmt *into)
{
	const struct bytes bytes = {sqlite3_column_blob(row, BLOB_BYTES),
				    (size_t)sqlite3_column_bytes(row, BLOB_BYTES)};
	redactions found = 0;

	(void)into;
	return redact_blob(copying->redactor, bytes, &found) ? ROW_LEFT_OUT : ROW_COPIED;
}

static enum row redact_row(struct copying *copying, sqlite3_stmt *row, sqlite3_stmt *into)
{
	CLEANUP_BUF struct buf shown = {.limit = RECORD_SIZE_LIMIT + 1};
	uint64_t seq = (uint64_t)sqlite3_column_int64(row, RECORD_SEQ);
	struct bytes record = {sqlite3_column_blob(row, RECORD_JSON), (size_t)sqlite3_column_bytes(row, RECORD_JSON)};
	struct digest leaf;

	const struct redact_blobs blobs = {blob_matches, copying};
	switch (redact_record(copying->redactor, record, &blobs, &shown)) {
	case REDACTED_FAILED:
		err_set(copying->err, 0,
			"%s: record %" PRIu64 " would be too long with what stands in place of the rest", what, seq);
		return ROW_FAILED;
	case REDACTED_SOME:
		list_record(copying, seq);
		record = buf_bytes(&shown);
		sqlite3_bind_blob64(into, RECORD_JSON + 1, record.data, record.size, SQLITE_TRANSIENT);
		break;
	case REDACTED_NOTHING:
		break;
	}
	return failed_row(
	    (merkle_leaf(copying->hasher, record, &leaf) && merkle_append(&copying->shown, copying->hasher, &leaf)) ||
	    err_set(copying->err, 0, "%s: cannot hash", what));
}

static enum row redact_meta(struct copying *copying, sqlite3_stmt *row, sqlite3_stmt *into)
{
	CLEANUP_BUF struct buf shown = {.limit = 8 * RECORD_SIZE_LIMIT};
	const char *key = (const char *)sqlite3_column_text(row, META_KEY);
	const char *value = (const char *)sqlite3_column_text(row, META_VALUE);

	if (!key || !value || (strcmp(key, "name") != 0 && strcmp(key, "reason") != 0) ||
	    !redact_value(copying->redactor, bytes_of(value), &shown))
		return ROW_COPIED;
	sqlite3_bind_text(into, META_VALUE + 1, shown.data, (int)shown.size, SQLITE_TRANSIENT);
	return ROW_COPIED;
}

static enum row check_document(struct copying *copying, sqlite3_stmt *row, sqlite3_stmt *into)
{
	const struct bytes text = {sqlite3_column_blob(row, 1), (size_t)sqlite3_column_bytes(row, 1)};

	(void)into;
	return failed_row(
	    !redact_finds(copying->redactor, text) ||
	    err_set(copying->err, 0, "%s: the host's name matches, and it stands in what is signed", what));
}

static const struct {
	const char *name, *select;
	enum row (*redact)(struct copying *copying, sqlite3_stmt *row, sqlite3_stmt *into);
} tables[] = {
    {"meta", "SELECT * FROM meta", redact_meta},        {"records", "SELECT * FROM records ORDER BY seq", redact_row},
    {"checkpoints", "SELECT * FROM checkpoints", NULL}, {"documents", "SELECT * FROM documents", check_document},
    {"blobs", "SELECT * FROM blobs", redact_bytes},
};

enum { TABLES = sizeof(tables) / sizeof(tables[0]) };

static bool copy_row(struct copying *copying, size_t table, sqlite3_stmt *row, sqlite3_stmt *into)
{
	int count = sqlite3_column_count(row);

	sqlite3_reset(into);
	for (int i = 0; i < count; i++)
		sqlite3_bind_value(into, i + 1, sqlite3_column_value(row, i));
	enum row done = tables[table].redact ? tables[table].redact(copying, row, into) : ROW_COPIED;
	if (done != ROW_COPIED)
		return done == ROW_LEFT_OUT;
	return sqlite3_step(into) == SQLITE_DONE || sqlite_failed(copying, copying->to);
}

static bool copy_rows(struct copying *copying, size_t table)
{
	char insert[256] = "INSERT INTO ";
	sqlite3_stmt *row = NULL, *into = NULL;
	int step = SQLITE_ERROR;
	bool good = sqlite3_prepare_v2(copying->from, tables[table].select, -1, &row, NULL) == SQLITE_OK ||
		    sqlite_failed(copying, copying->from);

	if (good) {
		int count = sqlite3_column_count(row);
		(void)snprintf(insert, sizeof(insert), "INSERT INTO %s VALUES(?%.*s)", tables[table].name,
			       count > 1 ? 2 * (count - 1) : 0, ",?,?,?,?,?,?,?,?,?,?,?,?,?,?,?");
		good = sqlite3_prepare_v2(copying->to, insert, -1, &into, NULL) == SQLITE_OK ||
		       sqlite_failed(copying, copying->to);
	}
	while (good && (step = sqlite3_step(row)) == SQLITE_ROW)
		good = copy_row(copying, table, row, into);
	if (good && step != SQLITE_DONE)
		good = sqlite_failed(copying, copying->from);
	sqlite3_finalize(row);
	sqlite3_finalize(into);
	return good;
}

/* ---- the file ---- */

/* The tables as the run has them; one that is not known here may hold anything. */
static bool make_tables(struct copying *copying, bool present[TABLES])
{
	sqlite3_stmt *row = NULL;
	int step = SQLITE_ERROR;
	bool good = true;

	if (sqlite3_prepare_v2(copying->from,
			       "SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'", -1,
			       &row, NULL) == SQLITE_OK)
		while (good && (step = sqlite3_step(row)) == SQLITE_ROW) {
			const char *name = (const char *)sqlite3_column_text(row, 0);
			const char *sql = (const char *)sqlite3_column_text(row, 1);
			size_t i = 0;
			while (name && i < TABLES && strcmp(tables[i].name, name) != 0)
				i++;
			good = (name && sql && i < TABLES) ||
			       err_set(copying->err, 0, "%s: the run has a table that cannot be redacted", what);
			good = good && run_sql(copying, sql);
			if (good)
				present[i] = true;
		}
	sqlite3_finalize(row);
	return good && (step == SQLITE_DONE || sqlite_failed(copying, copying->from));
}

static bool copy_version(struct copying *copying)
{
	sqlite3_stmt *row = NULL;
	char text[64];
	bool good = sqlite3_prepare_v2(copying->from, "PRAGMA user_version", -1, &row, NULL) == SQLITE_OK &&
		    sqlite3_step(row) == SQLITE_ROW;

	if (good)
		(void)snprintf(text, sizeof(text), "PRAGMA user_version=%d", sqlite3_column_int(row, 0));
	sqlite3_finalize(row);
	return good ? run_sql(copying, text) : sqlite_failed(copying, copying->from);
}

static bool copy_all(struct copying *copying)
{
	bool present[TABLES] = {false};
	bool good = run_sql(copying, "PRAGMA page_size=8192; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN") &&
		    make_tables(copying, present) && copy_version(copying);

	json_begin_array(&copying->ranges, NULL);
	for (size_t i = 0; good && i < TABLES; i++)
		good = !present[i] || copy_rows(copying, i);
	end_stretch(copying);
	json_end_array(&copying->ranges);
	good = good && run_sql(copying, "COMMIT");
	if (good && copying->out->records.failed)
		good = err_set(copying->err, 0, "%s: too many stretches of records match", what);
	if (good && copying->shown.size != copying->out->size)
		good = err_set(copying->err, 0, "%s: the run was changed while it was read", what);
	return good && (merkle_root(&copying->shown, copying->hasher, &copying->out->shown) ||
			err_set(copying->err, 0, "%s: cannot hash", what));
}

static bool digest_store(const char *path, struct redaction *out, struct err *err)
{
	int fd CLEANUP_FD = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_set(err, errno, "%s: %s", what, path);
	return digest_of_file(fd, &out->store, &out->store_size, err);
}

bool redact_store(const struct export_request *request, const char *path, struct redaction *out, struct err *err)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOMUTEX;
	struct copying copying = {.redactor = request->redactor, .out = out, .err = err, .hasher = hasher_new(err)};
	struct run *run = copying.hasher ? run_open(request->home, request->run, err) : NULL;
	bool good = run != NULL;

	out->records.limit = DSSE_SIZE_LIMIT / 2;
	json_start(&copying.ranges, &out->records);
	if (good) {
		copying.from = run_database(run, &copying.file);
		good =
		    sqlite3_open_v2(path, &copying.to, flags, NULL) == SQLITE_OK || sqlite_failed(&copying, copying.to);
	}
	if (good)
		(void)sqlite3_prepare_v2(copying.from, "SELECT bytes FROM blobs WHERE digest = ?", -1, &copying.blob,
					 NULL);
	good = good && copy_all(&copying);
	sqlite3_finalize(copying.blob);
	good = sqlite3_close(copying.to) == SQLITE_OK && good && digest_store(path, out, err);
	if (run)
		run_close(run);
	hasher_free(copying.hasher);
	return good;
}

static void write_root(struct json *json, const char *key, const struct digest *root)
{
	CLEANUP_BUF struct buf text = {.limit = 64};

	text_base64(&text, digest_bytes(root));
	json_word(json, key, buf_bytes(&text));
}

bool redact_sign(const char *run, const struct redaction *redaction, const struct ed25519_secret *host, struct buf *out,
		 struct err *err)
{
	CLEANUP_BUF struct buf payload = {.limit = DSSE_SIZE_LIMIT};
	char now[31], store[DIGEST_TEXT_SIZE];
	struct json json;

	clock_rfc3339(clock_realtime_ns(), now);
	digest_text(&redaction->store, store);
	json_start(&json, &payload);
	json_begin_object(&json, NULL);
	json_uint(&json, "count", redaction->count);
	json_value(&json, "records", buf_bytes(&redaction->records));
	write_root(&json, "root", &redaction->root);
	json_text(&json, "run", run);
	json_text(&json, "schema", REDACTION_SCHEMA);
	write_root(&json, "shown", &redaction->shown);
	json_text(&json, "signed", EXPORT_SIGNED);
	json_uint(&json, "size", redaction->size);
	json_text(&json, "store", store);
	json_uint(&json, "store_size", redaction->store_size);
	json_text(&json, "time", now);
	json_end_object(&json);
	if (payload.failed)
		return err_set(err, ENOMEM, "%s", what);
	return export_sign(REDACTION_MEDIA_TYPE, buf_bytes(&payload), host, out, err);
}
