/*
 * Does an attestation say what its host signed? Nothing of a payload is looked at before its signature holds.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "attestation_state.h"
#include "base/envelope.h"
#include "base/fd.h"
#include "base/note.h"
#include "base/text.h"
#include "ledger/host_log.h"
#include "verify_state.h"

enum statement { STATEMENT_TRACE, STATEMENT_EVIDENCE, STATEMENT_COUNT };

static const char *const predicates[STATEMENT_COUNT] = {PREDICATE_TRACE, PREDICATE_EVIDENCE};

struct reading {
	struct verification *out;
	struct ed25519_key host;
	bool any, seen[STATEMENT_COUNT];
	struct buf subjects; /* owned: of the first statement */
};

static bool __attribute__((format(printf, 2, 3))) fault(struct reading *reading, const char *format, ...)
{
	va_list arguments;

	reading->out->verdict = VERDICT_TAMPERED;
	va_start(arguments, format);
	(void)vsnprintf(reading->out->why, sizeof(reading->out->why), format, arguments);
	va_end(arguments);
	return false;
}

/* A member that is a string of so many characters at most. */
static bool take_text(struct bytes object, const char *key, char *out, size_t size)
{
	CLEANUP_BUF struct buf text = {.limit = 1 << 16};

	if (!jcs_string(jcs_member(object, key), &text) || text.size >= size)
		return false;
	struct bytes plain = buf_bytes(&text);
	if (memchr(plain.data, '\0', plain.size))
		return false;
	memcpy(out, plain.data, plain.size);
	out[plain.size] = '\0';
	return true;
}

static bool is_text(struct bytes value, const char *wanted)
{
	CLEANUP_BUF struct buf text = {.limit = 256};

	return jcs_string(value, &text) && bytes_equal(buf_bytes(&text), bytes_of(wanted));
}

static bool take_run(struct reading *reading, struct bytes object, const char *key)
{
	return take_text(object, key, reading->out->run, sizeof(reading->out->run)) &&
	       store_is_run_id(reading->out->run);
}

/* ---- subjects ---- */

static bool is_digest(struct bytes subject, const char *algorithm, const struct digest *digest)
{
	CLEANUP_BUF struct buf hex = {.limit = 2 * DIGEST_SIZE};

	text_hex(&hex, digest_bytes(digest));
	return !hex.failed && is_text(jcs_member(jcs_member(subject, "digest"), algorithm), hex.data);
}

/* The run and its store are what the seal says; the others are counted. */
static bool check_subjects(struct reading *reading, const struct seal *seal)
{
	struct bytes rest = buf_bytes(&reading->subjects), subject;
	char name[64];

	(void)snprintf(name, sizeof(name), "assure.run/%s", reading->out->run);
	if (!jcs_element(&rest, &subject) || !is_text(jcs_member(subject, "name"), name) ||
	    !is_digest(subject, ROOT_DIGEST, &seal->root))
		return fault(reading, "its first subject is not the root that was sealed");
	if (seal->has_store && (!jcs_element(&rest, &subject) || !is_text(jcs_member(subject, "name"), "run.sqlite") ||
				!is_digest(subject, "sha256", &seal->store)))
		return fault(reading, "its second subject is not the store that was sealed");
	while (jcs_element(&rest, &subject))
		reading->out->files++;
	return true;
}

/* ---- what is proven ---- */

static bool check_certificate(struct reading *reading, struct bytes predicate, struct ed25519_key *ledger)
{
	CLEANUP_BUF struct buf text = {.limit = CERTIFICATE_SIZE_LIMIT};
	struct certificate found;

	if (!jcs_string(jcs_member(predicate, "certificate"), &text) ||
	    !certificate_read(buf_bytes(&text), &found, NULL) || !certificate_verify(&found, &reading->host) ||
	    found.use != USE_ledger || strcmp(found.run, reading->out->run) != 0)
		return fault(reading, "the certificate of the run's key is not one of this run by its host");
	memcpy(reading->out->host, found.host, sizeof(found.host));
	*ledger = found.key;
	return true;
}

/* The views of `seal` lie in `text`. */
static bool check_seal(struct reading *reading, struct bytes predicate, struct buf *text, struct seal *seal)
{
	char origin[sizeof("assure.run/") + RUN_ID_SIZE], host[HOST_NAME_SIZE];
	struct note_key key = {.algorithm = NOTE_ED25519};

	(void)snprintf(origin, sizeof(origin), "assure.run/%s", reading->out->run);
	key.name = bytes_of(origin);
	if (!check_certificate(reading, predicate, &key.key))
		return false;
	if (!jcs_string(jcs_member(predicate, "seal"), text) || !seal_parse(buf_bytes(text), seal, NULL))
		return fault(reading, "the seal in it is none");
	if (!bytes_equal(seal->origin, bytes_of(origin)))
		return fault(reading, "the seal in it is of another run");
	if (seal->recovered) {
		if (!host_name_of(&reading->host, host))
			return fault(reading, "cannot hash");
		key = (struct note_key){bytes_of(host), NOTE_ED25519, reading->host};
	}
	return (seal->note.count == 1 && note_verify(&seal->note, &key) == NOTE_GOOD) ||
	       fault(reading, "the seal in it is not signed by the run's key");
}

