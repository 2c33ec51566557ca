/*
 * What the records of a run say, as far as an attestation repeats it: in one pass, values as they are written there.
 */
#include <errno.h>
#include <stdio.h>

#include "attestation_state.h"
#include "base/clock.h"
#include "base/text.h"
#include "ledger/store.h"

bool trace_path(struct bytes record, const char *key, struct buf *path)
{
	char other[32];
	CLEANUP_BUF struct buf text = {.limit = RECORD_SIZE_LIMIT};

	if (jcs_string(jcs_member(record, key), path))
		return true;
	(void)snprintf(other, sizeof(other), "%s_b64", key);
	return jcs_string(jcs_member(record, other), &text) && text_base64_parse(path, buf_bytes(&text));
}

void trace_uri(struct bytes path, struct buf *out)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";

	buf_append_text(out, "file://");
	for (size_t i = 0; i < path.size; i++) {
		unsigned char c = (unsigned char)path.data[i];
		if (c != '\0' && strchr(plain, c))
			buf_append_char(out, (char)c);
		else
			buf_append_format(out, "%%%02X", c);
	}
}

static const char *effect_class(const struct record_head *head, struct bytes json)
{
	return record_class_name(claim_effect_class(claim_class_recorded(json), head->how));
}

/* A member as it is in the record, under another name or the same. */
static void copy(struct json *json, const char *key, struct bytes object, const char *from)
{
	json_value(json, key, jcs_member(object, from));
}

/* ---- one entry of each list ---- */

/* False when the record has no path: such an entry would not be a ResourceDescriptor. */
static bool write_file(struct json *json, uint64_t seq, const struct record_head *head, struct bytes record)
{
	CLEANUP_BUF struct buf path = {.limit = RECORD_SIZE_LIMIT}, uri = {.limit = 4 * RECORD_SIZE_LIMIT};

	if (!trace_path(record, "path", &path))
		return false;
	trace_uri(buf_bytes(&path), &uri);
	json_begin_object(json, NULL);
	json_begin_object(json, "annotations");
	json_text(json, "class", effect_class(head, record));
	copy(json, "how", record, "how");
	copy(json, "kind", record, "kind");
	json_uint(json, "seq", seq);
	copy(json, "state", jcs_member(record, "result"), "state");
	copy(json, "to", record, "to");
	json_end_object(json);
	json_bytes(json, "name", buf_bytes(&path));
	json_word(json, "uri", buf_bytes(&uri));
	json_end_object(json);
	return true;
}

static bool write_network(struct json *json, uint64_t seq, const struct record_head *head, struct bytes record)
{
	struct bytes peer = jcs_member(record, "peer");

	json_begin_object(json, NULL);
	json_text(json, "class", effect_class(head, record));
	copy(json, "how", record, "how");
	copy(json, "invokingProcess", record, "process");
	copy(json, "ip", peer, "address");
	copy(json, "kind", record, "kind");
	copy(json, "local", record, "local");
	copy(json, "port", peer, "port");
	copy(json, "protocol", peer, "protocol");
	json_uint(json, "seq", seq);
	copy(json, "state", jcs_member(record, "result"), "state");
	json_end_object(json);
	return true;
}

static bool write_exec(struct json *json, uint64_t seq, const struct record_head *head, struct bytes record)
{
	json_begin_object(json, NULL);
	json_text(json, "class", effect_class(head, record));
	json_text(json, "event", head->kind == EFFECT_proc_exec ? "exec" : "exit");
	copy(json, "how", record, "how");
	if (head->kind == EFFECT_proc_exec) {
		struct bytes image = jcs_member(record, "image");
		if (image.data) {
			json_begin_object(json, "image");
			copy(json, "path", image, "path");
			copy(json, "path_b64", image, "path_b64");
			copy(json, "sha256", image, "sha256");
			json_end_object(json);
		}
		copy(json, "path", record, "path");
		copy(json, "path_b64", record, "path_b64");
	}
	copy(json, "process", jcs_member(record, "process"), "id");
	json_uint(json, "seq", seq);
	if (head->kind == EFFECT_proc_exit)
		copy(json, "status", record, "status");
	json_end_object(json);
	return true;
}

static bool write_process(struct json *json, uint64_t seq, const struct record_head *head, struct bytes record)
{
	(void)head;
	json_begin_object(json, NULL);
	json_text(json, "class", record_class_name(claim_class(CLAIM_process, claim_class_recorded(record))));
	json_text(json, "event", "start");
	copy(json, "exe", record, "exe");
	copy(json, "exe_b64", record, "exe_b64");
	copy(json, "id", record, "id");
	copy(json, "lineage", record, "lineage");
	copy(json, "parent", record, "parent");
	copy(json, "pid", record, "pid");
	json_uint(json, "seq", seq);
	json_end_object(json);
	return true;
}

