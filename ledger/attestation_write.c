/*
 * The two statements of an attestation, and their signatures.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "attestation_state.h"
#include "base/clock.h"
#include "base/envelope.h"
#include "base/fd.h"
#include "base/note.h"
#include "base/text.h"
#include "export_state.h"
#include "ledger/receipt.h"
#include "verify_state.h"

static const char what[] = "attestation";

/* What stands in every attestation of a run, however little the reader knows of it. */
static const char *const not_proven[] = {
    "which bytes a file had before the end of the run, or that only the run wrote them",
    "what came or went through descriptors that the run began with",
    "that the records are true: whoever can use the host's key can make whole runs",
    "that this is the only run of this name: only the host log shows that",
};

struct attestation {
	const struct export_request *request;
	struct verification found;
	struct trace trace;
	struct produced_counts files;
	struct buf seal, certificate, subjects; /* owned */
};

/* ---- what both statements share ---- */

static void write_root_subject(struct json *json, const struct verification *found)
{
	CLEANUP_BUF struct buf root = {.limit = 2 * DIGEST_SIZE}, name = {.limit = 64};

	text_hex(&root, digest_bytes(&found->root));
	buf_append_format(&name, "assure.run/%s", found->run);
	json_begin_object(json, NULL);
	json_begin_object(json, "digest");
	json_word(json, ROOT_DIGEST, buf_bytes(&root));
	json_end_object(json);
	json_word(json, "name", buf_bytes(&name));
	json_end_object(json);
}

static void write_store_subject(struct json *json, const struct digest *store)
{
	CLEANUP_BUF struct buf hex = {.limit = 2 * DIGEST_SIZE};

	text_hex(&hex, digest_bytes(store));
	json_begin_object(json, NULL);
	json_begin_object(json, "digest");
	json_word(json, "sha256", buf_bytes(&hex));
	json_end_object(json);
	json_text(json, "name", STORE_FILE);
	json_end_object(json);
}

static bool collect_subjects(struct attestation *attestation, struct err *err)
{
	struct json json;
	struct seal seal = {.present = true};
	bool good = seal_parse(buf_bytes(&attestation->seal), &seal, err);

	note_free(&seal.note);
	if (!good)
		return false;
	json_start(&json, &attestation->subjects);
	json_begin_array(&json, NULL);
	write_root_subject(&json, &attestation->found);
	if (seal.has_store)
		write_store_subject(&json, &seal.store);
	good = produced_hash(attestation->trace.produced, attestation->trace.ended_ns, attestation->trace.weakest,
			     &json, &attestation->files, err);
	json_end_array(&json);
	return good;
}

static void write_left_out(struct json *json, const struct trace *trace)
{
	json_begin_object(json, "left_out");
	json_uint(json, "fileAccess", trace->parts[TRACE_FILES].left_out);
	json_uint(json, "network", trace->parts[TRACE_NETWORK].left_out);
	json_uint(json, "process", trace->parts[TRACE_PROCESSES].left_out);
	json_end_object(json);
}

static void write_exposed(struct json *json, const struct verification *found)
{
	if (found->exposed[0])
		json_text(json, "key_exposed", found->exposed);
}

/* ---- what was traced ---- */

static void write_monitor(struct json *json, const struct attestation *attestation)
{
	struct bytes first = buf_bytes(&attestation->trace.first);

	json_begin_object(json, "monitor");
	json_begin_object(json, "tracePolicy");
	json_text(json, "class", record_class_name(attestation->trace.weakest));
	json_bool(json, "complete", attestation->found.complete && !attestation->found.recovered);
	json_text(json, "digests", "at export");
	write_exposed(json, &attestation->found);
	write_left_out(json, &attestation->trace);
	json_value(json, "lens", jcs_member(first, "lens"));
	json_value(json, "results", jcs_member(first, "results"));
	json_text(json, "signed", EXPORT_SIGNED);
	json_bool(json, "synchronous", true);
	json_end_object(json);
	json_text(json, "type", "assure:monitor/v1");
	json_end_object(json);
}