/* What the statement says of the end, against what was sealed. */
static bool check_end(struct reading *reading, struct bytes predicate, const struct seal *seal)
{
	struct verification *out = reading->out;
	struct bytes complete = jcs_member(predicate, "complete"), recovered = jcs_member(predicate, "recovered");

	out->recovered = seal->recovered;
	out->complete = bytes_equal(complete, BYTES("true"));
	if ((!out->complete && !bytes_equal(complete, BYTES("false"))) || (out->complete && seal->recovered) ||
	    !bytes_equal(recovered, seal->recovered ? BYTES("true") : BYTES("false")) || seal->size != out->records)
		return fault(reading, "what it says of the run's end is not what was sealed");
	if (!out->complete && !take_text(predicate, "reason", out->why, sizeof(out->why)))
		(void)snprintf(out->why, sizeof(out->why), "it is not complete");
	out->covered = seal->size;
	out->root = seal->root;
	out->store_covered = seal->has_store;
	return out->sealed = true;
}

static bool take_evidence(struct reading *reading, struct bytes predicate)
{
	CLEANUP_BUF struct buf text = {.limit = NOTE_SIZE_LIMIT};
	struct verification *out = reading->out;
	struct bytes counts = jcs_member(predicate, "counts"), exposed = jcs_member(predicate, "key_exposed");
	struct seal seal = {.present = true};

	if (!is_text(jcs_member(predicate, "schema"), EVIDENCE_SCHEMA) ||
	    !is_text(jcs_member(predicate, "host_key"), out->host_key) || !take_run(reading, predicate, "run") ||
	    !text_decimal_parse(jcs_member(counts, "records"), &out->records) ||
	    !text_decimal_parse(jcs_member(counts, "effects"), &out->effects) ||
	    (exposed.data && !take_text(predicate, "key_exposed", out->exposed, sizeof(out->exposed))))
		return fault(reading, "its statement has not its form");
	bool good = check_seal(reading, predicate, &text, &seal) && check_subjects(reading, &seal) &&
		    check_end(reading, predicate, &seal);
	note_free(&seal.note);
	return good;
}

/* The trace names its run itself, so that both lines are of one. */
static bool take_trace(struct reading *reading, struct bytes predicate)
{
	struct bytes policy = jcs_member(jcs_member(predicate, "monitor"), "tracePolicy");

	if (!take_run(reading, jcs_member(predicate, "monitoredProcess"), "event") ||
	    !take_text(policy, "class", reading->out->class, sizeof(reading->out->class)))
		return fault(reading, "its statement has not its form");
	return true;
}

/* ---- one line ---- */

static bool take_payload(struct reading *reading, struct bytes payload)
{
	struct bytes predicate = jcs_member(payload, "predicate"), subjects = jcs_member(payload, "subject");
	struct bytes type = jcs_member(payload, "predicateType");
	char run[RUN_ID_SIZE];
	size_t which = 0;

	memcpy(run, reading->out->run, sizeof(run));
	if (!jcs_is_canonical(payload) || !is_text(jcs_member(payload, "_type"), STATEMENT_TYPE))
		return fault(reading, "its payload is no statement in canonical form");
	while (which < STATEMENT_COUNT && !is_text(type, predicates[which]))
		which++;
	if (which == STATEMENT_COUNT || reading->seen[which])
		return fault(reading, "a statement of another kind, or one twice");
	if (reading->any && !bytes_equal(subjects, buf_bytes(&reading->subjects)))
		return fault(reading, "its statements have other subjects");
	buf_reset(&reading->subjects);
	buf_append_bytes(&reading->subjects, subjects);
	if (reading->subjects.failed || subjects.size == 0)
		return fault(reading, "its statement has no subjects");
	bool other = reading->any;
	reading->any = reading->seen[which] = true;
	if (!(which == STATEMENT_TRACE ? take_trace : take_evidence)(reading, predicate))
		return false;
	return !other || strcmp(run, reading->out->run) == 0 || fault(reading, "its statements are of two runs");
}

static bool check_signature(struct reading *reading, const struct dsse *dsse)
{
	struct verification *out = reading->out;
	char name[HOST_NAME_SIZE];
	struct note_key key;

	if (dsse->count != 1 || !note_key_parse(dsse->signatures[0].key_id, &key) || key.algorithm != NOTE_ED25519 ||
	    !host_name_of(&key.key, name) || !bytes_equal(key.name, bytes_of(name)) ||
	    !ed25519_fingerprint(&key.key, out->host_key))
		return fault(reading, "it does not name the key of a host that signed it");
	if (reading->any && memcmp(&key.key, &reading->host, sizeof(key.key)) != 0)
		return fault(reading, "its statements are signed by two hosts");
	reading->host = key.key;
	return dsse_verify(dsse, &key.key) || fault(reading, "the host's signature does not hold");
}

