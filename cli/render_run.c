#include "render_run.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/text.h"
#include "effect_text.h"
#include "ledger/claim.h"
#include "render.h"
#include "report.h"

enum { SHOWN = 12, PLACES = 2048, KEPT = PLACES / 2 };

/* Why an effect is told; the lowest comes first. */
enum reason { REASON_SEVERE, REASON_DELEGATED, REASON_OUTSIDE, REASON_NETWORK, REASON_NONE };

struct line {
	char *text; /* owned; escaped: label, result and object */
	enum reason reason;
	size_t order;
	uint64_t times;
};

struct telling {
	struct line lines[KEPT];
	uint16_t places[PLACES]; /* index + 1 by hash of the text */
	size_t count;
	uint64_t not_kept;
	struct bytes cwd;
	struct buf below; /* the beginning of a path below it, as records spell it; empty when it cannot be told so */
	struct arena arena;
	struct buf text;
};

static bool changes_files(uint32_t kind)
{
	return kind != EFFECT_file_read && kind != EFFECT_file_map &&
	       kind <= EFFECT_node_create; /* effects.def begins with the file system */
}

/* Terminals and the bin are no news. */
static bool is_dull(struct bytes path)
{
	static const char *const dull[] = {"/dev/null", "/dev/tty", "/dev/ptmx", "/dev/zero", "/dev/full"};
	for (size_t i = 0; i < sizeof(dull) / sizeof(dull[0]); i++)
		if (bytes_equal(path, bytes_of(dull[i])))
			return true;
	return bytes_start_with(path, BYTES("/dev/pts/"));
}

static bool is_outside(struct telling *telling, const struct document *effect)
{
	struct bytes path = document_bytes(effect, "path", &telling->arena);
	struct bytes to = document_bytes(document_get(effect, "to"), "path", &telling->arena);
	bool outside = path.data && !is_dull(path) && !bytes_path_below(path, telling->cwd);
	return outside || (to.data && !bytes_path_below(to, telling->cwd));
}

/*
 * Most changes are made where the command was started, and are no news: told without parsing. Inside a JSON string the
 * quotes would be escaped, so that no name can look like a key.
 */
static bool is_plainly_inside(const struct telling *telling, struct bytes json)
{
	static const char path[] = "\"path\":", other[] = "\"path_b64\":";
	struct bytes below = buf_bytes(&telling->below);

	if (below.size == 0 || json.size == 0 || memmem(json.data, json.size, other, sizeof(other) - 1))
		return false;
	for (const char *at = json.data, *end = json.data + json.size;
	     (at = memmem(at, (size_t)(end - at), path, sizeof(path) - 1)); at += sizeof(path) - 1)
		if (!bytes_start_with((struct bytes){at, (size_t)(end - at)}, below))
			return false;
	return true;
}

/* `"path":"/the/folder/`, as the one writer of JSON spells it. */
static void spell_below(struct telling *telling)
{
	CLEANUP_BUF struct buf folder = {.limit = 1 << 16}, spelled = {.limit = 1 << 18};
	static const char beginning[] = "{\"path\":\"", end[] = "\"}";
	struct json json;

	buf_append_bytes(&folder, telling->cwd);
	buf_append_char(&folder, '/');
	json_start(&json, &spelled);
	json_begin_object(&json, NULL);
	json_bytes(&json, "path", buf_bytes(&folder));
	json_end_object(&json);
	struct bytes whole = buf_bytes(&spelled);
	if (telling->cwd.size > 1 && !spelled.failed && !folder.failed && bytes_start_with(whole, BYTES(beginning)))
		buf_append_bytes(&telling->below, (struct bytes){whole.data + 1, whole.size - sizeof(end)});
}

static enum reason reason_of(struct telling *telling, const struct record_head *head, const struct document *effect)
{
	if (effect_kind_severity((enum effect_kind)head->kind) == SEVERITY_high)
		return REASON_SEVERE;
	if (document_bytes(effect, "delegated", &telling->arena).data)
		return REASON_DELEGATED;
	if (changes_files(head->kind))
		return is_outside(telling, effect) ? REASON_OUTSIDE : REASON_NONE;
	return head->kind == EFFECT_net_connect ? REASON_NETWORK : REASON_NONE;
}

static uint64_t hash(struct bytes text)
{
	uint64_t value = 0xcbf29ce484222325ULL;
	for (size_t i = 0; i < text.size; i++)
		value = (value ^ (unsigned char)text.data[i]) * 0x100000001b3ULL;
	return value ^ value >> 29;
}

