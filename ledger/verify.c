#include "ledger/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "ledger/host_log.h"
#include "store_read.h"
#include "verify_state.h"

const char *verdict_name(enum verdict verdict)
{
	static const char *const names[] = {"intact", "tampered", "incomplete", "unreadable", "unknown key"};

	return (unsigned)verdict < sizeof(names) / sizeof(names[0]) ? names[verdict] : "unknown";
}

static void __attribute__((format(printf, 3, 0)))
say(struct verifier *verifier, enum verdict verdict, const char *format, va_list arguments)
{
	if (verifier->out->why[0])
		return;
	verifier->out->verdict = verdict;
	(void)vsnprintf(verifier->out->why, sizeof(verifier->out->why), format, arguments);
}

bool verify_fault(struct verifier *verifier, enum verdict verdict, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(verifier, verdict, format, arguments);
	va_end(arguments);
	return false;
}

bool verify_fault_at(struct verifier *verifier, uint64_t seq, const char *format, ...)
{
	va_list arguments;

	if (!verifier->out->why[0]) {
		verifier->out->has_seq = true;
		verifier->out->seq = seq;
	}
	va_start(arguments, format);
	say(verifier, VERDICT_TAMPERED, format, arguments);
	va_end(arguments);
	return false;
}

bool verify_fault_sqlite(struct verifier *verifier)
{
	/* A file whose bytes are not those of the seal was changed, whatever has become of it. */
	if (verifier->seal.has_store && !verify_store_bytes(verifier))
		return false;
	return verify_fault(verifier, VERDICT_UNREADABLE, "%s: %s", verifier->file,
			    verifier->db ? sqlite3_errmsg(verifier->db) : "out of memory");
}

/* A run that was not brought to rest is read as every reader does, with the log beside it. */
static bool open_unsealed(struct verifier *verifier)
{
	struct err err = {.number = 0};
	const char *file;

	verifier->run = run_open_folder(verifier->request->folder, verifier->request->run, &err);
	if (!verifier->run)
		return verify_fault(verifier, VERDICT_UNREADABLE, "%s", err.text);
	verifier->db = run_database(verifier->run, &file);
	return true;
}

/* As it stands, without its log, when the seal says what it is: what a log beside it would add is not sealed. */
static bool open_sealed(struct verifier *verifier)
{
	CLEANUP_BUF struct buf uri = {.limit = 4 * STORE_PATH_SIZE};
	int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI;

	store_uri(verifier->file, "immutable=1", &uri);
	if (uri.failed || sqlite3_open_v2(uri.data, &verifier->db, flags, NULL) != SQLITE_OK)
		return verify_fault_sqlite(verifier);
	sqlite3_busy_timeout(verifier->db, 5000);
	/* Only tables are read, and nothing that the file says is run. */
	sqlite3_db_config(verifier->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_db_config(verifier->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(verifier->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	return true;
}

static bool check_version(struct verifier *verifier)
{
	sqlite3_stmt *row = NULL;
	int version = 0;
	bool good = sqlite3_prepare_v2(verifier->db, "PRAGMA user_version", -1, &row, NULL) == SQLITE_OK &&
		    sqlite3_step(row) == SQLITE_ROW;

	if (good)
		version = sqlite3_column_int(row, 0);
	sqlite3_finalize(row);
	if (!good)
		return verify_fault_sqlite(verifier);
	if (version > STORE_SCHEMA && verifier->seal.has_store && !verify_store_bytes(verifier))
		return false;
	if (version > STORE_SCHEMA)
		return verify_fault(verifier, VERDICT_UNREADABLE, "%s: written by a newer assure", verifier->file);
	verifier->has_blobs = version >= SCHEMA_BLOBS;
	return version >= SCHEMA_SEALED ||
	       verify_fault(verifier, VERDICT_UNREADABLE, "%s: written by an assure that did not sign records",
			    verifier->file);
}

static bool open_store(struct verifier *verifier)
{
	struct stat status;

	if (!store_path(verifier->file, NULL, verifier->request->folder, STORE_FILE, NULL) ||
	    lstat(verifier->file, &status) != 0 || !S_ISREG(status.st_mode))
		return verify_fault(verifier, VERDICT_UNREADABLE, "%s: there is no such file", verifier->file);
	return (verifier->seal.has_store ? open_sealed(verifier) : open_unsealed(verifier)) && check_version(verifier);
}

static bool is_named(const struct verifier *verifier)
{
	const struct verify_request *request = verifier->request;

	for (size_t i = 0; i < request->key_count; i++)
		if (strcmp(request->keys[i], verifier->out->host_key) == 0)
			return true;
	/* The log was verified: the key that it knows the run by is one of its own. */
	return request->key_count == 0 && verifier->of_this_host;
}

static void conclude(struct verifier *verifier)
{
	struct verification *out = verifier->out;

	if (!is_named(verifier)) {
		verify_fault(verifier, VERDICT_UNKNOWN_KEY,
			     "signed by %s, which is not one of the keys that were named", out->host_key);
	} else if (out->recovered) {
		verify_fault(verifier, VERDICT_INCOMPLETE,
			     "recovered: its own key had signed %llu of its records; what came last may be missing",
			     (unsigned long long)verifier->seal.covered);
	} else if (!out->sealed) {
		verify_fault(verifier, VERDICT_INCOMPLETE,
			     store_is_locked(verifier->request->folder)
				 ? "it is still running"
				 : "it was never sealed: its scribe ended early");
	} else if (!out->complete) {
		/* The reason is the record's, and was taken with it. */
		out->verdict = VERDICT_INCOMPLETE;
	} else {
		out->verdict = VERDICT_INTACT;
	}
}

static void run_steps(struct verifier *verifier)
{
	static bool (*const steps[])(struct verifier *) = {
	    verify_read_seal,      open_store,         verify_tables,          verify_documents,
	    verify_seal_signature, verify_redaction,   verify_folder,          verify_records,
	    verify_store_bytes,    verify_against_log, verify_against_extract,
	};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (!steps[i](verifier))
			return;
	conclude(verifier);
}

void verify_run(const struct verify_request *request, struct verification *out)
{
	struct verifier verifier = {.request = request, .out = out};
	struct err err = {.number = 0};

	*out = (struct verification){.verdict = VERDICT_UNREADABLE};
	(void)snprintf(out->run, sizeof(out->run), "%s", request->run);
	(void)snprintf(verifier.origin, sizeof(verifier.origin), "assure.run/%s", request->run);
	verifier.hasher = hasher_new(&err);
	if (verifier.hasher)
		run_steps(&verifier);
	else
		verify_fault(&verifier, VERDICT_UNREADABLE, "%s", err.text);
	if (verifier.run)
		run_close(verifier.run);
	else
		sqlite3_close(verifier.db);
	hasher_free(verifier.hasher);
	note_free(&verifier.seal.note);
	buf_free(&verifier.seal.bytes);
	buf_free(&verifier.shown.records);
}
