#include "record_write.h"

enum { PATH_LIMIT = 4096, DETAIL_LIMIT = 1024 };

bool record_process(struct buf *out, struct record_head *head, const struct record_process *process)
{
	struct record_writer writer;
	struct json *json = &writer.json;
	if (out->failed)
		return false;
	record_open(&writer, out, head, RECORD_process);
	writer.text_limit = PATH_LIMIT;
	head->pid = process->pid;
	head->process = process->id;
	json_text(json, "class", record_class_name(process->stamp.class));
	record_text(&writer, "exe", process->executable);
	json_uint(json, "gid", process->gid);
	json_int(json, "group", process->group);
	json_uint(json, "id", process->id);
	json_text(json, "lane", record_lane_name(process->stamp.lane));
	json_text(json, "lineage", lineage_name(process->lineage));
	json_uint(json, "mono_ns", process->stamp.mono_ns);
	if (process->parent)
		json_uint(json, "parent", process->parent);
	json_int(json, "parent_pid", process->parent_pid);
	json_int(json, "pid", process->pid);
	record_schema(&writer);
	json_int(json, "session", process->session);
	json_uint_text(json, "start_ticks", process->start_ticks);
	record_time(&writer, &process->stamp);
	json_uint(json, "uid", process->uid);
	record_withheld(&writer, process->withheld);
	return record_finish(&writer);
}

/* As many items as fit; returns how many did not. */
static size_t write_items(struct record_writer *writer, const struct record_reads *reads)
{
	enum { ITEMS_LIMIT = RECORD_BODY_LIMIT - 1024, ITEM_REST = 128 };
	struct json *json = &writer->json;
	size_t left_out = 0;
	json_begin_array(json, "items");
	for (size_t i = 0; i < reads->count; i++) {
		const struct record_reads_item *item = &reads->items[i];
		struct bytes path = record_cut(item->path, PATH_LIMIT);
		if (writer->out->size - writer->start + record_text_bound(path) + ITEM_REST > ITEMS_LIMIT) {
			left_out++;
			continue;
		}
		json_begin_object(json, NULL);
		json_uint(json, "count", item->count);
		record_dev(writer, "dev", item->dev_major, item->dev_minor);
		json_uint_text(json, "ino", item->ino);
		record_text(writer, "path", path);
		json_end_object(json);
	}
	json_end_array(json);
	return left_out;
}

bool record_reads(struct buf *out, struct record_head *head, const struct record_reads *reads)
{
	struct record_writer writer;
	struct json *json = &writer.json;
	if (out->failed)
		return false;
	record_open(&writer, out, head, RECORD_reads);
	head->pid = reads->pid;
	head->process = reads->process;
	json_text(json, "class", record_class_name(reads->stamp.class));
	size_t left_out = write_items(&writer, reads);
	if (left_out)
		json_uint(json, "items_cut", left_out);
	json_text(json, "lane", record_lane_name(reads->stamp.lane));
	json_uint(json, "mono_ns", reads->stamp.mono_ns);
	json_int(json, "pid", reads->pid);
	json_uint(json, "process", reads->process);
	record_schema(&writer);
	record_time(&writer, &reads->stamp);
	json_uint(json, "total_files", reads->total_files);
	json_uint(json, "total_reads", reads->total_reads);
	record_withheld(&writer, reads->withheld);
	return record_finish(&writer);
}

bool record_gap(struct buf *out, struct record_head *head, const struct record_gap *gap)
{
	struct record_writer writer;
	struct json *json = &writer.json;
	if (out->failed)
		return false;
	record_open(&writer, out, head, RECORD_gap);
	writer.text_limit = DETAIL_LIMIT;
	head->pid = gap->pid;
	head->process = gap->process;
	json_text(json, "class", record_class_name(gap->stamp.class));
	json_text(json, "code", gap_code_name(gap->code));
	if (gap->count)
		json_uint(json, "count", gap->count);
	record_text(&writer, "detail", gap->detail);
	json_text(json, "lane", record_lane_name(gap->stamp.lane));
	json_uint(json, "mono_ns", gap->stamp.mono_ns);
	if (gap->pid)
		json_int(json, "pid", gap->pid);
	if (gap->process)
		json_uint(json, "process", gap->process);
	record_schema(&writer);
	if (gap->syscall)
		json_text(json, "syscall", gap->syscall);
	record_time(&writer, &gap->stamp);
	return record_finish(&writer);
}
