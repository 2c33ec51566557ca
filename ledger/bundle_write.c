#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/merkle.h"
#include "base/note.h"
#include "base/text.h"
#include "bundle_state.h"

static const char what[] = "export";

const char *bundle_part_name(size_t part)
{
	static const char *const names[BUNDLE_PARTS] = {"run.sqlite", "seal", "log"};

	return part < BUNDLE_PARTS ? names[part] : "";
}

void bundle_header(struct buf *out, const char *run, const struct part *parts, size_t count)
{
	struct json json;

	json_start(&json, out);
	json_begin_object(&json, NULL);
	json_begin_array(&json, "parts");
	for (size_t i = 0; i < count; i++) {
		char digest[DIGEST_TEXT_SIZE];
		digest_text(&parts[i].digest, digest);
		json_begin_object(&json, NULL);
		json_text(&json, "name", bundle_part_name(i));
		json_text(&json, "sha256", digest);
		json_uint(&json, "size", parts[i].size);
		json_end_object(&json);
	}
	json_end_array(&json);
	json_text(&json, "run", run);
	json_text(&json, "schema", "assure.bundle/1");
	json_end_object(&json);
}

/* ---- what the host log has of the run ---- */

struct extract {
	sqlite3 *db;           /* owned */
	sqlite3_stmt *leaf;    /* owned */
	struct hasher *hasher; /* owned */
	uint64_t size;         /* of the log when the run's last entry was made */
	const char *run;
};

static bool give_leaf(void *context, uint64_t index, struct digest *out)
{
	struct extract *extract = context;

	sqlite3_bind_int64(extract->leaf, 1, (sqlite3_int64)index);
	bool good = sqlite3_step(extract->leaf) == SQLITE_ROW && sqlite3_column_bytes(extract->leaf, 0) == DIGEST_SIZE;
	if (good)
		memcpy(out->bytes, sqlite3_column_blob(extract->leaf, 0), DIGEST_SIZE);
	sqlite3_reset(extract->leaf);
	return good;
}

static sqlite3_stmt *prepare(struct extract *extract, const char *sql)
{
	sqlite3_stmt *row = NULL;

	if (sqlite3_prepare_v2(extract->db, sql, -1, &row, NULL) != SQLITE_OK)
		return NULL;
	sqlite3_bind_text(row, 1, extract->run, -1, SQLITE_STATIC);
	return row;
}

/* The checkpoint that came with the run's last entry: its own host's key signed it. */
static bool write_checkpoint(struct extract *extract, struct json *json)
{
	sqlite3_stmt *row = prepare(extract, "SELECT size, note FROM checkpoints WHERE size = "
					     "(SELECT max(seq) + 1 FROM entries WHERE run = ?)");
	bool good = row && sqlite3_step(row) == SQLITE_ROW;

	if (good) {
		extract->size = (uint64_t)sqlite3_column_int64(row, 0);
		json_bytes(json, "checkpoint",
			   (struct bytes){sqlite3_column_blob(row, 1), (size_t)sqlite3_column_bytes(row, 1)});
	}
	sqlite3_finalize(row);
	return good;
}

static bool write_entries(struct extract *extract, struct json *json)
{
	sqlite3_stmt *row = prepare(extract, "SELECT json FROM entries WHERE run = ? ORDER BY seq");
	bool good = row != NULL;

	json_begin_array(json, "entries");
	while (good && sqlite3_step(row) == SQLITE_ROW)
		json_element(json, (struct bytes){sqlite3_column_blob(row, 0), (size_t)sqlite3_column_bytes(row, 0)});
	json_end_array(json);
	sqlite3_finalize(row);
	return good;
}

static bool write_proofs(struct extract *extract, struct json *json)
{
	sqlite3_stmt *row = prepare(extract, "SELECT seq FROM entries WHERE run = ? ORDER BY seq");
	bool good = row != NULL;

	json_begin_array(json, "proofs");
	while (good && sqlite3_step(row) == SQLITE_ROW) {
		uint64_t index = (uint64_t)sqlite3_column_int64(row, 0);
		struct merkle_proof proof;
		good = merkle_prove_leaf(extract->hasher, give_leaf, extract, index, extract->size, &proof);
		if (!good)
			break;
		json_begin_object(json, NULL);
		json_uint(json, "index", index);
		json_begin_array(json, "proof");
		for (unsigned i = 0; i < proof.count; i++) {
			CLEANUP_BUF struct buf text = {.limit = 64};
			text_base64(&text, digest_bytes(&proof.steps[i]));
			json_element(json, buf_bytes(&text));
		}
		json_end_array(json);
		json_end_object(json);
	}
	json_end_array(json);
	sqlite3_finalize(row);
	return good;
}

