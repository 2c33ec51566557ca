/*
 * The signed frame of a run: its seal, and the certificates of its keys.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "ledger/host_log.h"
#include "verify_state.h"

/* Read whole, and bounded; 0 when there is no such file. */
static int read_file(const struct verifier *verifier, struct buf *out)
{
	char path[STORE_PATH_SIZE];

	if (!store_path(path, NULL, verifier->request->folder, STORE_SEAL, NULL))
		return -1;
	int fd CLEANUP_FD = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	struct stat status;
	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
		return -1;
	char *to = buf_reserve(out, NOTE_SIZE_LIMIT);
	ssize_t size = to ? fd_read_full(fd, to, NOTE_SIZE_LIMIT) : -1;
	if (size > 0)
		buf_commit(out, (size_t)size);
	return size > 0 ? 1 : -1;
}

static bool take_number(struct bytes *text, struct bytes word, uint64_t *out)
{
	if (!bytes_start_with(*text, word))
		return false;
	*text = (struct bytes){text->data + word.size, text->size - word.size};
	const char *blank = memchr(text->data, ' ', text->size);
	struct bytes number = {text->data, blank ? (size_t)(blank - text->data) : text->size};
	size_t used = number.size + (blank ? 1 : 0);
	*text = (struct bytes){text->data + used, text->size - used};
	return text_decimal_parse(number, out);
}

/* "seal" or "recovered N", and then perhaps "store SIZE DIGEST". */
static bool read_lines(struct seal *seal, const struct checkpoint *checkpoint)
{
	struct bytes first = checkpoint->extension_count > 0 ? checkpoint->extensions[0] : BYTES(""), second;

	if (checkpoint->extension_count < 1 || checkpoint->extension_count > 2)
		return false;
	seal->recovered = !bytes_equal(first, BYTES("seal"));
	if (seal->recovered && (!take_number(&first, BYTES("recovered "), &seal->covered) || first.size > 0))
		return false;
	if (checkpoint->extension_count == 1)
		return true;
	second = checkpoint->extensions[1];
	seal->has_store =
	    take_number(&second, BYTES("store "), &seal->store_size) && digest_parse(second, &seal->store);
	return seal->has_store;
}

bool seal_parse(struct bytes text, struct seal *out, struct err *err)
{
	struct checkpoint checkpoint;

	if (!note_parse(text, &out->note, err) || !checkpoint_parse(out->note.text, &checkpoint, err))
		return false;
	out->origin = checkpoint.origin;
	out->size = checkpoint.size;
	out->root = checkpoint.root;
	return read_lines(out, &checkpoint) || err_set(err, 0, "lines that no seal has");
}

bool verify_read_seal(struct verifier *verifier)
{
	struct seal *seal = &verifier->seal;
	struct err err = {.number = 0};

	seal->bytes.limit = 2 * NOTE_SIZE_LIMIT;
	int found = read_file(verifier, &seal->bytes);
	if (found < 0)
		return verify_fault(verifier, VERDICT_TAMPERED, "the seal is no file that can be read");
	if (found == 0)
		return true;
	if (!seal_parse(buf_bytes(&seal->bytes), seal, &err))
		return verify_fault(verifier, VERDICT_TAMPERED, "the seal: %s", err.text);
	if (!bytes_equal(seal->origin, bytes_of(verifier->origin)))
		return verify_fault(verifier, VERDICT_TAMPERED, "the seal is of another run");
	return seal->present = true;
}

static bool read_host_key(struct verifier *verifier, struct bytes text)
{
	CLEANUP_BUF struct buf key = {.limit = 64};

	if (!text_base64_parse(&key, text) || key.size != ED25519_KEY_SIZE)
		return verify_fault(verifier, VERDICT_TAMPERED, "the host's key is none");
	memcpy(verifier->host.bytes, key.data, ED25519_KEY_SIZE);
	return ed25519_fingerprint(&verifier->host, verifier->out->host_key) ||
	       verify_fault(verifier, VERDICT_UNREADABLE, "cannot hash");
}

static bool read_certificate(struct verifier *verifier, const char *use, struct bytes text)
{
	struct certificate certificate;
	struct err err = {.number = 0};

	if (!certificate_read(text, &certificate, &err))
		return verify_fault(verifier, VERDICT_TAMPERED, "certificate of the key %s: %s", use, err.text);
	if (strcmp(key_use_name(certificate.use), use) != 0)
		return verify_fault(verifier, VERDICT_TAMPERED, "certificate of the key %s: it is for the use %s", use,
				    key_use_name(certificate.use));
	if (strcmp(certificate.run, verifier->request->run) != 0)
		return verify_fault(verifier, VERDICT_TAMPERED, "certificate of the key %s: it is of another run", use);
	if (!certificate_verify(&certificate, &verifier->host))
		return verify_fault(verifier, VERDICT_TAMPERED,
				    "certificate of the key %s: the host's key did not sign it", use);
	verifier->keys[certificate.use] = certificate.key;
	memcpy(verifier->out->host, certificate.host, sizeof(certificate.host));
	return (ed25519_fingerprint(&certificate.key, verifier->fingerprints[certificate.use]) &&
		digest_of(text, &verifier->certificates[certificate.use])) ||
	       verify_fault(verifier, VERDICT_UNREADABLE, "cannot hash");
}

