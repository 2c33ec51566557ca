/*
 * Reading the host log: anybody may.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "ledger/host_log.h"
#include "store_file.h"

struct host_log {
	sqlite3 *db; /* owned */
	char file[STORE_PATH_SIZE];
};

static const char what[] = "host log";

struct host_log *host_log_open(const char *home, struct err *err)
{
	int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOMUTEX;
	struct host_log *log = calloc(1, sizeof(*log));
	struct stat status;

	if (!log) {
		err_set(err, ENOMEM, "%s", what);
		return NULL;
	}
	if (!store_path(log->file, err, home, HOST_LOG_FILE, NULL)) {
		free(log);
		return NULL;
	}
	if (lstat(log->file, &status) != 0) {
		err_set(err, errno, "%s: %s", what, log->file);
		free(log);
		return NULL;
	}
	if (sqlite3_open_v2(log->file, &log->db, flags, NULL) != SQLITE_OK) {
		store_sqlite_error(log->db, log->file, what, err);
		host_log_close(log);
		return NULL;
	}
	sqlite3_busy_timeout(log->db, 5000);
	sqlite3_db_config(log->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_db_config(log->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(log->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	return log;
}

void host_log_close(struct host_log *log)
{
	if (!log)
		return;
	sqlite3_close(log->db);
	free(log);
}

bool host_log_head(struct host_log *log, struct buf *out, struct err *err)
{
	sqlite3_stmt *row = NULL;
	int step = SQLITE_ERROR;

	if (sqlite3_prepare_v2(log->db, "SELECT note FROM checkpoints ORDER BY size DESC LIMIT 1", -1, &row, NULL) ==
	    SQLITE_OK)
		step = sqlite3_step(row);
	if (step == SQLITE_ROW)
		buf_append(out, sqlite3_column_blob(row, 0), (size_t)sqlite3_column_bytes(row, 0));
	bool good = step == SQLITE_ROW && !out->failed;
	if (step == SQLITE_DONE)
		err_set(err, 0, "%s: %s holds no checkpoint", what, log->file);
	else if (!good)
		store_sqlite_error(log->db, log->file, what, err);
	sqlite3_finalize(row);
	return good;
}

bool host_log_visit(struct host_log *log, const char *run, host_log_visitor visit, void *context, struct err *err)
{
	sqlite3_stmt *row = NULL;
	const char *sql = run ? "SELECT seq, json FROM entries WHERE run = ? ORDER BY seq"
			      : "SELECT seq, json FROM entries ORDER BY seq";
	int step = SQLITE_ERROR;

	if (sqlite3_prepare_v2(log->db, sql, -1, &row, NULL) == SQLITE_OK) {
		if (run)
			sqlite3_bind_text(row, 1, run, -1, SQLITE_STATIC);
		while ((step = sqlite3_step(row)) == SQLITE_ROW) {
			struct bytes json = {sqlite3_column_blob(row, 1), (size_t)sqlite3_column_bytes(row, 1)};
			if (!visit(context, (uint64_t)sqlite3_column_int64(row, 0), json))
				break;
		}
	}
	bool good = step == SQLITE_DONE || step == SQLITE_ROW;
	if (!good)
		store_sqlite_error(log->db, log->file, what, err);
	sqlite3_finalize(row);
	return good;
}