static void write_trace(struct json *json, const struct attestation *attestation)
{
	const struct trace *trace = &attestation->trace;
	CLEANUP_BUF struct buf host = {.limit = 128};

	buf_append_format(&host, "assure:host/%s", attestation->found.host_key);
	json_begin_object(json, "metadata");
	json_text(json, "buildFinishedOn", trace->ended);
	json_value(json, "buildStartedOn", jcs_member(buf_bytes(&trace->first), "time"));
	json_end_object(json);
	write_monitor(json, attestation);
	json_begin_object(json, "monitorLog");
	json_value(json, "fileAccess", buf_bytes(&trace->parts[TRACE_FILES].text));
	json_value(json, "network", buf_bytes(&trace->parts[TRACE_NETWORK].text));
	json_value(json, "process", buf_bytes(&trace->parts[TRACE_PROCESSES].text));
	json_end_object(json);
	json_begin_object(json, "monitoredProcess");
	json_text(json, "event", attestation->found.run);
	json_word(json, "hostID", buf_bytes(&host));
	json_text(json, "type", "assure:process-tree/v1");
	json_end_object(json);
}

/* ---- what is proven ---- */

static void write_claims(struct json *json, enum record_class weakest)
{
	static const struct {
		enum claim claim;
		const char *name, *says;
	} claims[] = {
#define CLAIM(identifier, class, meaning) {CLAIM_##identifier, #identifier, meaning},
#include "claims.def"
#undef CLAIM
	};

	json_begin_array(json, "claims");
	for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
		/* Which runs there were on the host is said by its log alone. */
		if (claims[i].claim == CLAIM_log)
			continue;
		json_begin_object(json, NULL);
		json_text(json, "claim", claims[i].name);
		json_text(json, "class", record_class_name(claim_class(claims[i].claim, weakest)));
		json_text(json, "says", claims[i].says);
		json_end_object(json);
	}
	json_end_array(json);
}

static void write_counts(struct json *json, const struct trace *trace)
{
	json_begin_object(json, "counts");
	json_uint(json, "effects", trace->effects);
	json_uint(json, "gaps", trace->gaps);
	json_uint(json, "processes", trace->processes);
	json_uint(json, "records", trace->records);
	json_end_object(json);
}

static void write_files(struct json *json, const struct produced_counts *files)
{
	json_begin_object(json, "files");
	json_uint(json, "changed", files->changed);
	json_uint(json, "gone", files->gone);
	json_uint(json, "hashed", files->hashed);
	json_uint(json, "over_limit", files->over_limit);
	json_uint(json, "unprovable", files->unprovable);
	json_uint(json, "unreadable", files->unreadable);
	json_uint(json, "written", files->written);
	json_end_object(json);
}

static void write_evidence(struct json *json, const struct attestation *attestation)
{
	const struct verification *found = &attestation->found;
	const struct trace *trace = &attestation->trace;
	char now[31];

	clock_rfc3339(clock_realtime_ns(), now);
	json_bytes(json, "certificate", buf_bytes(&attestation->certificate));
	write_claims(json, trace->weakest);
	json_bool(json, "complete", found->complete && !found->recovered);
	write_counts(json, trace);
	json_text(json, "exported_at", now);
	write_files(json, &attestation->files);
	json_bytes(json, "host", bytes_of(found->host));
	json_text(json, "host_key", found->host_key);
	write_exposed(json, found);
	write_left_out(json, trace);
	json_begin_array(json, "not_proven");
	for (size_t i = 0; i < sizeof(not_proven) / sizeof(not_proven[0]); i++)
		json_text(json, NULL, not_proven[i]);
	json_end_array(json);
	if (trace->reason.size > 0)
		json_value(json, "reason", buf_bytes(&trace->reason));
	json_bool(json, "recovered", found->recovered);
	json_text(json, "run", found->run);
	json_text(json, "schema", EVIDENCE_SCHEMA);
	json_bytes(json, "seal", buf_bytes(&attestation->seal));
	json_text(json, "signed", EXPORT_SIGNED);
	json_value(json, "version", jcs_member(buf_bytes(&trace->first), "version"));
}