static bool take_line(struct reading *reading, struct bytes line)
{
	struct err err = {.number = 0};
	struct dsse dsse;
	bool good = dsse_parse(line, &dsse, &err) || fault(reading, "%s", err.text);

	good = good && check_signature(reading, &dsse);
	if (good && !bytes_equal(dsse.type, BYTES(STATEMENT_MEDIA_TYPE)))
		good = fault(reading, "its payload is of a kind that is not known");
	good = good && take_payload(reading, buf_bytes(&dsse.payload));
	dsse_free(&dsse);
	return good;
}

/* ---- the file ---- */

bool attestation_is(const char *path)
{
	static const char start[] = "{\"payload\":\"";
	char text[sizeof(start)];
	int fd CLEANUP_FD = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat status;

	return fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	       fd_read_full(fd, text, sizeof(start) - 1) == (ssize_t)sizeof(start) - 1 &&
	       memcmp(text, start, sizeof(start) - 1) == 0;
}

/* Whole, and bounded. */
static bool read_all(const char *path, struct buf *out)
{
	enum { MOST = STATEMENT_COUNT * (DSSE_SIZE_LIMIT + 1) };
	int fd CLEANUP_FD = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
		return false;
	size_t size = status.st_size < MOST ? (size_t)status.st_size : MOST;
	char *to = buf_reserve(out, size + 1);
	ssize_t got = to ? fd_read_full(fd, to, size + 1) : -1;
	if (got >= 0)
		buf_commit(out, (size_t)got);
	return got >= 0 && !out->failed;
}

static bool take_lines(struct reading *reading, struct bytes rest)
{
	while (rest.size > 0) {
		const char *end = memchr(rest.data, '\n', rest.size);
		if (!end)
			return fault(reading, "its last line has no end");
		size_t size = (size_t)(end - rest.data);
		if (!take_line(reading, (struct bytes){rest.data, size}))
			return false;
		rest = (struct bytes){end + 1, rest.size - size - 1};
	}
	return true;
}

struct key_search {
	const char *fingerprint;
	bool found;
};

static bool find_key(void *context, uint64_t seq, struct bytes json)
{
	struct key_search *search = context;

	(void)seq;
	search->found = is_text(jcs_member(json, "event"), host_event_name(HOST_EVENT_key)) &&
			is_text(jcs_member(json, "fingerprint"), search->fingerprint);
	return !search->found;
}

/* One of those that were named, else of those that this host's log has, when that holds. */
static bool is_believed(const struct verify_request *request, const char *fingerprint)
{
	struct key_search search = {.fingerprint = fingerprint};
	struct log_verification log;

	for (size_t i = 0; i < request->key_count; i++)
		if (strcmp(request->keys[i], fingerprint) == 0)
			return true;
	if (request->key_count > 0 || !request->home)
		return false;
	verify_log(request->home, BYTES_NONE, NULL, NULL, &log);
	struct host_log *opened = log.verdict == VERDICT_INTACT ? host_log_open(request->home, NULL) : NULL;
	bool good = opened && host_log_visit(opened, NULL, find_key, &search, NULL);
	host_log_close(opened);
	return good && search.found;
}

static void conclude(struct reading *reading, const struct verify_request *request)
{
	struct verification *out = reading->out;

	if (!is_believed(request, out->host_key)) {
		out->verdict = VERDICT_UNKNOWN_KEY;
		(void)snprintf(out->why, sizeof(out->why), "signed by %s, which is not one of the keys that were named",
			       out->host_key);
	} else if (!reading->seen[STATEMENT_EVIDENCE]) {
		out->verdict = VERDICT_INCOMPLETE;
		(void)snprintf(out->why, sizeof(out->why), "the statement of what was sealed is not here");
	} else {
		out->verdict = out->complete ? VERDICT_INTACT : VERDICT_INCOMPLETE;
	}
}

void attestation_verify(const char *path, const struct verify_request *request, struct verification *out)
{
	CLEANUP_BUF struct buf text = {.limit = 4 * DSSE_SIZE_LIMIT};
	struct reading reading = {.out = out, .subjects = {.limit = DSSE_SIZE_LIMIT}};

	*out = (struct verification){.verdict = VERDICT_UNREADABLE, .is_attestation = true};
	if (!read_all(path, &text))
		(void)snprintf(out->why, sizeof(out->why), "%s", strerror(errno));
	else if (take_lines(&reading, buf_bytes(&text)))
		conclude(&reading, request);
	buf_free(&reading.subjects);
}
