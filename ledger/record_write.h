/*
 * What the encoders of all records share. Not public.
 */
#pragma once

#include "base/json.h"
#include "ledger/record.h"

/*
 * A body may have this many bytes so that the sealed record stays within RECORD_SIZE_LIMIT: `"seq":` and the longest
 * number with its quotes and comma are 29.
 */
enum { RECORD_BODY_LIMIT = RECORD_SIZE_LIMIT - 32 };

struct record_writer {
	struct json json;
	struct buf *out;
	size_t start;      /* where this record begins in `out` */
	size_t text_limit; /* longest text that is written whole */
	struct record_head *head;
};

enum { RECORD_BLOB_KEY = 64 };

/* Add a text, or a list as elements with a NUL each, under `field` or `field.name`. Without room it is not kept. */
void record_blob_text(struct record_blobs *blobs, const char *field, const char *name, struct bytes text);
void record_blob_list(struct record_blobs *blobs, const char *field, const char *name, const struct bytes *items,
		      size_t count);

/* How much of a list of arguments fits. */
struct argv_plan {
	size_t count;   /* elements to write */
	size_t last;    /* bytes of the last one to write */
	uint64_t total; /* what the call really had, or 0 when nothing is missing */
	bool cut;       /* missing because of us */
};

void record_open(struct record_writer *writer, struct buf *out, struct record_head *head, enum record_type type);
/* Take back what was written, to try again with tighter limits. */
void record_rewind(struct record_writer *writer);
/* `"schema":…`, and the place of `seq` behind it. A key above "seq" must follow. */
void record_schema(struct record_writer *writer);
/* `"time":…` */
void record_time(struct record_writer *writer, const struct record_stamp *stamp);
/* Close the record. False when `out` failed or the record is too long. */
bool record_finish(struct record_writer *writer);

/* record_cut() of a text that is longer than that. */
struct bytes record_cut_long(struct bytes text, size_t limit);
/* At most `limit` bytes of the text, at a character's boundary when it is UTF-8. */
static inline struct bytes record_cut(struct bytes text, size_t limit)
{
	return text.size <= limit ? text : record_cut_long(text, limit);
}
/* Most bytes that the text can take as a JSON string. */
size_t record_text_bound(struct bytes text);
/* json_bytes() within the writer's limit. */
static inline void record_text(struct record_writer *writer, const char *key, struct bytes text)
{
	json_bytes(&writer->json, key, record_cut(text, writer->text_limit));
}
/* `key`: "maj:min". */
void record_dev(struct record_writer *writer, const char *key, uint32_t dev_major, uint32_t dev_minor);
void record_peer(struct record_writer *writer, const char *key, const struct effect_peer *peer);
/* `"withheld":[…]`, of a record from which secrets were taken; it comes last. */
void record_withheld(struct record_writer *writer, redactions withheld);
/* `"blobs":{…}` when there are any; they are put in order. */
void record_blob_keys(struct record_writer *writer, struct record_blobs *blobs);
/* `"status":{…}`; -1 for what is not known. */
void record_status(struct record_writer *writer, int code, int signal, bool core);
struct argv_plan record_plan_argv(const struct bytes *argv, size_t count, uint64_t total, size_t budget);
/* `"argv":[…]` and `"argv_total"`. */
void record_argv(struct record_writer *writer, const struct bytes *argv, const struct argv_plan *plan);
/* The keys of an object of a file system, for objects that hold nothing else: as_given … type. */
void record_object(struct record_writer *writer, const struct effect_object *object, struct bytes text);
/* "file", "dir", …; NULL when not known. */
const char *record_file_type(uint16_t type);
