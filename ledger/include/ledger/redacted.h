/*
 * Records as others may see them (specs/LEDGER.md section 9, Redacted).
 */
#pragma once

#include "base/redact.h"

/*
 * Does something match in the blob of this digest (a JSON string, as records have it)? Then the record is shown without it.
 * `what` gets the bits of what was found.
 */
struct redact_blobs {
	bool (*matches)(void *context, struct bytes digest, redactions *what);
	void *context;
};

/*
 * Append a record as others may see it; `blobs` may be NULL: then those that it names are not asked about. REDACTED_FAILED:
 * it would be longer than records may be, with what stands in place of what is withheld; or it is none.
 */
enum redacted { REDACTED_NOTHING, REDACTED_SOME, REDACTED_FAILED };
enum redacted redact_record(const struct redactor *redactor, struct bytes record, const struct redact_blobs *blobs,
			    struct buf *out);
/* Does something match in a blob? A list has a NUL behind each of its elements. */
bool redact_blob(const struct redactor *redactor, struct bytes blob, redactions *what);
/* The same for a value by itself; false when it may be shown. */
bool redact_value(const struct redactor *redactor, struct bytes text, struct buf *out);
/* Does something match in a document that is shown as it is: a certificate, what the host log says? */
bool redact_finds(const struct redactor *redactor, struct bytes document);