bool verify_documents(struct verifier *verifier)
{
	static const char prefix[] = "certificate/";
	sqlite3_stmt *row = NULL;
	unsigned found = 0;
	int step = SQLITE_ERROR;
	bool good = true;

	/* The host's key first. */
	if (sqlite3_prepare_v2(verifier->db, "SELECT name, bytes FROM documents ORDER BY name DESC", -1, &row, NULL) ==
	    SQLITE_OK)
		while (good && (step = sqlite3_step(row)) == SQLITE_ROW) {
			const char *name = (const char *)sqlite3_column_text(row, 0);
			struct bytes text = {sqlite3_column_blob(row, 1), (size_t)sqlite3_column_bytes(row, 1)};
			if (name && found == 0 && strcmp(name, "host-key") == 0)
				good = read_host_key(verifier, text);
			else if (name && found > 0 && strncmp(name, prefix, sizeof(prefix) - 1) == 0)
				good = read_certificate(verifier, name + sizeof(prefix) - 1, text);
			else
				good = verify_fault(verifier, VERDICT_TAMPERED,
						    "documents that no run has, or none that it must have");
			found++;
		}
	sqlite3_finalize(row);
	if (good && step != SQLITE_DONE)
		return verify_fault_sqlite(verifier);
	/* Each certificate is of the use of its name, and names are unique: four are one of each. */
	return good && (found == 1 + USE_COUNT ||
			verify_fault(verifier, VERDICT_TAMPERED, "a certificate of the run's keys is missing"));
}

bool verify_seal_signature(struct verifier *verifier)
{
	struct seal *seal = &verifier->seal;
	char host[HOST_NAME_SIZE];
	struct note_key key = {bytes_of(verifier->origin), NOTE_ED25519, verifier->keys[USE_ledger]};

	if (!seal->present)
		return true;
	if (seal->recovered) {
		if (!host_name_of(&verifier->host, host))
			return verify_fault(verifier, VERDICT_UNREADABLE, "cannot hash");
		key.name = bytes_of(host);
		key.key = verifier->host;
	}
	if (seal->note.count != 1)
		return verify_fault(verifier, VERDICT_TAMPERED, "the seal: signatures that no seal has");
	switch (note_verify(&seal->note, &key)) {
	case NOTE_GOOD:
		verifier->out->sealed = true;
		verifier->out->recovered = seal->recovered;
		return true;
	case NOTE_UNKNOWN:
		return verify_fault(verifier, VERDICT_TAMPERED, "the seal is signed by another key than the run's");
	default:
		return verify_fault(verifier, VERDICT_TAMPERED, "the seal: its signature does not hold");
	}
}

/* A log beside a file at rest would change what others read of it; anything else has no business there. */
bool verify_folder(struct verifier *verifier)
{
	static const char *const names[] = {STORE_FILE, STORE_LOCK, STORE_SEAL};
	static const char *const more[] = {STORE_FILE "-wal", STORE_FILE "-shm", STORE_RESERVE};
	DIR *folder = opendir(verifier->request->folder);
	bool good = folder != NULL;

	for (struct dirent *entry; good && (entry = readdir(folder));) {
		bool known = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			known = known || strcmp(entry->d_name, names[i]) == 0;
		for (size_t i = 0; !verifier->seal.has_store && i < sizeof(more) / sizeof(more[0]); i++)
			known = known || strcmp(entry->d_name, more[i]) == 0;
		if (!known)
			good = verify_fault(verifier, VERDICT_TAMPERED, "%s: a file that no %s run has", entry->d_name,
					    verifier->seal.has_store ? "sealed" : "");
	}
	if (folder)
		closedir(folder);
	return good || verify_fault(verifier, VERDICT_UNREADABLE, "%s: %s", verifier->request->folder, strerror(errno));
}

bool verify_store_bytes(struct verifier *verifier)
{
	struct err err = {.number = 0};
	struct digest found;
	uint64_t size;

	if (!verifier->seal.has_store && !verifier->shown.present)
		return true;
	int fd CLEANUP_FD = open(verifier->file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || !digest_of_file(fd, &found, &size, &err))
		return verify_fault(verifier, VERDICT_UNREADABLE, "%s: %s", verifier->file,
				    fd < 0 ? strerror(errno) : err.text);
	bool redacted = verifier->request->redaction.data != NULL;
	if (redacted && !verifier->shown.present)
		return true; /* nobody has said yet what they should be */
	if (size != (redacted ? verifier->shown.store_size : verifier->seal.store_size) ||
	    !digest_equal(&found, redacted ? &verifier->shown.store : &verifier->seal.store))
		return verify_fault(verifier, VERDICT_TAMPERED,
				    "%s: its bytes are not those that were sealed, outside of the records",
				    verifier->file);
	verifier->out->store_covered = true;
	return true;
}
