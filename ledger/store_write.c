#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "store_file.h"

struct store_writer {
	sqlite3 *db;          /* owned */
	sqlite3_stmt *insert; /* owned */
	int lock;             /* owned; the kernel lets go of it when we die, however that happens */
	bool in_transaction;
	uint64_t committed, pending, lost;
	uint64_t committed_effects, pending_effects;
	char folder[STORE_PATH_SIZE], file[STORE_PATH_SIZE], name_link[STORE_PATH_SIZE];
};

/* Names, not numbers, so that a table that grew in its middle still reads old runs. */
static const char schema[] = "CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
			     "CREATE TABLE records(seq INTEGER PRIMARY KEY, type TEXT NOT NULL, kind TEXT, how TEXT,"
			     " state TEXT, process INTEGER, pid INTEGER, json BLOB NOT NULL, leaf BLOB NOT NULL);"
			     "CREATE TABLE checkpoints(size INTEGER PRIMARY KEY, note BLOB NOT NULL);"
			     "CREATE TABLE documents(name TEXT PRIMARY KEY, bytes BLOB NOT NULL) WITHOUT ROWID;"
			     "CREATE TABLE blobs(digest BLOB PRIMARY KEY, seq INTEGER NOT NULL, bytes BLOB NOT NULL)"
			     " WITHOUT ROWID;";

static const char insert_record[] = "INSERT INTO records VALUES(?,?,?,?,?,?,?,?,?)";

static bool run_sql(struct store_writer *writer, const char *sql, struct err *err)
{
	if (sqlite3_exec(writer->db, sql, NULL, NULL, NULL) == SQLITE_OK)
		return true;
	return store_sqlite_error(writer->db, writer->file, "store run", err);
}

static bool set_meta(struct store_writer *writer, const char *key, const char *text, int64_t number, struct err *err)
{
	sqlite3_stmt *statement = NULL;
	bool good = sqlite3_prepare_v2(writer->db, "INSERT OR REPLACE INTO meta VALUES(?,?)", -1, &statement, NULL) ==
		    SQLITE_OK;
	if (good) {
		sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
		if (text)
			sqlite3_bind_text(statement, 2, text, -1, SQLITE_STATIC);
		else
			sqlite3_bind_int64(statement, 2, number);
		good = sqlite3_step(statement) == SQLITE_DONE;
	}
	if (!good)
		store_sqlite_error(writer->db, writer->file, "store run", err);
	sqlite3_finalize(statement);
	return good;
}

static bool cannot_make(const char *path, struct err *err)
{
	bool denied = errno == EACCES || errno == EPERM;
	err_set(err, errno, "store run: cannot make %s", path);
	/* The outer run protects its own. */
	return denied &&
	       err_hint(
		   err,
		   "it is not writable; inside another `assure trace` set ASSURE_HOME to a folder outside of its own");
}

static bool make_folder(const char *path, struct err *err)
{
	return mkdir(path, 0700) == 0 || errno == EEXIST || cannot_make(path, err);
}

/* The symbolic link makes a name unique without a list: symlink(2) succeeds for one of two that want it. */
static bool take_name(struct store_writer *writer, const char *home, const char *run, const char *name, struct err *err)
{
	char other[STORE_PATH_SIZE], text[RUN_ID_SIZE];
	struct stat st;
	if (!store_path(other, err, home, "names", NULL) || !make_folder(other, err) ||
	    !store_path(writer->name_link, err, home, "names", name, NULL))
		return false;
	for (int attempt = 0; attempt < 3; attempt++) {
		if (symlink(run, writer->name_link) == 0)
			return true;
		if (errno != EEXIST)
			break;
		ssize_t size = readlink(writer->name_link, text, sizeof(text) - 1);
		text[size > 0 ? size : 0] = '\0';
		if (store_is_run_id(text) && store_path(other, NULL, home, "runs", text, NULL) &&
		    lstat(other, &st) == 0) {
			writer->name_link[0] = '\0';
			err_set(err, 0, "run name: %s: another run has it", name);
			return err_hint(err, "choose another name, or remove that run: assure rm %s", name);
		}
		unlink(writer->name_link); /* left over from a run that is gone */
	}
	int number = errno;
	char link[STORE_PATH_SIZE];
	strcpy(link, writer->name_link);
	writer->name_link[0] = '\0';
	return err_set(err, number, "run name: %s", link);
}

