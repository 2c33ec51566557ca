#include <stdlib.h>
#include <sys/wait.h>

#include "record_write.h"

static void write_descriptors(struct record_writer *writer, const struct record_run_start *start)
{
	enum { DESCRIPTORS_END = 46000, PATH_LIMIT = 128 };
	struct json *json = &writer->json;
	size_t left_out = 0, whole = writer->text_limit;
	writer->text_limit = PATH_LIMIT;
	json_begin_array(json, "descriptors");
	for (size_t i = 0; i < start->descriptor_count; i++) {
		const struct record_descriptor *descriptor = &start->descriptors[i];
		if (writer->out->size - writer->start > DESCRIPTORS_END) {
			left_out++;
			continue;
		}
		json_begin_object(json, NULL);
		record_text(writer, "access", descriptor->access);
		json_int(json, "fd", descriptor->fd);
		record_text(writer, "path", descriptor->path);
		record_peer(writer, "peer", &descriptor->peer);
		json_end_object(json);
	}
	json_end_array(json);
	if (left_out)
		json_uint(json, "descriptors_cut", left_out);
	writer->text_limit = whole;
}

/* Nothing is given to the agent that it would not have without us; readers may rely on the lists. */
static void write_added(struct json *json, const char *list)
{
	json_begin_array(json, list);
	json_end_array(json);
}

static void write_probes(struct record_writer *writer, const struct record_run_start *start)
{
	struct json *json = &writer->json;

	json_begin_array(json, "probes");
	for (size_t i = 0; i < start->probe_count; i++) {
		json_begin_object(json, NULL);
		record_text(writer, "detail", start->probes[i].detail);
		record_text(writer, "follows", start->probes[i].follows);
		record_text(writer, "id", start->probes[i].id);
		record_text(writer, "state", start->probes[i].state);
		json_end_object(json);
	}
	json_end_array(json);
}

/* Which rules were in force. A pattern of the user may itself hold what nobody shall read. */
static void write_redaction(struct json *json, const struct record_run_start *start)
{
	json_begin_object(json, "redaction");
	json_begin_array(json, "patterns");
	for (size_t i = 0; i < start->pattern_count; i++)
		json_text(json, NULL, start->patterns[i]);
	json_end_array(json);
	json_uint(json, "shapes", redaction_count());
	json_end_object(json);
}

static void write_keys(struct record_writer *writer, const struct record_run_start *start)
{
	static const enum key_use order[] = {USE_issuer, USE_ledger, USE_tool_executor, USE_witness};
	_Static_assert(sizeof(order) / sizeof(order[0]) == USE_COUNT, "every use, in order of name");
	if (!start->keys[0].data)
		return;
	json_begin_object(&writer->json, "keys");
	for (size_t i = 0; i < USE_COUNT; i++)
		record_text(writer, key_use_name(order[i]), start->keys[order[i]]);
	json_end_object(&writer->json);
}

bool record_run_start(struct buf *out, struct record_head *head, const struct record_run_start *start,
		      struct record_blobs *blobs)
{
	enum { ARGV_BUDGET = 16384, CWD_LIMIT = 2048, TEXT_LIMIT = 256 };
	struct record_writer writer;
	struct json *json = &writer.json;
	if (out->failed)
		return false;
	struct argv_plan argv = record_plan_argv(start->argv, start->argv_count, 0, ARGV_BUDGET);
	record_open(&writer, out, head, RECORD_run_start);
	writer.text_limit = TEXT_LIMIT;
	record_argv(&writer, start->argv, &argv);
	record_text(&writer, "backend", start->backend);
	record_text(&writer, "births", start->births);
	if (argv.cut)
		record_blob_list(blobs, "argv", NULL, start->argv, start->argv_count);
	record_blob_keys(&writer, blobs);
	record_text(&writer, "build", start->build);
	json_text(json, "class", record_class_name(start->stamp.class));
	json_bytes(json, "cwd", record_cut(start->cwd, CWD_LIMIT));
	write_descriptors(&writer, start);
	write_added(json, "environment_added");
	write_added(json, "flags_added");
	json_uint(json, "gid", start->gid);
	record_text(&writer, "host", start->host);
	record_text(&writer, "host_key", start->host_key);
	json_bool(json, "io_uring_allowed", start->io_uring_allowed);
	record_text(&writer, "kernel", start->kernel);
	record_text(&writer, "key_exposed", start->key_exposed);
	write_keys(&writer, start);
	json_text(json, "lane", record_lane_name(start->stamp.lane));
	record_text(&writer, "lens", start->lens);
	json_uint(json, "mono_ns", start->stamp.mono_ns);
	record_text(&writer, "name", start->name);
	json_bool(json, "no_new_privs", start->no_new_privs);
	write_probes(&writer, start);
	write_redaction(json, start);
	record_text(&writer, "results", start->results);
	record_text(&writer, "run", start->run);
	record_schema(&writer);
	record_time(&writer, &start->stamp);
	json_uint(json, "uid", start->uid);
	record_text(&writer, "version", start->version);
	record_withheld(&writer, start->withheld);
	return record_finish(&writer);
}