typedef bool (*entry_writer)(struct json *json, uint64_t seq, const struct record_head *head, struct bytes record);

static entry_writer writer_of(const struct record_head *head, enum trace_list *list)
{
	if (head->type == RECORD_process) {
		*list = TRACE_PROCESSES;
		return write_process;
	}
	*list = TRACE_FILES;
	switch (head->kind) {
	case EFFECT_file_write:
	case EFFECT_file_create:
	case EFFECT_file_delete:
	case EFFECT_file_rename:
	case EFFECT_file_link:
	case EFFECT_file_symlink:
	case EFFECT_file_mode:
	case EFFECT_file_owner:
	case EFFECT_file_times:
	case EFFECT_file_truncate:
	case EFFECT_file_xattr:
	case EFFECT_dir_create:
	case EFFECT_dir_delete:
	case EFFECT_node_create:
		return write_file;
	case EFFECT_net_connect:
	case EFFECT_net_bind:
	case EFFECT_net_listen:
	case EFFECT_net_accept:
	case EFFECT_net_send:
	case EFFECT_net_raw:
		*list = TRACE_NETWORK;
		return write_network;
	case EFFECT_proc_exec:
		*list = TRACE_PROCESSES;
		return head->state == RESULT_OK ? write_exec : NULL;
	case EFFECT_proc_exit:
		*list = TRACE_PROCESSES;
		return write_exec;
	default:
		return NULL;
	}
}

static void list_entry(struct trace *trace, uint64_t seq, const struct record_head *head, struct bytes record)
{
	enum trace_list list;
	entry_writer write = writer_of(head, &list);

	if (!write)
		return;
	struct trace_part *part = &trace->parts[list];
	/* Once one does not fit, none does that follows: what is listed is the run's beginning. */
	if (part->text.size > ATTESTATION_LIST_SIZE - RECORD_SIZE_LIMIT || !write(&part->json, seq, head, record))
		part->left_out++;
}

/* ---- the run ---- */

static void take_end(struct trace *trace, struct bytes record)
{
	CLEANUP_BUF struct buf text = {.limit = 64};

	if (!jcs_string(jcs_member(record, "time"), &text) || text.size >= sizeof(trace->ended))
		return;
	memcpy(trace->ended, text.data, text.size + 1);
	trace->ended_ns = clock_parse(trace->ended);
}

static void take_reason(struct trace *trace, struct bytes record)
{
	struct bytes reason = jcs_member(record, "reason");

	buf_reset(&trace->reason);
	buf_append_bytes(&trace->reason, reason);
}

static bool take_record(void *context, uint64_t seq, const struct record_head *head, struct bytes record)
{
	struct trace *trace = context;
	bool is_effect = head->type == RECORD_effect;

	/* What the scribe says at the end is of the records, and no input of what is claimed of them. */
	if (head->type != RECORD_closing && head->type != RECORD_recovery)
		trace->weakest = claim_weaker(trace->weakest, claim_class_recorded(record));
	trace->records++;
	if (seq == 0)
		buf_append_bytes(&trace->first, record);
	trace->effects += is_effect;
	trace->processes += head->type == RECORD_process;
	trace->gaps += head->type == RECORD_gap;
	if (head->type == RECORD_closing || head->type == RECORD_recovery)
		take_reason(trace, record);
	if (head->type != RECORD_recovery)
		take_end(trace, record);
	if (is_effect || head->type == RECORD_process)
		list_entry(trace, seq, head, record);
	return !is_effect || produced_note(trace->produced, seq, head, record);
}

bool trace_read(const char *home, const char *run, struct trace *out, struct err *err)
{
	const struct run_filter all = {.by_type = false};

	*out = (struct trace){.first = {.limit = RECORD_SIZE_LIMIT + 1},
			      .reason = {.limit = RECORD_SIZE_LIMIT + 1},
			      .weakest = CLASS_external,
			      .produced = produced_new(err)};
	for (size_t i = 0; i < TRACE_LISTS; i++) {
		struct trace_part *part = &out->parts[i];
		buf_init(&part->text, 2 * ATTESTATION_LIST_SIZE);
		json_start(&part->json, &part->text);
		json_begin_array(&part->json, NULL);
	}
	struct run *opened = out->produced ? run_open(home, run, err) : NULL;
	bool good = opened && run_visit(opened, &all, take_record, out, err);
	for (size_t i = 0; i < TRACE_LISTS; i++) {
		json_end_array(&out->parts[i].json);
		good = good && !out->parts[i].text.failed;
	}
	if (opened)
		run_close(opened);
	return good || err_set(err, ENOMEM, "attestation: reading the run");
}

void trace_free(struct trace *trace)
{
	for (size_t i = 0; i < TRACE_LISTS; i++)
		buf_free(&trace->parts[i].text);
	buf_free(&trace->first);
	buf_free(&trace->reason);
	produced_free(trace->produced);
}