static bool lock_folder(struct store_writer *writer, struct err *err)
{
	char path[STORE_PATH_SIZE];
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	if (!store_path(path, err, writer->folder, STORE_LOCK, NULL))
		return false;
	writer->lock = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (writer->lock < 0 || fcntl(writer->lock, F_OFD_SETLK, &lock) != 0)
		return err_set(err, errno, "store run: cannot lock %s", path);
	return true;
}

/* On a full disk, what is missing can still be said, and the run be closed. */
static bool make_reserve(struct store_writer *writer, struct err *err)
{
	char path[STORE_PATH_SIZE];
	if (!store_path(path, err, writer->folder, STORE_RESERVE, NULL))
		return false;
	CLEANUP_FD int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(err, errno, "store run: cannot make %s", path);
	int error = posix_fallocate(fd, 0, STORE_RESERVE_SIZE);
	if (error == 0)
		return true;
	err_set(err, error, "store run: no room for %s", path);
	return err_hint(err, "make room on the disk, or remove runs: assure gc");
}

void store_use_reserve(struct store_writer *writer)
{
	char path[STORE_PATH_SIZE];
	/* The room is for the last words: to take the log over now would use it up for what is safe where it is. */
	sqlite3_wal_autocheckpoint(writer->db, 0);
	if (store_path(path, NULL, writer->folder, STORE_RESERVE, NULL))
		unlink(path);
}

