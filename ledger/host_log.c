/*
 * Appending to the host log: one tree in one SQLite file, one entry a time.
 */
#include "ledger/host_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/jcs.h"
#include "base/json.h"
#include "base/merkle.h"
#include "base/text.h"
#include "store_file.h"

static const char what[] = "host log";

static const char *const events[HOST_EVENT_COUNT] = {
#define HOST_EVENT(identifier, name, help) [HOST_EVENT_##identifier] = name,
#include "host-events.def"
#undef HOST_EVENT
};

const char *host_event_name(enum host_event event)
{
	return (unsigned)event < HOST_EVENT_COUNT ? events[event] : "unknown";
}

bool host_name_of(const struct ed25519_key *key, char out[HOST_NAME_SIZE])
{
	char fingerprint[ED25519_FINGERPRINT_SIZE];

	if (!ed25519_fingerprint(key, fingerprint))
		return false;
	(void)snprintf(out, HOST_NAME_SIZE, "assure.host/%.16s", fingerprint);
	return true;
}

/* An append in progress. */
struct append {
	sqlite3 *db;
	const char *file;
	struct hasher *hasher;
	struct merkle tree;
	struct digest root; /* of the log before the entry */
};

static bool failed(const struct append *append, struct err *err)
{
	return store_sqlite_error(append->db, append->file, what, err);
}

static bool run_sql(const struct append *append, const char *sql, struct err *err)
{
	return sqlite3_exec(append->db, sql, NULL, NULL, NULL) == SQLITE_OK || failed(append, err);
}

static bool damaged(const char *why, struct err *err)
{
	err_set(err, 0, "%s: %s", what, why);
	return err_hint(err, "look at it: assure log verify; to begin a new one, move log.sqlite away and keep it");
}

/* Where the tree stands, by what was written with the last checkpoint. */
static bool read_tree(struct append *append, struct err *err)
{
	sqlite3_stmt *row = NULL;
	int step = SQLITE_ERROR;
	bool good = true;

	if (sqlite3_prepare_v2(append->db,
			       "SELECT size, parts, (SELECT coalesce(max(seq) + 1, 0) FROM entries) FROM checkpoints "
			       "ORDER BY size DESC LIMIT 1",
			       -1, &row, NULL) == SQLITE_OK)
		step = sqlite3_step(row);
	if (step == SQLITE_ROW) {
		int size = sqlite3_column_bytes(row, 1);
		const void *parts = sqlite3_column_blob(row, 1);
		append->tree.size = (uint64_t)sqlite3_column_int64(row, 0);
		append->tree.count = (unsigned)(size / DIGEST_SIZE);
		/* A complete part for each one in the size. */
		good = parts && size > 0 && append->tree.count <= MERKLE_LEVELS &&
		       append->tree.count == (unsigned)__builtin_popcountll(append->tree.size) &&
		       sqlite3_column_int64(row, 2) == sqlite3_column_int64(row, 0);
		if (good)
			memcpy(append->tree.parts, parts, (size_t)append->tree.count * DIGEST_SIZE);
	}
	sqlite3_finalize(row);
	if (step != SQLITE_ROW && step != SQLITE_DONE)
		return failed(append, err);
	return (good && merkle_root(&append->tree, append->hasher, &append->root)) ||
	       damaged("its last checkpoint does not fit its entries", err);
}

static void write_base64(struct json *json, const char *key, struct bytes bytes)
{
	CLEANUP_BUF struct buf text = {.limit = 256};

	text_base64(&text, bytes);
	json_word(json, key, buf_bytes(&text));
}

static void write_by_use(struct json *json, const struct host_entry *entry, bool certificates)
{
	static const enum key_use order[] = {USE_issuer, USE_ledger, USE_tool_executor, USE_witness};
	char text[DIGEST_TEXT_SIZE];

	_Static_assert(sizeof(order) / sizeof(order[0]) == USE_COUNT, "every use, in order of name");
	json_begin_object(json, certificates ? "certificates" : "keys");
	for (size_t i = 0; i < USE_COUNT; i++) {
		if (certificates)
			digest_text(&entry->certificates[order[i]], text);
		json_text(json, key_use_name(order[i]), certificates ? text : entry->run_keys[order[i]]);
	}
	json_end_object(json);
}

