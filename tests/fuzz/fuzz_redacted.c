/*
 * Records that are redacted: what comes out is a canonical object with the same columns, and holds nothing that matches.
 */
#include "base/jcs.h"
#include "fuzz.h"
#include "ledger/record.h"
#include "ledger/redacted.h"

/* In no name of a member, and in no word that stands in place of what was withheld. */
static const char *const pattern = "Q+";

static struct redactor *redactor;

static void prepare(void)
{
	redactor = redactor_new(&pattern, 1, NULL);
	need(redactor);
}

PREPARE_BY(prepare)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const kept[] = {"class", "how", "kind", "result", "schema", "seq"};
	CLEANUP_BUF struct buf out = {.limit = RECORD_SIZE_LIMIT}, again = {.limit = RECORD_SIZE_LIMIT};
	const struct bytes record = {(const char *)data, size};

	if (size == 0 || size > RECORD_SIZE_LIMIT || data[0] != '{' || !jcs_is_canonical(record) ||
	    redact_record(redactor, record, NULL, &out) != REDACTED_SOME)
		return 0;
	need(jcs_is_canonical(buf_bytes(&out)));
	need(jcs_member(buf_bytes(&out), "withheld").data);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		need(bytes_equal(jcs_member(buf_bytes(&out), kept[i]), jcs_member(record, kept[i])));
	/* What stands in place of a secret may stand behind an option, and so be withheld again; no letter Q is left to be. */
	(void)redact_record(redactor, buf_bytes(&out), NULL, &again);
	need(again.size <= RECORD_SIZE_LIMIT);
	return 0;
}