static bool open_file(struct store_writer *writer, const char *run, const char *name, struct err *err)
{
	char version[64];
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOMUTEX;
	/* SQLite makes its side files with the mode of the file. */
	int fd = open(writer->file, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(err, errno, "store run: cannot make %s", writer->file);
	close(fd);
	if (sqlite3_open_v2(writer->file, &writer->db, flags, NULL) != SQLITE_OK)
		return store_sqlite_error(writer->db, writer->file, "store run", err);
	sqlite3_busy_timeout(writer->db, 2000);
	snprintf(version, sizeof(version), "PRAGMA user_version=%d", STORE_SCHEMA);
	/*
	 * A run that is not there after a loss of power is one that never began: no waiting for the disk until then. Some
	 * fifteen records a page: with the usual half of that, storing takes a fifth longer. The log is taken over each 2 MiB,
	 * and not each 8: a disk that has just been freed may not have more.
	 */
	return run_sql(writer,
		       "PRAGMA page_size=8192; PRAGMA synchronous=OFF; PRAGMA journal_mode=WAL;"
		       "PRAGMA wal_autocheckpoint=250; BEGIN",
		       err) &&
	       run_sql(writer, schema, err) && run_sql(writer, version, err) && set_meta(writer, "run", run, 0, err) &&
	       (!name || set_meta(writer, "name", name, 0, err)) &&
	       set_meta(writer, "started_ns", NULL, clock_realtime_ns(), err) &&
	       run_sql(writer, "COMMIT; PRAGMA synchronous=NORMAL", err);
}

static void free_writer(struct store_writer *writer)
{
	sqlite3_finalize(writer->insert);
	sqlite3_close(writer->db);
	fd_close(&writer->lock);
	free(writer);
}

struct store_writer *store_create(const char *home, const char *run, const char *name, struct err *err)
{
	if (!store_is_run_id(run)) {
		err_set(err, 0, "store run: %s is not a run identity", run);
		return NULL;
	}
	if (name && !store_check_name(name, err))
		return NULL;
	struct store_writer *writer = calloc(1, sizeof(*writer));
	char runs[STORE_PATH_SIZE];
	if (!writer) {
		err_set(err, ENOMEM, "store run");
		return NULL;
	}
	writer->lock = -1;
	if (!store_path(runs, err, home, "runs", NULL) || !store_path(writer->folder, err, home, "runs", run, NULL) ||
	    !store_path(writer->file, err, writer->folder, STORE_FILE, NULL) || !make_folder(runs, err)) {
		free_writer(writer);
		return NULL;
	}
	if (mkdir(writer->folder, 0700) != 0) {
		(void)cannot_make(writer->folder, err);
		free_writer(writer);
		return NULL;
	}
	if (!lock_folder(writer, err) || (name && !take_name(writer, home, run, name, err)) ||
	    !open_file(writer, run, name, err) || !make_reserve(writer, err)) {
		store_discard(writer);
		return NULL;
	}
	if (sqlite3_prepare_v3(writer->db, insert_record, -1, SQLITE_PREPARE_PERSISTENT, &writer->insert, NULL) !=
	    SQLITE_OK) {
		store_sqlite_error(writer->db, writer->file, "store run", err);
		store_discard(writer);
		return NULL;
	}
	return writer;
}

static bool count_stored(struct store_writer *writer, struct err *err)
{
	static const char sql[] =
	    "SELECT coalesce(max(seq) + 1, 0), coalesce(sum(type = 'assure.effect/1'), 0) FROM records";
	sqlite3_stmt *row = NULL;
	bool good = sqlite3_prepare_v2(writer->db, sql, -1, &row, NULL) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW;
	if (good) {
		writer->committed = (uint64_t)sqlite3_column_int64(row, 0);
		writer->committed_effects = (uint64_t)sqlite3_column_int64(row, 1);
	} else {
		store_sqlite_error(writer->db, writer->file, "store run", err);
	}
	sqlite3_finalize(row);
	return good;
}

static bool reopen(struct store_writer *writer, const char *home, const char *run, struct err *err)
{
	char path[STORE_PATH_SIZE];
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOMUTEX;
	if (!store_path(writer->folder, err, home, "runs", run, NULL) ||
	    !store_path(writer->file, err, writer->folder, STORE_FILE, NULL) ||
	    !store_path(path, err, writer->folder, STORE_LOCK, NULL))
		return false;
	writer->lock = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (writer->lock < 0)
		return err_set(err, errno, "store run: %s", path);
	if (fcntl(writer->lock, F_OFD_SETLK, &lock) != 0)
		return err_set(err, 0, "store run: %s is still being written", run);
	if (sqlite3_open_v2(writer->file, &writer->db, flags, NULL) != SQLITE_OK)
		return store_sqlite_error(writer->db, writer->file, "store run", err);
	sqlite3_db_config(writer->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_busy_timeout(writer->db, 2000);
	return count_stored(writer, err) &&
	       (sqlite3_prepare_v3(writer->db, insert_record, -1, SQLITE_PREPARE_PERSISTENT, &writer->insert, NULL) ==
		    SQLITE_OK ||
		store_sqlite_error(writer->db, writer->file, "store run", err));
}

struct store_writer *store_reopen(const char *home, const char *run, struct err *err)
{
	struct store_writer *writer = calloc(1, sizeof(*writer));
	if (!writer) {
		err_set(err, ENOMEM, "store run");
		return NULL;
	}
	writer->lock = -1;
	if (reopen(writer, home, run, err))
		return writer;
	sqlite3_finalize(writer->insert);
	writer->insert = NULL;
	free_writer(writer);
	return NULL;
}

uint64_t store_next_seq(const struct store_writer *writer)
{
	return writer->committed + writer->pending;
}

uint64_t store_take_lost(struct store_writer *writer)
{
	uint64_t lost = writer->lost;
	writer->lost = 0;
	return lost;
}

static void mark_committed(struct store_writer *writer)
{
	writer->committed += writer->pending;
	writer->committed_effects += writer->pending_effects;
	writer->pending = writer->pending_effects = 0;
	writer->in_transaction = false;
}

static void mark_lost(struct store_writer *writer)
{
	writer->lost += writer->pending;
	writer->pending = writer->pending_effects = 0;
	writer->in_transaction = false;
}

/* After a failure: keep what can be kept of the transaction, or know exactly that it is gone. */
static void recover(struct store_writer *writer)
{
	/* Some errors (a full disk) make SQLite roll back by itself. */
	if (sqlite3_get_autocommit(writer->db)) {
		mark_lost(writer);
	} else if (sqlite3_exec(writer->db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK) {
		mark_committed(writer);
	} else {
		sqlite3_exec(writer->db, "ROLLBACK", NULL, NULL, NULL);
		mark_lost(writer);
	}
}

static void bind_head(sqlite3_stmt *insert, const struct record_head *head)
{
	sqlite3_bind_text(insert, 2, record_type_name((enum record_type)head->type), -1, SQLITE_STATIC);
	if (head->type == RECORD_effect) {
		sqlite3_bind_text(insert, 3, effect_kind_name((enum effect_kind)head->kind), -1, SQLITE_STATIC);
		sqlite3_bind_text(insert, 4, effect_how_name((enum effect_how)head->how), -1, SQLITE_STATIC);
		sqlite3_bind_text(insert, 5, result_state_name((enum result_state)head->state), -1, SQLITE_STATIC);
	}
	if (head->process)
		sqlite3_bind_int64(insert, 6, (sqlite3_int64)head->process);
	if (head->pid)
		sqlite3_bind_int(insert, 7, head->pid);
}

static bool begin(struct store_writer *writer, struct err *err)
{
	if (!writer->in_transaction)
		writer->in_transaction = run_sql(writer, "BEGIN IMMEDIATE", err);
	return writer->in_transaction;
}

bool store_append(struct store_writer *writer, uint64_t seq, const struct record_head *head, struct bytes record,
		  const struct digest *leaf, const struct record_blobs *blobs, struct err *err)
{
	if (seq != store_next_seq(writer))
		return err_set(err, 0, "store run: record %" PRIu64 " is out of turn", seq);
	if (!begin(writer, err))
		return false;
	if (!store_put_blobs(writer->db, writer->file, seq, blobs, err)) {
		recover(writer);
		return false;
	}
	sqlite3_bind_int64(writer->insert, 1, (sqlite3_int64)seq);
	bind_head(writer->insert, head);
	sqlite3_bind_blob64(writer->insert, 8, record.data, record.size, SQLITE_STATIC);
	sqlite3_bind_blob64(writer->insert, 9, leaf->bytes, DIGEST_SIZE, SQLITE_STATIC);
	bool good = sqlite3_step(writer->insert) == SQLITE_DONE;
	if (!good)
		store_sqlite_error(writer->db, writer->file, "store run", err);
	sqlite3_reset(writer->insert);
	sqlite3_clear_bindings(writer->insert);
	if (!good) {
		recover(writer);
		return false;
	}
	writer->pending++;
	writer->pending_effects += head->type == RECORD_effect;
	return true;
}

/* A row of a key, which is `text` or a number, and bytes. */
static bool insert_bytes(struct store_writer *writer, const char *sql, const char *text, uint64_t number,
			 struct bytes bytes, struct err *err)
{
	sqlite3_stmt *row = NULL;
	bool good = sqlite3_prepare_v2(writer->db, sql, -1, &row, NULL) == SQLITE_OK;
	if (good) {
		if (text)
			sqlite3_bind_text(row, 1, text, -1, SQLITE_STATIC);
		else
			sqlite3_bind_int64(row, 1, (sqlite3_int64)number);
		sqlite3_bind_blob64(row, 2, bytes.data, bytes.size, SQLITE_STATIC);
		good = sqlite3_step(row) == SQLITE_DONE;
	}
	if (!good)
		store_sqlite_error(writer->db, writer->file, "store run", err);
	sqlite3_finalize(row);
	return good;
}

bool store_put_checkpoint(struct store_writer *writer, uint64_t size, struct bytes note, struct err *err)
{
	if (!begin(writer, err))
		return false;
	if (insert_bytes(writer, "INSERT INTO checkpoints VALUES(?,?)", NULL, size, note, err))
		return true;
	recover(writer);
	return false;
}

bool store_put_document(struct store_writer *writer, const char *name, struct bytes document, struct err *err)
{
	return insert_bytes(writer, "INSERT INTO documents VALUES(?,?)", name, 0, document, err);
}

uint64_t store_effects(const struct store_writer *writer)
{
	return writer->committed_effects + writer->pending_effects;
}

bool store_flush(struct store_writer *writer, struct err *err)
{
	if (!writer->in_transaction)
		return true;
	if (run_sql(writer, "COMMIT", err)) {
		mark_committed(writer);
		return true;
	}
	recover(writer);
	return false;
}

static bool write_end(struct store_writer *writer, const char *safety, bool complete, const char *reason,
		      struct err *err)
{
	bool good = run_sql(writer, safety, err) && run_sql(writer, "BEGIN IMMEDIATE", err) &&
		    set_meta(writer, "ended_ns", NULL, clock_realtime_ns(), err) &&
		    set_meta(writer, "complete", NULL, complete, err) &&
		    set_meta(writer, "reason", reason ? reason : "", 0, err) &&
		    set_meta(writer, "records", NULL, (int64_t)writer->committed, err) &&
		    set_meta(writer, "effects", NULL, (int64_t)writer->committed_effects, err) &&
		    run_sql(writer, "COMMIT", err);
	if (!good && !sqlite3_get_autocommit(writer->db))
		sqlite3_exec(writer->db, "ROLLBACK", NULL, NULL, NULL);
	return good;
}

/* One file without side files is what remains, unless somebody reads for long: then the WAL stays, as good. */
static bool make_durable(struct store_writer *writer, bool *at_rest, struct err *err)
{
	enum { PATIENCE_MS = 1000 };
	sqlite3_busy_timeout(writer->db, PATIENCE_MS);
	int state = sqlite3_exec(writer->db, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
	*at_rest = state == SQLITE_OK;
	if (state != SQLITE_OK)
		state = sqlite3_wal_checkpoint_v2(writer->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	if (state != SQLITE_OK && (state & 0xff) != SQLITE_BUSY && (state & 0xff) != SQLITE_LOCKED)
		return store_sqlite_error(writer->db, writer->file, "store run", err);
	CLEANUP_FD int fd = open(writer->file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fsync(fd) != 0)
		return err_set(err, errno, "store run: %s", writer->file);
	CLEANUP_FD int folder = open(writer->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return (folder >= 0 && fsync(folder) == 0) || err_set(err, errno, "store run: %s", writer->folder);
}

bool store_close(struct store_writer *writer, bool complete, const char *reason, struct store_end *end, struct err *err)
{
	bool rests = false;
	store_use_reserve(writer);
	bool good = store_flush(writer, err);
	sqlite3_finalize(writer->insert);
	writer->insert = NULL;
	bool ended =
	    write_end(writer, "PRAGMA synchronous=FULL", complete, reason, err) && make_durable(writer, &rests, err);
	/*
	 * What a loss of power would leave of it is not known: to call it complete would be a claim too many. The log may
	 * hold the claim already, although the disk did not confirm it.
	 */
	if (!ended)
		(void)write_end(writer, "PRAGMA synchronous=OFF", false,
				complete ? "it could not be made durable" : reason, NULL);
	if (end)
		*end = (struct store_end){good && ended && rests, fd_steal(&writer->lock)};
	free_writer(writer);
	return good && ended;
}

void store_discard(struct store_writer *writer)
{
	sqlite3_finalize(writer->insert);
	sqlite3_close(writer->db);
	writer->insert = NULL;
	writer->db = NULL;
	if (writer->name_link[0])
		unlink(writer->name_link);
	store_remove_folder(writer->folder, NULL);
	free_writer(writer);
}