static bool write_entry(const struct append *append, const struct host_entry *entry, struct buf *out)
{
	struct json json;
	char moment[CERTIFICATE_TIME_SIZE], store[DIGEST_TEXT_SIZE];

	clock_rfc3339(clock_realtime_ns(), moment);
	json_start(&json, out);
	json_begin_object(&json, NULL);
	if (entry->certificates)
		write_by_use(&json, entry, true);
	if (entry->event == HOST_EVENT_seal)
		json_bool(&json, "complete", entry->complete);
	json_text(&json, "event", host_event_name(entry->event));
	if (entry->fingerprint)
		json_text(&json, "fingerprint", entry->fingerprint);
	if (entry->run_keys)
		write_by_use(&json, entry, false);
	write_base64(&json, "previous", digest_bytes(&append->root));
	if (entry->key)
		write_base64(&json, "public_key", (struct bytes){(const char *)entry->key->bytes, ED25519_KEY_SIZE});
	json_bytes(&json, "reason", bytes_of(entry->reason));
	if (entry->replaces)
		json_text(&json, "replaces", entry->replaces);
	if (entry->root)
		write_base64(&json, "root", digest_bytes(entry->root));
	if (entry->run)
		json_text(&json, "run", entry->run);
	json_text(&json, "schema", "assure.log/1");
	json_uint(&json, "seq", append->tree.size);
	if (entry->root)
		json_uint(&json, "size", entry->size);
	if (entry->store) {
		digest_text(entry->store, store);
		json_text(&json, "store", store);
	}
	json_text(&json, "time", moment);
	json_end_object(&json);
	return !out->failed;
}

static bool insert_entry(struct append *append, const struct host_entry *entry, struct bytes json,
			 const struct digest *leaf, struct err *err)
{
	sqlite3_stmt *row = NULL;
	bool good =
	    sqlite3_prepare_v2(append->db, "INSERT INTO entries VALUES(?,?,?,?,?)", -1, &row, NULL) == SQLITE_OK;

	if (good) {
		sqlite3_bind_int64(row, 1, (sqlite3_int64)append->tree.size);
		sqlite3_bind_text(row, 2, entry->run, -1, SQLITE_STATIC);
		sqlite3_bind_text(row, 3, host_event_name(entry->event), -1, SQLITE_STATIC);
		sqlite3_bind_blob64(row, 4, json.data, json.size, SQLITE_STATIC);
		sqlite3_bind_blob64(row, 5, leaf->bytes, DIGEST_SIZE, SQLITE_STATIC);
		good = sqlite3_step(row) == SQLITE_DONE;
	}
	if (!good)
		failed(append, err);
	sqlite3_finalize(row);
	return good;
}

static bool insert_checkpoint(struct append *append, const struct ed25519_secret *signer, struct err *err)
{
	CLEANUP_BUF struct buf text = {.limit = NOTE_SIZE_LIMIT}, note = {.limit = NOTE_SIZE_LIMIT};
	char name[HOST_NAME_SIZE];
	struct checkpoint checkpoint = {.size = append->tree.size};
	sqlite3_stmt *row = NULL;

	if (!host_name_of(ed25519_public(signer), name) ||
	    !merkle_root(&append->tree, append->hasher, &checkpoint.root))
		return err_set(err, 0, "%s: cannot hash", what);
	checkpoint.origin = bytes_of(name);
	checkpoint_format(&checkpoint, &text);
	note_sign(buf_bytes(&text), checkpoint.origin, signer, &note);
	if (text.failed || note.failed)
		return err_set(err, ENOMEM, "%s", what);
	bool good =
	    sqlite3_prepare_v2(append->db, "INSERT INTO checkpoints VALUES(?,?,?)", -1, &row, NULL) == SQLITE_OK;
	if (good) {
		sqlite3_bind_int64(row, 1, (sqlite3_int64)checkpoint.size);
		sqlite3_bind_blob64(row, 2, note.data, note.size, SQLITE_STATIC);
		sqlite3_bind_blob64(row, 3, append->tree.parts, (sqlite3_uint64)append->tree.count * DIGEST_SIZE,
				    SQLITE_STATIC);
		good = sqlite3_step(row) == SQLITE_DONE;
	}
	if (!good)
		failed(append, err);
	sqlite3_finalize(row);
	return good;
}

static bool put(struct append *append, const struct host_entry *entry, const struct ed25519_secret *signer,
		struct err *err)
{
	CLEANUP_BUF struct buf json = {.limit = RECORD_SIZE_LIMIT};
	struct digest leaf;

