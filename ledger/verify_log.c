/*
 * The host log: its own tree, and what it says of one run.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/jcs.h"
#include "base/text.h"
#include "ledger/host_log.h"
#include "verify_state.h"

enum { KEYS_MOST = 256 };

struct log_walk {
	sqlite3 *db;           /* owned */
	sqlite3_stmt *notes;   /* owned */
	struct hasher *hasher; /* owned */
	struct merkle tree;
	struct ed25519_key keys[KEYS_MOST]; /* of this host, the newest last */
	size_t key_count;
	char file[STORE_PATH_SIZE], why[768];
	enum verdict verdict;
	/* What is wanted of it. */
	struct verifier *verifier; /* a run to be compared, or NULL */
	unsigned starts, ends;
	struct bytes since; /* a head that must be its beginning; absent when none was given */
	struct checkpoint since_checkpoint;
	bool since_met;
};

static bool fault(struct log_walk *walk, enum verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool fault(struct log_walk *walk, enum verdict verdict, const char *format, ...)
{
	va_list arguments;

	if (walk->why[0])
		return false;
	walk->verdict = verdict;
	va_start(arguments, format);
	(void)vsnprintf(walk->why, sizeof(walk->why), format, arguments);
	va_end(arguments);
	return false;
}

static bool is_text(struct bytes value, const char *text)
{
	size_t size = strlen(text);

	return value.size == size + 2 && memcmp(value.data + 1, text, size) == 0;
}

static struct bytes unquoted(struct bytes value)
{
	return value.size < 2 ? BYTES_NONE : (struct bytes){value.data + 1, value.size - 2};
}

static bool is_base64(struct bytes value, const void *data, size_t size)
{
	CLEANUP_BUF struct buf bytes = {.limit = 256};

	return text_base64_parse(&bytes, unquoted(value)) && bytes.size == size && memcmp(bytes.data, data, size) == 0;
}

/* A key of this host. The first entry brings the first one, and each later one says whose place it takes. */
static bool take_key(struct log_walk *walk, struct bytes entry)
{
	CLEANUP_BUF struct buf bytes = {.limit = 64};
	char fingerprint[ED25519_FINGERPRINT_SIZE], before[ED25519_FINGERPRINT_SIZE] = "";
	struct bytes replaces = jcs_member(entry, "replaces");
	bool first = walk->key_count == 0;

	if (walk->key_count == KEYS_MOST || !text_base64_parse(&bytes, unquoted(jcs_member(entry, "public_key"))) ||
	    bytes.size != ED25519_KEY_SIZE)
		return false;
	struct ed25519_key *key = &walk->keys[walk->key_count];
	memcpy(key->bytes, bytes.data, ED25519_KEY_SIZE);
	if (!ed25519_fingerprint(key, fingerprint) || !is_text(jcs_member(entry, "fingerprint"), fingerprint))
		return false;
	if (!first && !ed25519_fingerprint(&walk->keys[walk->key_count - 1], before))
		return false;
	if (first ? replaces.data != NULL : !is_text(replaces, before))
		return false;
	walk->key_count++;
	return true;
}

static bool compare_start(struct log_walk *walk, struct bytes entry)
{
	struct verifier *verifier = walk->verifier;
	struct bytes keys = jcs_member(entry, "keys"), certificates = jcs_member(entry, "certificates");

	walk->starts++;
	for (unsigned i = 0; i < USE_COUNT; i++) {
		char digest[DIGEST_TEXT_SIZE];
		const char *use = key_use_name((enum key_use)i);
		digest_text(&verifier->certificates[i], digest);
		if (!is_text(jcs_member(keys, use), verifier->fingerprints[i]) ||
		    !is_text(jcs_member(certificates, use), digest))
			return fault(walk, VERDICT_TAMPERED, "the host log knows this run with other keys");
	}
	return true;
}

static bool compare_end(struct log_walk *walk, struct bytes entry, bool recovery)
{
	struct verifier *verifier = walk->verifier;
	const struct seal *seal = &verifier->seal;
	struct bytes store = jcs_member(entry, "store");
	char digest[DIGEST_TEXT_SIZE];
	uint64_t size;

	/* A seal that came between closing and a recovery would be two ends. */
	if (++walk->ends > 1)
		return fault(walk, VERDICT_TAMPERED, "the host log knows two ends of this run");
	if (!seal->present)
		return fault(walk, VERDICT_TAMPERED, "the host log has seen the seal of this run, which is not there");
	digest_text(&seal->store, digest);
	if (recovery != seal->recovered || !text_decimal_parse(jcs_member(entry, "size"), &size) ||
	    size != seal->size || !is_base64(jcs_member(entry, "root"), seal->root.bytes, DIGEST_SIZE) ||
	    (!recovery && bytes_equal(jcs_member(entry, "complete"), BYTES("true")) != verifier->out->complete) ||
	    (store.data != NULL) != seal->has_store || (seal->has_store && !is_text(store, digest)))
		return fault(walk, VERDICT_TAMPERED, "the host log knows another seal of this run");
	return true;
}

static bool take_event(struct log_walk *walk, struct bytes entry)
{
	struct bytes event = jcs_member(entry, "event");

	if (is_text(event, "key"))
		return take_key(walk, entry);
	if (walk->key_count == 0)
		return false;
	if (!walk->verifier || !is_text(jcs_member(entry, "run"), walk->verifier->request->run))
		return true;
	if (is_text(event, "start"))
		return compare_start(walk, entry);
	if (is_text(event, "seal") || is_text(event, "recovery"))
		return compare_end(walk, entry, is_text(event, "recovery"));
	return true;
}

/* The checkpoint that came with the entry; one that replaces a key is signed by the key before. */
static bool check_head(struct log_walk *walk, size_t signer)
{
	char name[HOST_NAME_SIZE];
	struct checkpoint checkpoint;
	struct digest root;
	struct note note;

	if (sqlite3_step(walk->notes) != SQLITE_ROW || !host_name_of(&walk->keys[signer], name))
		return false;
	struct bytes text = {sqlite3_column_blob(walk->notes, 1), (size_t)sqlite3_column_bytes(walk->notes, 1)};
	const struct note_key key = {bytes_of(name), NOTE_ED25519, walk->keys[signer]};
	bool good = (uint64_t)sqlite3_column_int64(walk->notes, 0) == walk->tree.size && note_parse(text, &note, NULL);
	if (!good)
		return false;
	good = checkpoint_parse(note.text, &checkpoint, NULL) && checkpoint.extension_count == 0 && note.count == 1 &&
	       bytes_equal(checkpoint.origin, key.name) && checkpoint.size == walk->tree.size &&
	       note_verify(&note, &key) == NOTE_GOOD && merkle_root(&walk->tree, walk->hasher, &root) &&
	       digest_equal(&root, &checkpoint.root);
	if (good && walk->since.data && walk->since_checkpoint.size == walk->tree.size)
		walk->since_met = digest_equal(&root, &walk->since_checkpoint.root);
	note_free(&note);
	return good;
}

static bool take_entry(struct log_walk *walk, uint64_t seq, struct bytes entry)
{
	struct digest root, leaf;
	uint64_t said;
	size_t signer = walk->key_count > 0 ? walk->key_count - 1 : 0;

	if (seq != walk->tree.size)
		return fault(walk, VERDICT_TAMPERED, "entry %" PRIu64 " of the host log is missing", walk->tree.size);
	bool good = jcs_is_canonical(entry) && is_text(jcs_member(entry, "schema"), "assure.log/1") &&
		    text_decimal_parse(jcs_member(entry, "seq"), &said) && said == seq &&
		    merkle_root(&walk->tree, walk->hasher, &root) &&
		    is_base64(jcs_member(entry, "previous"), root.bytes, DIGEST_SIZE) &&
		    merkle_leaf(walk->hasher, entry, &leaf) && merkle_append(&walk->tree, walk->hasher, &leaf) &&
		    take_event(walk, entry) && check_head(walk, signer);
	return good || fault(walk, VERDICT_TAMPERED, "entry %" PRIu64 " of the host log was changed", seq);
}

static bool open_log(struct log_walk *walk, const char *home, bool *there)
{
	struct stat status;
	struct err err = {.number = 0};
	int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOMUTEX;

	*there = store_path(walk->file, NULL, home, HOST_LOG_FILE, NULL) && lstat(walk->file, &status) == 0;
	if (!*there)
		return true;
	walk->hasher = hasher_new(&err);
	if (!walk->hasher)
		return fault(walk, VERDICT_UNREADABLE, "%s", err.text);
	if (sqlite3_open_v2(walk->file, &walk->db, flags, NULL) != SQLITE_OK)
		return fault(walk, VERDICT_UNREADABLE, "%s: %s", walk->file, sqlite3_errmsg(walk->db));
	sqlite3_busy_timeout(walk->db, 5000);
	sqlite3_db_config(walk->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_db_config(walk->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(walk->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	return true;
}

static bool same_column(sqlite3_stmt *row, int column, struct bytes member)
{
	const char *text = (const char *)sqlite3_column_text(row, column);

	return member.data ? text && is_text(member, text) : text == NULL;
}

/* By the columns beside an entry others choose, and with the parts the next one is appended: they say what the entry says. */
static bool check_row(struct log_walk *walk, sqlite3_stmt *row, struct bytes entry)
{
	size_t size = walk->tree.count * (size_t)DIGEST_SIZE;
	struct digest leaf;

	return (same_column(row, 2, jcs_member(entry, "run")) && same_column(row, 3, jcs_member(entry, "event")) &&
		sqlite3_column_bytes(row, 4) == DIGEST_SIZE && merkle_leaf(walk->hasher, entry, &leaf) &&
		memcmp(sqlite3_column_blob(row, 4), leaf.bytes, DIGEST_SIZE) == 0 &&
		(size_t)sqlite3_column_bytes(walk->notes, 2) == size &&
		memcmp(sqlite3_column_blob(walk->notes, 2), walk->tree.parts, size) == 0) ||
	       fault(walk, VERDICT_TAMPERED, "what stands beside entry %" PRIu64 " of the host log was changed",
		     walk->tree.size - 1);
}

static bool check_log_tables(struct log_walk *walk)
{
	static const char sql[] = "SELECT group_concat(type || ' ' || name) FROM (SELECT type, name FROM sqlite_schema"
				  " WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name)";
	sqlite3_stmt *row = NULL;
	bool read = sqlite3_prepare_v2(walk->db, sql, -1, &row, NULL) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW;
	const char *found = read ? (const char *)sqlite3_column_text(row, 0) : NULL;
	bool good = found && strcmp(found, "index by_run,table checkpoints,table entries") == 0;

	sqlite3_finalize(row);
	if (!read)
		return fault(walk, VERDICT_UNREADABLE, "%s: %s", walk->file, sqlite3_errmsg(walk->db));
	return good || fault(walk, VERDICT_TAMPERED, "the host log holds other tables than a log's");
}

static bool walk_log(struct log_walk *walk)
{
	if (!check_log_tables(walk))
		return false;
	sqlite3_stmt *row = NULL;
	int step = SQLITE_ERROR;
	/* One view of both tables, also while others append. */
	bool good = sqlite3_exec(walk->db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK &&
		    sqlite3_prepare_v2(walk->db, "SELECT seq, json, run, event, leaf FROM entries ORDER BY seq", -1,
				       &row, NULL) == SQLITE_OK &&
		    sqlite3_prepare_v2(walk->db, "SELECT size, note, parts FROM checkpoints ORDER BY size", -1,
				       &walk->notes, NULL) == SQLITE_OK;
	bool whole = good;

	while (whole && (step = sqlite3_step(row)) == SQLITE_ROW) {
		struct bytes entry = {sqlite3_column_blob(row, 1), (size_t)sqlite3_column_bytes(row, 1)};
		whole = take_entry(walk, (uint64_t)sqlite3_column_int64(row, 0), entry) && check_row(walk, row, entry);
	}
	if (!good || (whole && step != SQLITE_DONE))
		whole = fault(walk, VERDICT_UNREADABLE, "%s: %s", walk->file, sqlite3_errmsg(walk->db));
	if (whole && sqlite3_step(walk->notes) == SQLITE_ROW)
		whole = fault(walk, VERDICT_TAMPERED, "the end of the host log is missing: its last head has more");
	sqlite3_finalize(row);
	return whole;
}

static void close_log(struct log_walk *walk)
{
	sqlite3_finalize(walk->notes);
	sqlite3_close(walk->db);
	hasher_free(walk->hasher);
	free(walk);
}

bool verify_against_log(struct verifier *verifier)
{
	struct verification *out = verifier->out;
	struct log_walk *walk = calloc(1, sizeof(*walk));
	bool there = false, ours = false;

	if (!walk)
		return verify_fault(verifier, VERDICT_UNREADABLE, "not enough memory");
	walk->verifier = verifier;
	bool good =
	    !verifier->request->home || (open_log(walk, verifier->request->home, &there) && (!there || walk_log(walk)));
	for (size_t i = 0; i < walk->key_count; i++)
		ours = ours || memcmp(walk->keys[i].bytes, verifier->host.bytes, ED25519_KEY_SIZE) == 0;
	if (!good) {
		verify_fault(verifier, walk->verdict, "%s", walk->why);
	} else if (there && !ours && walk->starts > 0) {
		good = verify_fault(verifier, VERDICT_TAMPERED, "the host log knows this run by another host's key");
	} else if (there && ours) {
		/* A run of this host: then the log must know it, and how it ended. */
		out->in_log = verifier->of_this_host = walk->starts == 1;
		if (walk->starts != 1)
			good = verify_fault(verifier, VERDICT_TAMPERED,
					    walk->starts == 0 ? "the host log does not know this run"
							      : "the host log has seen this run begin twice");
		else if (verifier->seal.present && walk->ends == 0 && !store_is_locked(verifier->request->folder))
			good =
			    verify_fault(verifier, VERDICT_TAMPERED, "the host log has not seen the seal of this run");
	}
	close_log(walk);
	return good;
}

/* The checkpoint of an extract: of the host that certified the run's keys. */
static bool read_extract_head(struct log_walk *walk, json_t *extract, struct checkpoint *out, struct note *note)
{
	json_t *text = json_object_get(extract, "checkpoint");
	char name[HOST_NAME_SIZE];

	if (!json_is_string(text) || !host_name_of(&walk->keys[0], name))
		return false;
	const struct note_key key = {bytes_of(name), NOTE_ED25519, walk->keys[0]};
	return note_parse((struct bytes){json_string_value(text), json_string_length(text)}, note, NULL) &&
	       checkpoint_parse(note->text, out, NULL) && out->extension_count == 0 && note->count == 1 &&
	       bytes_equal(out->origin, key.name) && note_verify(note, &key) == NOTE_GOOD;
}

static bool read_proof(json_t *from, struct merkle_proof *out)
{
	size_t count = json_array_size(from);

	out->count = 0;
	if (count > MERKLE_LEVELS)
		return false;
	for (size_t i = 0; i < count; i++) {
		CLEANUP_BUF struct buf bytes = {.limit = 64};
		if (!text_base64_parse(&bytes, bytes_of(json_string_value(json_array_get(from, i)))) ||
		    bytes.size != DIGEST_SIZE)
			return false;
		memcpy(out->steps[out->count++].bytes, bytes.data, DIGEST_SIZE);
	}
	return true;
}

static bool take_extract_entry(struct log_walk *walk, json_t *entry, json_t *proof, const struct checkpoint *head)
{
	struct bytes text = {json_string_value(entry), json_string_length(entry)};
	uint64_t index = (uint64_t)json_integer_value(json_object_get(proof, "index")), said;
	struct merkle_proof steps;
	struct digest leaf;

	return json_is_string(entry) && jcs_is_canonical(text) && text_decimal_parse(jcs_member(text, "seq"), &said) &&
	       said == index && is_text(jcs_member(text, "run"), walk->verifier->request->run) &&
	       read_proof(json_object_get(proof, "proof"), &steps) && merkle_leaf(walk->hasher, text, &leaf) &&
	       merkle_check_leaf(walk->hasher, &steps, index, head->size, &leaf, &head->root) && take_event(walk, text);
}

static bool walk_extract(struct log_walk *walk, json_t *extract)
{
	struct checkpoint head;
	struct note note = {.count = 0};
	json_t *entries = json_object_get(extract, "entries"), *proofs = json_object_get(extract, "proofs");
	size_t count = json_array_size(entries);
	/* Its four members and nothing else, as many proofs as entries. */
	bool good = json_object_size(extract) == 4 && count == json_array_size(proofs) &&
		    read_extract_head(walk, extract, &head, &note);

	for (size_t i = 0; good && i < count; i++)
		good = json_object_size(json_array_get(proofs, i)) == 2 &&
		       take_extract_entry(walk, json_array_get(entries, i), json_array_get(proofs, i), &head);
	note_free(&note);
	return good;
}

bool verify_against_extract(struct verifier *verifier)
{
	struct bytes text = verifier->request->log;
	struct err err = {.number = 0};

	if (!text.data)
		return true;
	struct log_walk *walk = calloc(1, sizeof(*walk));
	if (!walk || !(walk->hasher = hasher_new(&err))) {
		free(walk);
		return verify_fault(verifier, VERDICT_UNREADABLE, "cannot hash");
	}
	walk->verifier = verifier;
	walk->keys[walk->key_count++] = verifier->host;
	json_t *extract = jcs_is_canonical(text) && is_text(jcs_member(text, "schema"), "assure.log-extract/1")
			      ? json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, NULL)
			      : NULL;
	bool good = walk_extract(walk, extract) && walk->starts == 1 && walk->ends == 1;
	if (!good)
		verify_fault(verifier, VERDICT_TAMPERED, "%s",
			     walk->why[0] ? walk->why : "what the bundle brings of the host log was changed");
	json_decref(extract);
	verifier->out->in_log = verifier->out->in_log || good;
	close_log(walk);
	return good;
}

static bool take_since(struct log_walk *walk, struct bytes since, struct note *note)
{
	walk->since = since;
	if (!since.data)
		return true;
	return (note_parse(since, note, NULL) && checkpoint_parse(note->text, &walk->since_checkpoint, NULL)) ||
	       fault(walk, VERDICT_UNREADABLE, "the head that was given is none");
}

static uint64_t count(struct log_walk *walk, const char *sql)
{
	sqlite3_stmt *row = NULL;
	uint64_t found = 0;

	if (sqlite3_prepare_v2(walk->db, sql, -1, &row, NULL) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW)
		found = (uint64_t)sqlite3_column_int64(row, 0);
	sqlite3_finalize(row);
	return found;
}

#define NEVER_ENDED                                                                                  \
	"FROM entries WHERE event = 'start' AND run NOT IN (SELECT run FROM entries WHERE event IN " \
	"('seal', 'recovery', 'discard'))"

static void summarise(struct log_walk *walk, log_open_run visit, void *context, struct log_verification *out)
{
	CLEANUP_BUF struct buf text = {.limit = 128};
	sqlite3_stmt *row = NULL;
	struct digest root;

	out->entries = walk->tree.size;
	out->runs = count(walk, "SELECT count(*) FROM entries WHERE event = 'start'");
	out->never_ended = count(walk, "SELECT count(*) " NEVER_ENDED);
	if (merkle_root(&walk->tree, walk->hasher, &root)) {
		text_hex(&text, digest_bytes(&root));
		memcpy(out->head, text.data, sizeof(out->head) - 1);
	}
	if (visit &&
	    sqlite3_prepare_v2(walk->db, "SELECT run " NEVER_ENDED " ORDER BY seq", -1, &row, NULL) == SQLITE_OK)
		while (sqlite3_step(row) == SQLITE_ROW)
			visit(context, (const char *)sqlite3_column_text(row, 0));
	sqlite3_finalize(row);
}

void verify_log(const char *home, struct bytes since, log_open_run visit, void *context, struct log_verification *out)
{
	struct log_walk *walk = calloc(1, sizeof(*walk));
	struct note note = {.count = 0};
	bool there = false;

	*out = (struct log_verification){.verdict = VERDICT_UNREADABLE};
	if (!walk)
		return;
	bool good = take_since(walk, since, &note) && open_log(walk, home, &there);
	if (good && !there)
		good = fault(walk, VERDICT_UNREADABLE, "this host has no log yet: it begins with the first run");
	good = good && walk_log(walk);
	if (good && since.data && !walk->since_met)
		good = fault(walk, VERDICT_TAMPERED,
			     "the head that was given is not of this log: it was replaced, or its end removed");
	if (good)
		summarise(walk, visit, context, out);
	out->verdict = good ? VERDICT_INTACT : walk->verdict;
	(void)snprintf(out->why, sizeof(out->why), "%s", walk->why);
	note_free(&note);
	close_log(walk);
}
