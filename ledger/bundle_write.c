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
#include "export_state.h"

static const char what[] = "export";

const char *bundle_part_name(enum bundle_part part)
{
	static const char *const names[BUNDLE_PARTS] = {"run.sqlite", "seal", "log", "redaction"};

	return (unsigned)part < BUNDLE_PARTS ? names[part] : "";
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
		json_text(&json, "name", bundle_part_name(parts[i].which));
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

/* ---- the parts ---- */

/* What goes into a bundle, and where from. */
struct bundling {
	const struct export_request *request;
	struct part parts[BUNDLE_PARTS];
	size_t count;
	int store, seal;             /* owned */
	struct buf log, redaction;   /* owned */
	char stage[STORE_PATH_SIZE]; /* the folder of a store that was written anew; empty without one */
};

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

static bool add_text(struct bundling *bundling, enum bundle_part which, const struct buf *text, struct err *err)
{
	struct part *part = &bundling->parts[bundling->count++];

	*part = (struct part){.which = which, .size = text->size};
	return digest_of(buf_bytes(text), &part->digest) || err_set(err, 0, "%s: cannot hash", what);
}

/* A copy of the store without what is withheld, and what is signed of it. */
static bool redact_parts(struct bundling *bundling, struct err *err)
{
	const struct export_request *request = bundling->request;
	struct redaction redaction = {.count = 0};
	struct verification found;
	char path[STORE_PATH_SIZE];

	if (!export_check(request, what, &found, err))
		return false;
	struct ed25519_secret *host = export_key(request, what, &found, err);
	redaction.root = found.root;
	redaction.size = found.records;
	bool good = host && stage_make(bundling->stage, sizeof(bundling->stage), err) &&
		    store_path(path, err, bundling->stage, STORE_FILE, NULL) &&
		    redact_store(request, path, &redaction, err) &&
		    redact_sign(request->run, &redaction, host, &bundling->redaction, err);
	buf_free(&redaction.records);
	ed25519_free(host);
	return good;
}

static bool collect(struct bundling *bundling, struct err *err)
{
	const struct export_request *request = bundling->request;
	char folder[STORE_PATH_SIZE];

	if (!run_folder(request->home, request->run, folder, sizeof(folder)))
		return err_set(err, ENAMETOOLONG, "%s", what);
	if (request->redactor && !redact_parts(bundling, err))
		return false;
	bundling->count = 2;
	bundling->parts[1].which = BUNDLE_SEAL;
	bundling->seal = open_part(folder, STORE_SEAL, &bundling->parts[1], err);
	bundling->store = bundling->seal < 0 ? -1
					     : open_part(request->redactor ? bundling->stage : folder, STORE_FILE,
							 &bundling->parts[0], err);
	if (bundling->store < 0) {
		if (err && err->number == ENOENT)
			err_hint(err, "only a sealed run can be exported; close it first: assure recover %s",
				 request->run);
		return false;
	}
	if (!extract_log(request->home, request->run, &bundling->log))
		buf_reset(&bundling->log);
	else if (!add_text(bundling, BUNDLE_LOG, &bundling->log, err))
		return false;
	if (request->redactor && bundling->log.size > 0 && redact_finds(request->redactor, buf_bytes(&bundling->log)))
		return err_set(err, 0, "%s: the host log's reason matches, and it stands in what is signed", what);
	return !request->redactor || add_text(bundling, BUNDLE_REDACTION, &bundling->redaction, err);
}

/* ---- the file ---- */

static bool write_all(int out, const struct buf *header, const struct bundling *bundling, struct err *err)
{
	const struct buf *log = &bundling->log, *redaction = &bundling->redaction;

	return (fd_write_full(out, header->data, header->size) && fd_copy(bundling->store, out) &&
		fd_copy(bundling->seal, out) && (log->size == 0 || fd_write_full(out, log->data, log->size)) &&
		(redaction->size == 0 || fd_write_full(out, redaction->data, redaction->size))) ||
	       err_set(err, errno, "%s: writing", what);
}

static bool write_bundle(const struct export_request *request, int out, struct err *err)
{
	CLEANUP_BUF struct buf header = {.limit = BUNDLE_HEADER_LIMIT};
	struct bundling bundling = {.request = request,
				    .store = -1,
				    .seal = -1,
				    .log = {.limit = BUNDLE_LOG_LIMIT},
				    .redaction = {.limit = BUNDLE_REDACTION_LIMIT}};
	bool good = collect(&bundling, err);

	if (good) {
		bundle_header(&header, request->run, bundling.parts, bundling.count);
		buf_append_char(&header, '\n');
		good = header.failed ? err_set(err, ENOMEM, "%s", what) : write_all(out, &header, &bundling, err);
	}
	fd_close(&bundling.store);
	fd_close(&bundling.seal);
	buf_free(&bundling.log);
	buf_free(&bundling.redaction);
	if (bundling.stage[0])
		(void)store_remove_folder(bundling.stage, NULL);
	return good;
}

bool bundle_write(const struct export_request *request, const char *path, struct err *err)
{
	if (strcmp(path, "-") == 0)
		return write_bundle(request, STDOUT_FILENO, err);
	int out CLEANUP_FD = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0)
		return err_set(err, errno, "%s: cannot make %s", what, path);
	bool good = write_bundle(request, out, err) && (fsync(out) == 0 || err_set(err, errno, "%s: %s", what, path));
	if (!good)
		(void)unlink(path);
	return good;
}