	if (!write_entry(append, entry, &json))
		return err_set(err, ENOMEM, "%s", what);
	if (!merkle_leaf(append->hasher, buf_bytes(&json), &leaf))
		return err_set(err, 0, "%s: cannot hash", what);
	return insert_entry(append, entry, buf_bytes(&json), &leaf, err) &&
	       ((merkle_append(&append->tree, append->hasher, &leaf) &&
		 merkle_root(&append->tree, append->hasher, &append->root)) ||
		err_set(err, 0, "%s: cannot hash", what)) &&
	       insert_checkpoint(append, signer, err);
}

/* The key that the log was last told of; a log of another one would not be believed by anybody. */
static bool knows_key(const struct append *append, const char *fingerprint, struct err *err)
{
	sqlite3_stmt *row = NULL;
	bool same = false;

	if (sqlite3_prepare_v2(append->db, "SELECT json FROM entries WHERE event = 'key' ORDER BY seq DESC LIMIT 1", -1,
			       &row, NULL) == SQLITE_OK &&
	    sqlite3_step(row) == SQLITE_ROW) {
		struct bytes json = {sqlite3_column_blob(row, 0), (size_t)sqlite3_column_bytes(row, 0)};
		struct bytes value = jcs_member(json, "fingerprint");
		same = value.size == strlen(fingerprint) + 2 &&
		       memcmp(value.data + 1, fingerprint, strlen(fingerprint)) == 0;
	}
	sqlite3_finalize(row);
	if (same)
		return true;
	err_set(err, 0, "%s: it was kept with another key than %.16s", what, fingerprint);
	return err_hint(err, "assure keys rotate ends a rotation that was interrupted; else restore keys/host.key, or "
			     "move log.sqlite away");
}

static bool append_entry(struct append *append, const struct host_entry *entry, const struct ed25519_secret *signer,
			 struct err *err)
{
	char fingerprint[ED25519_FINGERPRINT_SIZE];

	if (!run_sql(append,
		     "PRAGMA journal_mode=TRUNCATE; PRAGMA synchronous=FULL; BEGIN IMMEDIATE;"
		     "CREATE TABLE IF NOT EXISTS entries(seq INTEGER PRIMARY KEY, run TEXT, event TEXT NOT NULL,"
		     " json BLOB NOT NULL, leaf BLOB NOT NULL);"
		     "CREATE INDEX IF NOT EXISTS by_run ON entries(run);"
		     "CREATE TABLE IF NOT EXISTS checkpoints(size INTEGER PRIMARY KEY, note BLOB NOT NULL,"
		     " parts BLOB NOT NULL);",
		     err) ||
	    !read_tree(append, err))
		return false;
	if (!ed25519_fingerprint(ed25519_public(signer), fingerprint))
		return err_set(err, 0, "%s: cannot hash", what);
	/* A log begins with the key that signs it, whoever of those that begin at once comes first. */
	const struct host_entry first = {
	    .event = HOST_EVENT_key, .fingerprint = fingerprint, .key = ed25519_public(signer)};
	bool begins = append->tree.size == 0;
	if (begins ? !put(append, &first, signer, err) : !knows_key(append, fingerprint, err))
		return false;
	return (entry == NULL || put(append, entry, signer, err)) && run_sql(append, "COMMIT", err);
}

static bool make_file(const char *file, struct err *err)
{
	struct stat status;
	int fd CLEANUP_FD = open(file, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	if (fd < 0 || fstat(fd, &status) != 0)
		return err_set(err, errno, "%s: cannot open %s", what, file);
	return S_ISREG(status.st_mode) || err_set(err, 0, "%s: %s is not a regular file", what, file);
}

bool host_log_append(const char *home, const struct host_entry *entry, const struct ed25519_secret *signer,
		     struct err *err)
{
	enum { PATIENCE_MS = 20000 };
	char file[STORE_PATH_SIZE];
	struct append append = {.file = file, .tree = {.size = 0}};
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOMUTEX;

	if (!store_path(file, err, home, HOST_LOG_FILE, NULL) || !make_file(file, err))
		return false;
	append.hasher = hasher_new(err);
	if (!append.hasher)
		return false;
	bool good = sqlite3_open_v2(file, &append.db, flags, NULL) == SQLITE_OK || failed(&append, err);
	if (good) {
		sqlite3_busy_timeout(append.db, PATIENCE_MS);
		good = append_entry(&append, entry, signer, err);
		if (!good && !sqlite3_get_autocommit(append.db))
			sqlite3_exec(append.db, "ROLLBACK", NULL, NULL, NULL);
	}
	sqlite3_close(append.db);
	hasher_free(append.hasher);
	return good;
}