static void add_line(struct telling *telling, struct bytes text, enum reason reason)
{
	size_t at = (size_t)hash(text) % PLACES;
	for (; telling->places[at]; at = (at + 1) % PLACES) {
		struct line *line = &telling->lines[telling->places[at] - 1];
		if (bytes_equal(bytes_of(line->text), text)) {
			line->times++;
			return;
		}
	}
	char *copy = telling->count < KEPT ? strndup(text.data, text.size) : NULL;
	if (!copy) {
		telling->not_kept++;
		return;
	}
	telling->lines[telling->count] = (struct line){copy, reason, telling->count, 1};
	telling->places[at] = (uint16_t)++telling->count;
}

static bool look(void *context, uint64_t seq, const struct record_head *head, struct bytes json)
{
	struct telling *telling = context;
	(void)seq;
	bool severe = effect_kind_severity((enum effect_kind)head->kind) == SEVERITY_high;
	bool delegated = report_may_be_delegated(json);
	bool changes = changes_files(head->kind) && (severe || delegated || !is_plainly_inside(telling, json));
	bool candidate = severe || delegated || changes || head->kind == EFFECT_net_connect;
	struct document *effect = candidate ? document_parse(json, NULL) : NULL;
	if (!effect)
		return true;
	arena_reset(&telling->arena);
	enum reason reason = reason_of(telling, head, effect);
	if (reason != REASON_NONE) {
		CLEANUP_BUF struct buf result = {.limit = 4096};
		buf_reset(&telling->text);
		effect_result_text(&result, effect);
		render_padded(&telling->text, bytes_of(effect_label(effect)), 10);
		buf_append_char(&telling->text, ' ');
		render_padded(&telling->text, buf_bytes(&result), 7);
		buf_append_char(&telling->text, ' ');
		effect_object_text(&telling->text, effect, &telling->arena);
		add_line(telling, buf_bytes(&telling->text), reason);
	}
	document_free(effect);
	return true;
}

static int compare_lines(const void *left, const void *right)
{
	const struct line *a = left, *b = right;
	if (a->reason != b->reason)
		return a->reason < b->reason ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static void append_lines(FILE *out, struct telling *telling, struct buf *text)
{
	size_t width = render_width(out);
	if (telling->count)
		qsort(telling->lines, telling->count, sizeof(telling->lines[0]), compare_lines);
	for (size_t i = 0; i < telling->count && i < SHOWN; i++) {
		const struct line *line = &telling->lines[i];
		CLEANUP_BUF struct buf times = {.limit = 64};
		if (line->times > 1) {
			buf_append_format(&times, " %s", render_times());
			render_count(&times, line->times);
		}
		size_t taken = text_width(buf_bytes(&times)) + 2;
		buf_append_format(text, "  %s", line->reason == REASON_SEVERE ? render_style(out, STYLE_RED) : "");
		render_cut(text, bytes_of(line->text), width > taken ? width - taken : 0);
		buf_append_text(text, line->reason == REASON_SEVERE ? render_style(out, STYLE_PLAIN) : "");
		buf_append_bytes(text, buf_bytes(&times));
		buf_append_char(text, '\n');
	}
	if (telling->count > SHOWN || telling->not_kept) {
		buf_append_format(text, "  %s and ", render_more());
		render_count(text,
			     telling->count - (telling->count > SHOWN ? SHOWN : telling->count) + telling->not_kept);
		buf_append_text(text, " more\n");
	}
}

/* Reads are let go, as a rule; that nobody waited for their results is no news to whoever reads this. */
static uint64_t count_reads(const struct report *report)
{
	uint64_t unknown = report->by_state[RESULT_UNKNOWN];

	return report->by_kind[EFFECT_file_read] < unknown ? report->by_kind[EFFECT_file_read] : unknown;
}

/* Neither all nor nothing unless it is so. */
static void append_share(struct buf *text, const char *before, double percent)
{
	if (percent < 0.1 || (percent > 99.9 && percent < 100))
		buf_append_format(text, "%s%s%%", before, percent < 0.1 ? "<0.1" : ">99.9");
	else
		buf_append_format(text, "%s%.*f%%", before, percent < 1 || (percent > 99 && percent < 100) ? 1 : 0,
				  percent);
}

static void end_claim(struct buf *text, FILE *out, enum claim claim, const struct report *report)
{
	render_class(text, out, claim_class(claim, report->class), NULL);
	buf_append_char(text, '\n');
}

/* How well the rest is known: the share of each way of knowing. */
static void append_shares(struct buf *text, FILE *out, const struct report *report)
{
	uint64_t total = 0, reads = count_reads(report);
	bool any = false;

	for (size_t how = 0; how < HOW_COUNT; how++)
		total += report->by_how[how];
	if (total <= reads)
		return;
	buf_append_text(text, "assure: results ");
	for (size_t how = 0; how < HOW_COUNT; how++) {
		uint64_t count = report->by_how[how] - (how == HOW_observed ? reads : 0);
		if (count == 0)
			continue;
		append_share(text, any ? render_dot() : "", 100.0 * (double)count / (double)(total - reads));
		buf_append_format(text, " %s", effect_how_name((enum effect_how)how));
		any = true;
	}
	end_claim(text, out, CLAIM_count, report);
}

static void append_headline(struct buf *text, FILE *out, const struct report *report)
{
	static const enum result_state order[] = {RESULT_OK, RESULT_FAILED, RESULT_REFUSED, RESULT_UNKNOWN};
	uint64_t reads = count_reads(report);
	bool any = false;
	buf_append_format(text, "assure: run %.*s%s", (int)report->short_id, report->run->id, render_dot());
	render_duration(text, report->duration_ns);
	buf_append_text(text, render_dot());
	report_state_text(text, report);
	buf_append_text(text, render_dot());
	render_counted(text, report->effects, "effect", "effects");
	if (reads) {
		buf_append_text(text, " (");
		render_counted(text, reads, "read", "reads");
		any = true;
	}
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		uint64_t count = report->by_state[order[i]] - (order[i] == RESULT_UNKNOWN ? reads : 0);
		if (!count)
			continue;
		buf_append_text(text, any ? ", " : " (");
		render_count(text, count);
		buf_append_format(text, " %s", result_state_name(order[i]));
		any = true;
	}
	if (any)
		buf_append_char(text, ')');
	buf_append_text(text, render_dot());
	render_counted(text, report->processes, "process", "processes");
	end_claim(text, out, CLAIM_count, report);
}

