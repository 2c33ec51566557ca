#include "report.h"
#include "named.h"

#include <inttypes.h>

#include "base/text.h"
#include "effect_text.h"
#include "ledger/claim.h"
#include "render.h"

bool report_may_be_delegated(struct bytes json)
{
	/* Inside a JSON string the quotes would be escaped, so that no path can look like the key. */
	static const char plain[] = "\"delegated\":", base64[] = "\"delegated_b64\":";
	return json.size > 0 && (memmem(json.data, json.size, plain, sizeof(plain) - 1) ||
				 memmem(json.data, json.size, base64, sizeof(base64) - 1));
}

struct loading {
	struct report *report;
	struct buf copy; /* of the last record: when the run was cut off, its time is the end */
	struct err *err;
};

static void add_gap(struct report *report, const struct document *gap)
{
	const char *code = document_text(gap, "code");
	unsigned at = 0;
	while (at < GAP_CODE_COUNT && (!code || strcmp(gap_code_name((enum gap_code)at), code) != 0))
		at++;
	uint64_t amount = 0;
	document_uint(gap, "count", &amount);
	report->gaps++;
	report->gap_records[at]++;
	report->gap_amounts[at] += amount;
}

static void count_effect(struct report *report, const struct record_head *head, struct bytes json)
{
	report->effects++;
	report->by_kind[head->kind < EFFECT_KIND_COUNT ? head->kind : EFFECT_KIND_COUNT]++;
	report->by_how[head->how < HOW_COUNT ? head->how : HOW_COUNT]++;
	report->by_state[head->state <= RESULT_REFUSED ? head->state : RESULT_UNKNOWN]++;
	report->delegated += report_may_be_delegated(json);
	report->class = claim_weaker(report->class, claim_effect_class(claim_class_recorded(json), head->how));
}

static bool load_record(void *context, uint64_t seq, const struct record_head *head, struct bytes json)
{
	struct loading *loading = context;
	struct report *report = loading->report;
	(void)seq;
	buf_reset(&loading->copy);
	buf_append_bytes(&loading->copy, json);
	if (head->type == RECORD_effect) {
		count_effect(report, head, json);
		return true;
	}
	if (head->type == RECORD_process || head->type == RECORD_gap)
		report->class = claim_weaker(report->class, claim_class_recorded(json));
	if (head->type == RECORD_process) {
		report->processes++;
		return true;
	}
	if (head->type != RECORD_run_start && head->type != RECORD_run_end && head->type != RECORD_gap)
		return true;
	struct document *document = document_parse(json, loading->err);
	if (!document)
		return false;
	if (head->type == RECORD_run_start && !report->start) {
		report->start = document;
	} else if (head->type == RECORD_run_end && !report->end) {
		report->end = document;
	} else {
		if (head->type == RECORD_gap)
			add_gap(report, document);
		document_free(document);
	}
	return true;
}

bool report_load(struct report *report, const char *home, struct run *run, struct err *err)
{
	struct loading loading = {.report = report, .err = err, .copy = {.limit = 1 << 20}};
	*report = (struct report){.run = run_get_summary(run), .class = claim_class(CLAIM_count, CLASS_external)};
	report->short_id = run_short_id(home, report->run->id);
	bool good = run_visit(run, NULL, load_record, &loading, err) && !err_is_set(err);
	struct document *last = report->end;
	if (good && !last && loading.copy.size > 0)
		last = document_parse(buf_bytes(&loading.copy), NULL);
	document_uint(last, "mono_ns", &report->duration_ns);
	report->exposed = document_text(report->start, "key_exposed");
	/* What was asked for and for whom is the first record's to say. */
	report->class = claim_weaker(report->class, claim_class_named(document_text(report->start, "class")));
	if (last != report->end)
		document_free(last);
	buf_free(&loading.copy);
	if (!good)
		report_free(report);
	return good;
}

void report_free(struct report *report)
{
	document_free(report->start);
	document_free(report->end);
	report->start = report->end = NULL;
}

void report_state_text(struct buf *out, const struct report *report)
{
	const struct document *status = document_get(report->end, "status");
	if (status)
		effect_status_text(out, status);
	if (report->run->state == RUN_RUNNING) {
		buf_append_text(out, status ? ", still running" : "running");
	} else if (report->run->state == RUN_INCOMPLETE) {
		buf_append_text(out, status ? ", incomplete: " : "incomplete: ");
		text_for_terminal(out, bytes_of(report->run->reason));
	} else if (!status) {
		buf_append_text(out, "ended");
	}
}

void report_gaps_text(struct buf *out, const struct report *report)
{
	bool any = false;
	for (unsigned i = 0; i <= GAP_CODE_COUNT; i++) {
		if (!report->gap_records[i])
			continue;
		uint64_t amount = report->gap_amounts[i];
		if (amount < report->gap_records[i])
			amount = report->gap_records[i];
		buf_append_format(out, "%s%s %s", any ? ", " : "", gap_code_name((enum gap_code)i), render_times());
		render_count(out, amount);
		any = true;
	}
}

struct run *report_open(char *home, size_t home_size, const char *which)
{
	struct err err = {.number = 0};
	struct run *run = NULL;
	struct named_run named;
	if (named_run(which, &named, NULL, &err) && strlen(named.home) < home_size) {
		strcpy(home, named.home);
		run = run_open(home, named.id, &err);
	}
	/* Of a bundle too: what is open needs no name. */
	named_release(&named);
	if (!run)
		render_error(&err);
	return run;
}