static int compare_kinds(const void *left, const void *right)
{
	const enum effect_kind *a = left, *b = right;
	return strcmp(effect_kind_name(*a), effect_kind_name(*b));
}

static void write_by_kind(struct json *json, const struct record_run_end *end)
{
	enum effect_kind kinds[EFFECT_KIND_COUNT];
	for (unsigned i = 0; i < EFFECT_KIND_COUNT; i++)
		kinds[i] = (enum effect_kind)i;
	qsort(kinds, EFFECT_KIND_COUNT, sizeof(kinds[0]), compare_kinds);
	json_begin_object(json, "by_kind");
	for (unsigned i = 0; i < EFFECT_KIND_COUNT; i++)
		if (end->by_kind[kinds[i]])
			json_uint(json, effect_kind_name(kinds[i]), end->by_kind[kinds[i]]);
	json_end_object(json);
}

static void write_counts(struct json *json, const struct record_run_end *end)
{
	static const enum effect_how hows[] = {HOW_declared, HOW_observed, HOW_performed, HOW_verified};
	static const enum result_state states[] = {RESULT_FAILED, RESULT_OK, RESULT_REFUSED, RESULT_UNKNOWN};
	_Static_assert(sizeof(hows) / sizeof(hows[0]) == HOW_COUNT, "every way of knowing, in order of name");
	json_begin_object(json, "by_how");
	for (size_t i = 0; i < HOW_COUNT; i++)
		json_uint(json, effect_how_name(hows[i]), end->by_how[hows[i]]);
	json_end_object(json);
	write_by_kind(json, end);
	json_begin_object(json, "by_result");
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		json_uint(json, result_state_name(states[i]), end->by_state[states[i]]);
	json_end_object(json);
}

enum { REASON_LIMIT = 1024 };

bool record_run_end(struct buf *out, struct record_head *head, const struct record_run_end *end)
{
	struct record_writer writer;
	struct json *json = &writer.json;
	if (out->failed)
		return false;
	record_open(&writer, out, head, RECORD_run_end);
	writer.text_limit = REASON_LIMIT;
	write_counts(json, end);
	json_text(json, "class", record_class_name(end->stamp.class));
	json_bool(json, "complete", end->complete);
	json_uint(json, "effects", end->effects);
	json_uint(json, "gaps", end->gaps);
	json_text(json, "lane", record_lane_name(end->stamp.lane));
	json_uint(json, "mono_ns", end->stamp.mono_ns);
	json_uint(json, "processes", end->processes);
	record_text(&writer, "reason", end->reason);
	record_schema(&writer);
	if (end->wait_status != -1) {
		int status = end->wait_status;
		bool exited = WIFEXITED(status);
		record_status(&writer, exited ? WEXITSTATUS(status) : -1, exited ? -1 : WTERMSIG(status),
			      !exited && WCOREDUMP(status));
	}
	record_time(&writer, &end->stamp);
	json_bool(json, "tree_was_ended", end->tree_was_ended);
	return record_finish(&writer);
}

bool record_closing(struct buf *out, struct record_head *head, const struct record_closing *closing)
{
	struct record_writer writer;
	struct json *json = &writer.json;
	if (out->failed)
		return false;
	record_open(&writer, out, head, RECORD_closing);
	writer.text_limit = REASON_LIMIT;
	json_text(json, "class", record_class_name(closing->stamp.class));
	json_bool(json, "complete", closing->complete);
	json_uint(json, "effects", closing->effects);
	json_text(json, "lane", record_lane_name(closing->stamp.lane));
	json_uint(json, "lost", closing->lost);
	json_uint(json, "mono_ns", closing->stamp.mono_ns);
	record_text(&writer, "reason", closing->reason);
	json_uint(json, "records", closing->records);
	record_schema(&writer);
	record_time(&writer, &closing->stamp);
	return record_finish(&writer);
}

bool record_recovery(struct buf *out, struct record_head *head, const struct record_recovery *recovery)
{
	struct record_writer writer;
	struct json *json = &writer.json;
	if (out->failed)
		return false;
	record_open(&writer, out, head, RECORD_recovery);
	writer.text_limit = REASON_LIMIT;
	json_text(json, "class", record_class_name(recovery->stamp.class));
	json_uint(json, "covered", recovery->covered);
	json_text(json, "lane", record_lane_name(recovery->stamp.lane));
	json_uint(json, "mono_ns", recovery->stamp.mono_ns);
	record_text(&writer, "reason", recovery->reason);
	record_schema(&writer);
	record_time(&writer, &recovery->stamp);
	return record_finish(&writer);
}