static void append_end(struct buf *text, FILE *out, const struct report *report)
{
	int size = (int)report->short_id;
	const char *id = report->run->id;
	if (report->gaps) {
		buf_append_text(text, "assure: ");
		render_counted(text, report->gaps, "gap", "gaps");
		buf_append_text(text, ": ");
		report_gaps_text(text, report);
		end_claim(text, out, CLAIM_gap, report);
	}
	buf_append_text(text, report->run->sealed ? "assure: sealed" : "assure: not sealed");
	render_class(text, out, claim_class(CLAIM_seal, report->class), report->exposed);
	buf_append_text(text, ", ");
	render_counted(text, report->run->records, "record", "records");
	if (report->run->root[0])
		buf_append_format(text, ", root %.4s%s%s", report->run->root, render_more(), report->run->root + 60);
	buf_append_format(text, "%sassure show %.*s%sassure verify %.*s\n", render_dot(), size, id, render_dot(), size,
			  id);
}

static bool tell(struct telling *telling, struct run *run, const struct report *report, struct err *err)
{
	const struct run_filter filter = {.by_type = true, .type = RECORD_effect};
	struct arena start = {.used = 0};
	if (!arena_init(&telling->arena, 1 << 20) || !arena_init(&start, 1 << 16)) {
		arena_free(&start);
		return err_set(err, 0, "screen: out of memory");
	}
	telling->cwd = document_bytes(report->start, "cwd", &start);
	spell_below(telling);
	bool good = run_visit(run, &filter, look, telling, err);
	arena_free(&start);
	return good;
}

bool render_run_screen(FILE *out, const char *home, struct run *run, struct err *err)
{
	struct report report;
	if (!report_load(&report, home, run, err))
		return false;
	struct telling *telling = calloc(1, sizeof(*telling));
	if (telling)
		telling->below.limit = 1 << 18;
	CLEANUP_BUF struct buf text = {.limit = 1 << 22};
	bool good = telling ? tell(telling, run, &report, err) : err_set(err, 0, "screen: out of memory");
	append_headline(&text, out, &report);
	if (telling && good)
		append_lines(out, telling, &text);
	append_shares(&text, out, &report);
	append_end(&text, out, &report);
	render_out(out, &text);
	for (size_t i = 0; telling && i < telling->count; i++)
		free(telling->lines[i].text);
	if (telling) {
		arena_free(&telling->arena);
		buf_free(&telling->text);
		buf_free(&telling->below);
	}
	free(telling);
	report_free(&report);
	return good;
}