/* ---- the file ---- */

static bool sign_statement(const struct attestation *attestation, const char *type,
			   void (*write)(struct json *json, const struct attestation *attestation),
			   const struct ed25519_secret *host, struct buf *out, struct err *err)
{
	CLEANUP_BUF struct buf payload = {.limit = ATTESTATION_PAYLOAD_SIZE};
	struct json json;

	json_start(&json, &payload);
	json_begin_object(&json, NULL);
	json_text(&json, "_type", STATEMENT_TYPE);
	json_begin_object(&json, "predicate");
	write(&json, attestation);
	json_end_object(&json);
	json_text(&json, "predicateType", type);
	json_value(&json, "subject", buf_bytes(&attestation->subjects));
	json_end_object(&json);
	if (payload.failed)
		return err_set(err, 0, "%s: it would be too large", what);
	return export_sign(STATEMENT_MEDIA_TYPE, buf_bytes(&payload), host, out, err);
}

/* What was signed when the run was closed. */
static bool take_seal(struct attestation *attestation, struct err *err)
{
	const struct export_request *request = attestation->request;
	char folder[STORE_PATH_SIZE];

	if (!run_folder(request->home, request->run, folder, sizeof(folder)))
		return err_set(err, ENAMETOOLONG, "%s", what);
	int directory CLEANUP_FD = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char text[NOTE_SIZE_LIMIT];
	ssize_t size = fd_read_file(directory, STORE_SEAL, text, sizeof(text));
	if (size < 0)
		return err_set(err, errno, "%s: %s", what, STORE_SEAL);
	buf_append(&attestation->seal, text, (size_t)size);
	if (!receipt_certificate(request->home, request->run, &attestation->certificate, err))
		return false;
	attestation->certificate.size--; /* its line end */
	return true;
}

static bool make(struct attestation *attestation, struct buf *out, struct err *err)
{
	const struct export_request *request = attestation->request;

	if (!export_check(request, what, &attestation->found, err) || !take_seal(attestation, err))
		return false;
	struct ed25519_secret *host = export_key(request, what, &attestation->found, err);
	if (!host)
		return false;
	bool good = trace_read(request->home, request->run, &attestation->trace, err);
	if (good && attestation->trace.records != attestation->found.records)
		good = err_set(err, 0, "%s: the run was changed while it was read", what);
	good = good && collect_subjects(attestation, err) &&
	       sign_statement(attestation, PREDICATE_TRACE, write_trace, host, out, err) &&
	       sign_statement(attestation, PREDICATE_EVIDENCE, write_evidence, host, out, err);
	ed25519_free(host);
	trace_free(&attestation->trace);
	return good;
}

bool attestation_write(const struct export_request *request, const char *path, struct err *err)
{
	CLEANUP_BUF struct buf text = {.limit = 2 * DSSE_SIZE_LIMIT};
	struct attestation attestation = {.request = request,
					  .seal = {.limit = NOTE_SIZE_LIMIT},
					  .certificate = {.limit = CERTIFICATE_SIZE_LIMIT},
					  .subjects = {.limit = 2 * ATTESTATION_SUBJECTS_SIZE}};
	bool good = make(&attestation, &text, err);

	buf_free(&attestation.seal);
	buf_free(&attestation.certificate);
	buf_free(&attestation.subjects);
	if (!good)
		return false;
	if (strcmp(path, "-") == 0)
		return fd_write_full(STDOUT_FILENO, text.data, text.size) || err_set(err, errno, "%s: writing", what);
	int out CLEANUP_FD = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0)
		return err_set(err, errno, "%s: cannot make %s", what, path);
	good =
	    (fd_write_full(out, text.data, text.size) && fsync(out) == 0) || err_set(err, errno, "%s: %s", what, path);
	if (!good)
		(void)unlink(path);
	return good;
}
