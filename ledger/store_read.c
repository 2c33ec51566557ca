#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/note.h"
#include "base/text.h"
#include "store_read.h"

struct run {
	sqlite3 *db; /* owned */
	char file[STORE_PATH_SIZE], folder[STORE_PATH_SIZE];
	struct run_summary summary;
};

static const char what[] = "read run";

void store_uri(const char *path, const char *options, struct buf *out)
{
	buf_append_text(out, "file:");
	for (; *path; path++) {
		if (strchr("?#%", *path))
			buf_append_format(out, "%%%02X", (unsigned)(unsigned char)*path);
		else
			buf_append_char(out, *path);
	}
	buf_append_char(out, '?');
	buf_append_text(out, options);
}

static bool read_version(sqlite3 *db, int *version)
{
	sqlite3_stmt *statement = NULL;
	bool good = sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &statement, NULL) == SQLITE_OK &&
		    sqlite3_step(statement) == SQLITE_ROW;
	if (good)
		*version = sqlite3_column_int(statement, 0);
	sqlite3_finalize(statement);
	return good;
}

/* Open, and look whether it can be read. */
static bool try_database(struct run *run, const char *name, int more_flags, int *version)
{
	int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOMUTEX | more_flags;

	sqlite3_close(run->db);
	run->db = NULL;
	if (sqlite3_open_v2(name, &run->db, flags, NULL) != SQLITE_OK)
		return false;
	sqlite3_busy_timeout(run->db, 5000);
	/* The file is anybody's: only its tables are read, nothing that it says is run. */
	sqlite3_db_config(run->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_db_config(run->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(run->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	return read_version(run->db, version);
}

/* False with errno. */
static bool copy_file(const char *from, const char *to)
{
	CLEANUP_FD int source = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	CLEANUP_FD int target = source < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return target >= 0 && fd_copy(source, target);
}

/*
 * A log that was not written back yet (the scribe was killed, or its disk refused) is read with the help of a file beside
 * it. Where that cannot be made, both are read from a copy elsewhere.
 */
static bool open_copy(struct run *run, int *version)
{
	static const char *const names[] = {STORE_FILE, STORE_FILE "-wal"};
	const char *place = getenv("TMPDIR");
	char folder[STORE_PATH_SIZE], from[STORE_PATH_SIZE], to[2][STORE_PATH_SIZE];
	bool good = true;

	snprintf(folder, sizeof(folder), "%s/assure-read-XXXXXX", place && place[0] == '/' ? place : "/tmp");
	if (!mkdtemp(folder))
		return false;
	for (size_t i = 0; i < 2; i++) {
		good = good && store_path(from, NULL, run->folder, names[i], NULL) &&
		       store_path(to[i], NULL, folder, names[i], NULL);
		good = good && (copy_file(from, to[i]) || (i > 0 && errno == ENOENT));
	}
	good = good && try_database(run, to[0], 0, version);
	/* Open files need no names. */
	for (size_t i = 0; i < 2; i++)
		if (store_path(from, NULL, folder, names[i], NULL))
			unlink(from);
	if (store_path(from, NULL, folder, STORE_FILE "-shm", NULL))
		unlink(from);
	rmdir(folder);
	return good;
}

static bool open_database(struct run *run, bool running, int *version, struct err *err)
{
	struct stat st;
	if (lstat(run->file, &st) != 0)
		return err_set(err, errno, "%s: %s", what, run->file);
	if (try_database(run, run->file, 0, version))
		return true;
	struct err cause = {.number = 0};
	int code = run->db ? sqlite3_errcode(run->db) & 0xff : SQLITE_NOMEM;
	(void)store_sqlite_error(run->db, run->file, what, &cause);
	bool cannot = code == SQLITE_CANTOPEN || code == SQLITE_READONLY || code == SQLITE_IOERR || code == SQLITE_FULL;
	CLEANUP_BUF struct buf uri = {.limit = 4 * STORE_PATH_SIZE};
	/* Without side files: nobody writes, and the folder cannot be written by us. */
	store_uri(run->file, "immutable=1", &uri);
	char wal[STORE_PATH_SIZE];
	bool logged =
	    !store_path(wal, NULL, run->folder, STORE_FILE "-wal", NULL) || (stat(wal, &st) == 0 && st.st_size > 0);
	if (!running && cannot && !uri.failed &&
	    (logged ? open_copy(run, version) : try_database(run, uri.data, SQLITE_OPEN_URI, version)))
		return true;
	/* What went wrong first. */
	if (err && !err_is_set(err))
		*err = cause;
	return false;
}

static void copy_text(char *out, size_t size, const unsigned char *text)
{
	snprintf(out, size, "%s", text ? (const char *)text : "");
}

struct meta {
	bool complete, has_effects;
};

static void take_meta(struct run_summary *summary, struct meta *meta, sqlite3_stmt *row)
{
	const char *key = (const char *)sqlite3_column_text(row, 0);
	sqlite3_int64 number = sqlite3_column_int64(row, 1);
	if (!key)
		return;
	if (strcmp(key, "name") == 0) {
		copy_text(summary->name, sizeof(summary->name), sqlite3_column_text(row, 1));
	} else if (strcmp(key, "reason") == 0) {
		copy_text(summary->reason, sizeof(summary->reason), sqlite3_column_text(row, 1));
	} else if (strcmp(key, "started_ns") == 0) {
		summary->started_ns = number;
	} else if (strcmp(key, "ended_ns") == 0) {
		summary->ended_ns = number;
	} else if (strcmp(key, "complete") == 0) {
		meta->complete = number != 0;
	} else if (strcmp(key, "records") == 0) {
		summary->records = (uint64_t)number;
	} else if (strcmp(key, "effects") == 0) {
		summary->effects = (uint64_t)number;
		meta->has_effects = true;
	}
}

static bool count(struct run *run, const char *sql, uint64_t *out, struct err *err)
{
	sqlite3_stmt *statement = NULL;
	bool good = sqlite3_prepare_v2(run->db, sql, -1, &statement, NULL) == SQLITE_OK &&
		    sqlite3_step(statement) == SQLITE_ROW;
	if (good)
		*out = (uint64_t)sqlite3_column_int64(statement, 0);
	else
		store_sqlite_error(run->db, run->file, what, err);
	sqlite3_finalize(statement);
	return good;
}

static uint64_t folder_size(const char *folder)
{
	uint64_t size = 0;
	struct stat st;
	DIR *dir = opendir(folder);
	if (!dir)
		return 0;
	for (struct dirent *entry; (entry = readdir(dir));)
		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
			size += (uint64_t)st.st_size;
	closedir(dir);
	return size;
}

/* What the seal says; whether it holds is another question (ledger/verify.h). */
static void read_seal(struct run *run)
{
	char text[4096];
	CLEANUP_BUF struct buf root = {.limit = sizeof(run->summary.root)};
	struct checkpoint checkpoint;
	struct note note = {.count = 0};
	CLEANUP_FD int folder = open(run->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ssize_t size = folder < 0 ? -1 : fd_read_file(folder, STORE_SEAL, text, sizeof(text));
	run->summary.sealed = size >= 0 || (folder >= 0 && errno != ENOENT);
	if (size > 0 && note_parse((struct bytes){text, (size_t)size}, &note, NULL) &&
	    checkpoint_parse(note.text, &checkpoint, NULL)) {
		text_hex(&root, digest_bytes(&checkpoint.root));
		copy_text(run->summary.root, sizeof(run->summary.root), (const unsigned char *)root.data);
	}
	note_free(&note);
}

static bool load_summary(struct run *run, int version, bool running, struct err *err)
{
	struct run_summary *summary = &run->summary;
	struct meta meta = {.complete = false};
	sqlite3_stmt *statement = NULL;
	int step = SQLITE_ERROR;
	if (sqlite3_prepare_v2(run->db, "SELECT key, value FROM meta", -1, &statement, NULL) == SQLITE_OK)
		while ((step = sqlite3_step(statement)) == SQLITE_ROW)
			take_meta(summary, &meta, statement);
	if (step != SQLITE_DONE)
		store_sqlite_error(run->db, run->file, what, err);
	sqlite3_finalize(statement);
	if (step != SQLITE_DONE)
		return false;
	summary->size = folder_size(run->folder);
	read_seal(run);
	if (summary->ended_ns && version >= SCHEMA_SEALED && !summary->sealed) {
		/* Closed, and the last word on it is still to come, or never came. */
		summary->state = running ? RUN_RUNNING : RUN_INCOMPLETE;
		if (!running && !summary->reason[0])
			strcpy(summary->reason, "its scribe ended before it was sealed");
	} else if (summary->ended_ns) {
		summary->state = meta.complete ? RUN_COMPLETE : RUN_INCOMPLETE;
	} else {
		summary->state = running ? RUN_RUNNING : RUN_INCOMPLETE;
		if (!running)
			strcpy(summary->reason, "its scribe ended early");
	}
	if (meta.has_effects)
		return true;
	return count(run, "SELECT coalesce(max(seq)+1,0) FROM records", &summary->records, err) &&
	       count(run, "SELECT count(*) FROM records WHERE type='assure.effect/1'", &summary->effects, err);
}

static bool open_run(struct run *run, const char *folder, const char *id, struct err *err)
{
	int version = 0;
	strcpy(run->summary.id, id);
	if (!store_path(run->folder, err, folder, NULL) || !store_path(run->file, err, run->folder, STORE_FILE, NULL))
		return false;
	/* Before the file is read: a scribe that ends in between has then already written that it did. */
	bool running = store_is_locked(run->folder);
	if (!open_database(run, running, &version, err))
		return false;
	if (version > STORE_SCHEMA) {
		err_set(err, 0, "%s: %s: written by a newer assure (schema %d, this one reads up to %d)", what,
			run->file, version, (int)STORE_SCHEMA);
		return err_hint(err, "update assure");
	}
	if (version == 0) {
		err_set(err, 0, "%s: %s: holds no run%s", what, run->file, running ? " yet" : "");
		return running ? err_hint(err, "try again") : err_hint(err, "remove it: assure rm %s", id);
	}
	return load_summary(run, version, running, err);
}

struct run *run_open_folder(const char *folder, const char *id, struct err *err)
{
	struct run *run = calloc(1, sizeof(*run));
	if (!run) {
		err_set(err, ENOMEM, "%s", what);
		return NULL;
	}
	if (!open_run(run, folder, id, err)) {
		run_close(run);
		return NULL;
	}
	return run;
}

static struct run *open_by_id(const char *home, const char *id, struct err *err)
{
	char folder[STORE_PATH_SIZE];
	return store_path(folder, err, home, "runs", id, NULL) ? run_open_folder(folder, id, err) : NULL;
}

struct run *run_open(const char *home, const char *which, struct err *err)
{
	char id[RUN_ID_SIZE];
	return store_find(home, which, id, err) ? open_by_id(home, id, err) : NULL;
}

void run_close(struct run *run)
{
	if (!run)
		return;
	sqlite3_close(run->db);
	free(run);
}

sqlite3 *run_database(const struct run *run, const char **file)
{
	*file = run->file;
	return run->db;
}

const struct run_summary *run_get_summary(const struct run *run)
{
	return &run->summary;
}

static bool select_records(struct run *run, const struct run_filter *filter, sqlite3_stmt **out)
{
	CLEANUP_BUF struct buf sql = {.limit = 4096};
	buf_append_text(&sql, "SELECT seq,type,kind,how,state,process,pid,json FROM records WHERE seq>=?1");
	if (filter->by_type)
		buf_append_format(&sql, " AND type='%s'", record_type_name(filter->type));
	if (filter->by_kind)
		buf_append_format(&sql, " AND kind='%s'", effect_kind_name(filter->kind));
	if (filter->by_pid)
		buf_append_format(&sql, " AND pid=%" PRId32, filter->pid);
	if (filter->failed_only)
		buf_append_text(&sql, " AND state IN ('failed','refused')");
	buf_append_text(&sql, " ORDER BY seq");
	if (sql.failed || sqlite3_prepare_v2(run->db, sql.data, -1, out, NULL) != SQLITE_OK)
		return false;
	return sqlite3_bind_int64(*out, 1, (sqlite3_int64)filter->from_seq) == SQLITE_OK;
}

static void read_head(sqlite3_stmt *row, struct record_head *head)
{
	const char *type = (const char *)sqlite3_column_text(row, 1), *kind = (const char *)sqlite3_column_text(row, 2);
	const char *how = (const char *)sqlite3_column_text(row, 3), *state = (const char *)sqlite3_column_text(row, 4);
	enum record_type found_type = RECORD_TYPE_COUNT;
	enum effect_kind found_kind = EFFECT_KIND_COUNT;
	enum effect_how found_how = HOW_COUNT;
	enum result_state found_state = RESULT_UNKNOWN;
	if (type)
		record_type_find(type, &found_type);
	if (kind)
		effect_kind_find(kind, &found_kind);
	if (how)
		effect_how_find(how, &found_how);
	if (state)
		result_state_find(state, &found_state);
	*head = (struct record_head){
	    .type = (uint32_t)found_type,
	    .kind = (uint32_t)found_kind,
	    .how = (uint32_t)found_how,
	    .state = (uint32_t)found_state,
	    .process = (uint64_t)sqlite3_column_int64(row, 5),
	    .pid = sqlite3_column_int(row, 6),
	};
}

bool run_visit(struct run *run, const struct run_filter *filter, run_visitor visit, void *context, struct err *err)
{
	static const struct run_filter everything = {.from_seq = 0};
	sqlite3_stmt *statement = NULL;
	int step = SQLITE_ERROR;
	bool go_on = true;
	if (select_records(run, filter ? filter : &everything, &statement)) {
		while (go_on && (step = sqlite3_step(statement)) == SQLITE_ROW) {
			struct record_head head;
			read_head(statement, &head);
			const char *json = sqlite3_column_blob(statement, 7);
			struct bytes bytes = {json, (size_t)sqlite3_column_bytes(statement, 7)};
			go_on = visit(context, (uint64_t)sqlite3_column_int64(statement, 0), &head, bytes);
		}
	}
	bool good = !go_on || step == SQLITE_DONE;
	if (!good)
		store_sqlite_error(run->db, run->file, what, err);
	sqlite3_finalize(statement);
	return good;
}

struct run_table {
	const char *home;
	struct run_summary *items; /* owned */
	size_t count, capacity;
	bool failed;
};

/* A run that cannot be read is shown all the same: its folder is there and takes room. */
static void summarize_damaged(const char *home, const char *id, const struct err *cause, struct run_summary *summary)
{
	char path[STORE_PATH_SIZE];
	struct stat st;
	*summary = (struct run_summary){.state = RUN_INCOMPLETE};
	strcpy(summary->id, id);
	snprintf(summary->reason, sizeof(summary->reason), "%.*s", (int)sizeof(summary->reason) - 1, cause->text);
	if (!store_path(path, NULL, home, "runs", id, NULL))
		return;
	if (store_is_locked(path))
		summary->state = RUN_RUNNING;
	summary->size = folder_size(path);
	if (lstat(path, &st) == 0)
		summary->started_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

static bool add_run(void *context, const char *id)
{
	struct run_table *table = context;
	struct err err = {.number = 0};
	if (table->count == table->capacity) {
		size_t capacity = table->capacity ? table->capacity * 2 : 64;
		struct run_summary *items = reallocarray(table->items, capacity, sizeof(*items));
		if (!items) {
			table->failed = true;
			return false;
		}
		table->items = items;
		table->capacity = capacity;
	}
	struct run_summary *summary = &table->items[table->count++];
	struct run *run = open_by_id(table->home, id, &err);
	if (run)
		*summary = run->summary;
	else
		summarize_damaged(table->home, id, &err, summary);
	run_close(run);
	return true;
}

static int newest_first(const void *left, const void *right)
{
	const struct run_summary *a = left, *b = right;
	if (a->started_ns != b->started_ns)
		return a->started_ns < b->started_ns ? 1 : -1;
	return strcmp(a->id, b->id);
}

bool run_list(const char *home, run_list_visitor visit, void *context, struct err *err)
{
	struct run_table table = {.home = home};
	bool good = store_each_run(home, add_run, &table, err);
	if (table.failed)
		good = err_set(err, ENOMEM, "runs");
	if (table.count)
		qsort(table.items, table.count, sizeof(table.items[0]), newest_first);
	for (size_t i = 0; good && i < table.count; i++)
		if (!visit(context, &table.items[i]))
			break;
	free(table.items);
	return good;
}
