#include "ledger/receipt.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#include "base/fd.h"
#include "base/merkle.h"
#include "base/note.h"
#include "base/text.h"
#include "store_read.h"

static const char what[] = "receipt";

struct receipt {
	sqlite3 *db; /* borrowed */
	sqlite3_stmt *leaf;
	struct buf note; /* the checkpoint as it was signed */
	struct checkpoint checkpoint;
	const char *file;
};

static bool give_leaf(void *context, uint64_t index, struct digest *out)
{
	struct receipt *receipt = context;

	sqlite3_bind_int64(receipt->leaf, 1, (sqlite3_int64)index);
	bool good = sqlite3_step(receipt->leaf) == SQLITE_ROW && sqlite3_column_bytes(receipt->leaf, 0) == DIGEST_SIZE;
	if (good)
		memcpy(out->bytes, sqlite3_column_blob(receipt->leaf, 0), DIGEST_SIZE);
	sqlite3_reset(receipt->leaf);
	return good;
}

/* One value of a table as bytes. */
static bool fetch(sqlite3 *db, const char *sql, uint64_t number, struct buf *out)
{
	sqlite3_stmt *row = NULL;
	bool good = sqlite3_prepare_v2(db, sql, -1, &row, NULL) == SQLITE_OK;

	if (good) {
		sqlite3_bind_int64(row, 1, (sqlite3_int64)number);
		good = sqlite3_step(row) == SQLITE_ROW;
	}
	if (good)
		buf_append(out, sqlite3_column_blob(row, 0), (size_t)sqlite3_column_bytes(row, 0));
	sqlite3_finalize(row);
	return good && !out->failed;
}

static bool find_checkpoint(struct receipt *receipt, const char *folder, uint64_t seq, struct err *err)
{
	char text[NOTE_SIZE_LIMIT];
	struct note note;
	int directory CLEANUP_FD = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ssize_t size = directory < 0 ? -1 : fd_read_file(directory, STORE_SEAL, text, sizeof(text));

	if (size >= 0)
		buf_append(&receipt->note, text, (size_t)size);
	else if (!fetch(receipt->db, "SELECT note FROM checkpoints WHERE size > ? ORDER BY size LIMIT 1", seq,
			&receipt->note))
		return err_set(err, 0, "%s: no checkpoint covers record %" PRIu64, what, seq);
	bool good =
	    note_parse(buf_bytes(&receipt->note), &note, err) && checkpoint_parse(note.text, &receipt->checkpoint, err);
	note_free(&note);
	if (good && seq >= receipt->checkpoint.size)
		good = err_set(err, 0, "%s: there is no record %" PRIu64, what, seq);
	return good;
}

static bool write_proof(struct receipt *receipt, uint64_t seq, struct bytes record, struct buf *out, struct err *err)
{
	struct hasher *hasher = hasher_new(err);
	struct merkle_proof proof;
	struct digest leaf;
	bool good = hasher && merkle_prove_leaf(hasher, give_leaf, receipt, seq, receipt->checkpoint.size, &proof) &&
		    merkle_leaf(hasher, record, &leaf);

	if (good &&
	    !merkle_check_leaf(hasher, &proof, seq, receipt->checkpoint.size, &leaf, &receipt->checkpoint.root)) {
		err_set(err, 0, "%s: the record is not in the tree that was signed", what);
		good = err_hint(err, "see what is wrong with the run: assure verify");
	} else if (!good) {
		err_set(err, 0, "%s: %s: leaves are missing", what, receipt->file);
	}
	hasher_free(hasher);
	if (!good)
		return false;
	buf_append_text(out, "c2sp.org/tlog-proof@v1\nextra ");
	text_base64(out, record);
	buf_append_format(out, "\nindex %" PRIu64 "\n", seq);
	for (unsigned i = 0; i < proof.count; i++) {
		text_base64(out, digest_bytes(&proof.steps[i]));
		buf_append_char(out, '\n');
	}
	buf_append_char(out, '\n');
	buf_append_bytes(out, buf_bytes(&receipt->note));
	return !out->failed || err_set(err, ENOMEM, "%s", what);
}

bool receipt_make(const char *home, const char *run, uint64_t seq, struct buf *out, struct err *err)
{
	CLEANUP_BUF struct buf record = {.limit = RECORD_SIZE_LIMIT + 1};
	struct receipt receipt = {.note = {.limit = NOTE_SIZE_LIMIT}};
	char folder[STORE_PATH_SIZE];
	struct run *opened = run_open(home, run, err);

	if (!opened)
		return false;
	receipt.db = run_database(opened, &receipt.file);
	bool good = run_folder(home, run, folder, sizeof(folder)) && find_checkpoint(&receipt, folder, seq, err);
	if (good && (!fetch(receipt.db, "SELECT json FROM records WHERE seq = ?", seq, &record) ||
		     sqlite3_prepare_v2(receipt.db, "SELECT leaf FROM records WHERE seq = ?", -1, &receipt.leaf,
					NULL) != SQLITE_OK))
		good = err_set(err, 0, "%s: there is no record %" PRIu64, what, seq);
	good = good && write_proof(&receipt, seq, buf_bytes(&record), out, err);
	sqlite3_finalize(receipt.leaf);
	buf_free(&receipt.note);
	run_close(opened);
	return good;
}

bool receipt_certificate(const char *home, const char *run, struct buf *out, struct err *err)
{
	const char *file;
	struct run *opened = run_open(home, run, err);

	if (!opened)
		return false;
	bool good = fetch(run_database(opened, &file), "SELECT bytes FROM documents WHERE name = 'certificate/ledger'",
			  0, out) ||
		    err_set(err, 0, "%s: %s holds no certificate", what, file);
	run_close(opened);
	buf_append_char(out, '\n');
	return good;
}