/* False when this host's log says nothing of it; then the bundle has no such part. */
static bool extract_log(const char *home, const char *run, struct buf *out)
{
	char file[STORE_PATH_SIZE];
	struct extract extract = {.run = run};
	struct json json;
	bool good = store_path(file, NULL, home, HOST_LOG_FILE, NULL) &&
		    sqlite3_open_v2(file, &extract.db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK &&
		    sqlite3_prepare_v2(extract.db, "SELECT leaf FROM entries WHERE seq = ?", -1, &extract.leaf, NULL) ==
			SQLITE_OK;

	extract.hasher = good ? hasher_new(NULL) : NULL;
	if (extract.hasher) {
		sqlite3_busy_timeout(extract.db, 5000);
		json_start(&json, out);
		json_begin_object(&json, NULL);
		good = write_checkpoint(&extract, &json) && write_entries(&extract, &json) &&
		       write_proofs(&extract, &json);
		json_text(&json, "schema", "assure.log-extract/1");
		json_end_object(&json);
	}
	sqlite3_finalize(extract.leaf);
	sqlite3_close(extract.db);
	good = good && extract.hasher && !out->failed;
	hasher_free(extract.hasher);
	return good;
}

/* ---- the file ---- */

static int open_part(const char *folder, const char *name, struct part *part, struct err *err)
{
	char path[STORE_PATH_SIZE];

	if (!store_path(path, err, folder, name, NULL))
		return -1;
	int fd CLEANUP_FD = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0) {
		err_set(err, errno, "%s: %s", what, path);
		return -1;
	}
	if (!digest_of_file(fd, &part->digest, &part->size, err) || lseek(fd, 0, SEEK_SET) != 0)
		return -1;
	return fd_steal(&fd);
}

static bool write_all(int out, const struct buf *header, int store, int seal, const struct buf *log, struct err *err)
{
	return (fd_write_full(out, header->data, header->size) && fd_copy(store, out) && fd_copy(seal, out) &&
		(log->size == 0 || fd_write_full(out, log->data, log->size))) ||
	       err_set(err, errno, "%s: writing", what);
}

static bool write_bundle(const char *home, const char *run, int out, struct err *err)
{
	CLEANUP_BUF struct buf header = {.limit = BUNDLE_HEADER_LIMIT}, log = {.limit = BUNDLE_LOG_LIMIT};
	struct part parts[BUNDLE_PARTS] = {{.size = 0}};
	char folder[STORE_PATH_SIZE];
	size_t count = 2;

	if (!run_folder(home, run, folder, sizeof(folder)))
		return err_set(err, ENAMETOOLONG, "%s", what);
	int store CLEANUP_FD = open_part(folder, STORE_FILE, &parts[BUNDLE_STORE], err);
	int seal CLEANUP_FD = store < 0 ? -1 : open_part(folder, STORE_SEAL, &parts[BUNDLE_SEAL], err);
	if (seal < 0) {
		if (err && err->number == ENOENT)
			err_hint(err, "only a sealed run can be exported; close it first: assure recover %s", run);
		return false;
	}
	if (extract_log(home, run, &log)) {
		parts[BUNDLE_LOG].size = log.size;
		if (!digest_of(buf_bytes(&log), &parts[BUNDLE_LOG].digest))
			return err_set(err, 0, "%s: cannot hash", what);
		count = BUNDLE_PARTS;
	} else {
		buf_reset(&log);
	}
	bundle_header(&header, run, parts, count);
	buf_append_char(&header, '\n');
	if (header.failed)
		return err_set(err, ENOMEM, "%s", what);
	return write_all(out, &header, store, seal, &log, err);
}

bool bundle_write(const char *home, const char *run, const char *path, struct err *err)
{
	if (strcmp(path, "-") == 0)
		return write_bundle(home, run, STDOUT_FILENO, err);
	int out CLEANUP_FD = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0)
		return err_set(err, errno, "%s: cannot make %s", what, path);
	bool good = write_bundle(home, run, out, err) && (fsync(out) == 0 || err_set(err, errno, "%s: %s", what, path));
	if (!good)
		(void)unlink(path);
	return good;
}
