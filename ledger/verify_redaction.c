/*
 * A bundle in which values are withheld: what its host says of that, and each record against it.
 */
#include <inttypes.h>

#include "base/envelope.h"
#include "base/jcs.h"
#include "base/text.h"
#include "export_state.h"
#include "verify_state.h"

static bool is_text(struct bytes value, const char *wanted)
{
	CLEANUP_BUF struct buf text = {.limit = 256};

	return jcs_string(value, &text) && bytes_equal(buf_bytes(&text), bytes_of(wanted));
}

static bool take_root(struct bytes value, struct digest *out)
{
	CLEANUP_BUF struct buf text = {.limit = 64}, root = {.limit = 64};

	if (!jcs_string(value, &text) || !text_base64_parse(&root, buf_bytes(&text)) || root.size != DIGEST_SIZE)
		return false;
	memcpy(out->bytes, root.data, DIGEST_SIZE);
	return true;
}

static bool take_digest(struct bytes value, struct digest *out)
{
	CLEANUP_BUF struct buf text = {.limit = 128};

	return jcs_string(value, &text) && digest_parse(buf_bytes(&text), out);
}

static bool take_payload(struct verifier *verifier, struct bytes payload)
{
	struct shown *shown = &verifier->shown;
	const struct seal *seal = &verifier->seal;
	struct digest root;
	uint64_t size;

	if (!jcs_is_canonical(payload) || !is_text(jcs_member(payload, "schema"), REDACTION_SCHEMA) ||
	    !take_root(jcs_member(payload, "root"), &root) || !take_root(jcs_member(payload, "shown"), &shown->root) ||
	    !text_decimal_parse(jcs_member(payload, "size"), &size) ||
	    !text_decimal_parse(jcs_member(payload, "count"), &shown->count) ||
	    !text_decimal_parse(jcs_member(payload, "store_size"), &shown->store_size) ||
	    !take_digest(jcs_member(payload, "store"), &shown->store) || !jcs_member(payload, "records").data)
		return verify_fault(verifier, VERDICT_TAMPERED, "what it says of its redaction has not its form");
	if (!is_text(jcs_member(payload, "run"), verifier->request->run) || !seal->present || size != seal->size ||
	    !digest_equal(&root, &seal->root))
		return verify_fault(verifier, VERDICT_TAMPERED, "its redaction is one of another run");
	buf_append_bytes(&shown->records, jcs_member(payload, "records"));
	shown->rest = buf_bytes(&shown->records);
	/* Before the end of the list stands a stretch, or nothing at all. */
	if (bytes_equal(shown->rest, BYTES("[]")))
		shown->rest = BYTES("]");
	verifier->out->is_redacted = true;
	return shown->present = !shown->records.failed;
}

bool verify_redaction(struct verifier *verifier)
{
	struct bytes text = verifier->request->redaction;
	struct err err = {.number = 0};
	struct dsse dsse;

	if (!text.data)
		return true;
	verifier->shown.records.limit = DSSE_SIZE_LIMIT;
	if (text.size == 0 || text.data[text.size - 1] != '\n')
		return verify_fault(verifier, VERDICT_TAMPERED, "what it says of its redaction has no end");
	bool good = dsse_parse((struct bytes){text.data, text.size - 1}, &dsse, &err);
	if (!good)
		verify_fault(verifier, VERDICT_TAMPERED, "what it says of its redaction: %s", err.text);
	else if (dsse.count != 1 || !dsse_verify(&dsse, &verifier->host) ||
		 !bytes_equal(dsse.type, BYTES(REDACTION_MEDIA_TYPE)))
		good = verify_fault(verifier, VERDICT_TAMPERED, "the host's signature of its redaction does not hold");
	good = good && take_payload(verifier, buf_bytes(&dsse.payload));
	dsse_free(&dsse);
	return good;
}

/* The next stretch of records; `none` when there is no other. */
static bool next_stretch(struct verifier *verifier)
{
	struct shown *shown = &verifier->shown;
	struct bytes pair, first, last;

	if (shown->rest.size <= 1) {
		shown->none = true;
		return true;
	}
	uint64_t after = shown->last;
	bool good = jcs_element(&shown->rest, &pair) && jcs_element(&pair, &first) && jcs_element(&pair, &last) &&
		    bytes_equal(pair, BYTES("]")) && text_decimal_parse(first, &shown->first) &&
		    text_decimal_parse(last, &shown->last) && shown->first <= shown->last &&
		    (!shown->any || shown->first > after + 1) && shown->last < verifier->seal.size;
	shown->any = true;
	return good || verify_fault(verifier, VERDICT_TAMPERED, "the list of its redacted records is none");
}

bool verify_shown(struct verifier *verifier, uint64_t seq, const struct digest *leaf, bool differs)
{
	struct shown *shown = &verifier->shown;

	if (!merkle_append(&shown->tree, verifier->hasher, leaf))
		return verify_fault(verifier, VERDICT_UNREADABLE, "cannot hash");
	while (!shown->none && (!shown->any || seq > shown->last))
		if (!next_stretch(verifier))
			return false;
	bool listed = !shown->none && seq >= shown->first;
	if (listed && !differs)
		return verify_fault_at(verifier, seq, "record %" PRIu64 " is listed as redacted, and is not", seq);
	if (!listed && differs)
		return verify_fault_at(verifier, seq, "record %" PRIu64 " was changed", seq);
	verifier->out->redacted += listed;
	return true;
}

bool verify_shown_root(struct verifier *verifier)
{
	struct shown *shown = &verifier->shown;
	struct digest root;

	if (!shown->present)
		return true;
	if (!merkle_root(&shown->tree, verifier->hasher, &root))
		return verify_fault(verifier, VERDICT_UNREADABLE, "cannot hash");
	if (!digest_equal(&root, &shown->root) || verifier->out->redacted != shown->count || shown->rest.size > 1)
		return verify_fault(verifier, VERDICT_TAMPERED, "what is shown is not what its host redacted");
	return true;
}
