#include "record_write.h"

#include <stdio.h>
#include <stdlib.h>

void record_blobs_reset(struct record_blobs *blobs)
{
	for (size_t i = 0; i < blobs->count; i++)
		buf_free(&blobs->items[i].bytes);
	blobs->count = 0;
}

/* A blob to fill, or NULL when there are as many as one record may have. */
static struct record_blob *add(struct record_blobs *blobs, const char *field, const char *name)
{
	if (!blobs || blobs->count == RECORD_BLOBS)
		return NULL;
	struct record_blob *blob = &blobs->items[blobs->count++];
	blob->field = field;
	blob->name = name;
	buf_init(&blob->bytes, RECORD_BLOB_LIMIT);
	return blob;
}

/* What could not be kept whole is no blob: it stays what the record says of it. */
static void close_blob(struct record_blobs *blobs, struct record_blob *blob)
{
	if (!blob->bytes.failed && digest_of(buf_bytes(&blob->bytes), &blob->digest))
		return;
	buf_free(&blob->bytes);
	blobs->count--;
}

void record_blob_text(struct record_blobs *blobs, const char *field, const char *name, struct bytes text)
{
	struct record_blob *blob = text.data ? add(blobs, field, name) : NULL;

	if (!blob)
		return;
	buf_append_bytes(&blob->bytes, text);
	close_blob(blobs, blob);
}

void record_blob_list(struct record_blobs *blobs, const char *field, const char *name, const struct bytes *items,
		      size_t count)
{
	struct record_blob *blob = add(blobs, field, name);

	if (!blob)
		return;
	for (size_t i = 0; i < count; i++) {
		buf_append_bytes(&blob->bytes, items[i]);
		buf_append_char(&blob->bytes, '\0');
	}
	close_blob(blobs, blob);
}

static void write_key(char out[RECORD_BLOB_KEY], const struct record_blob *blob)
{
	/* Both are words of ours. */
	(void)snprintf(out, RECORD_BLOB_KEY, blob->name ? "%s.%s" : "%s", blob->field, blob->name);
}

static int compare(const void *left, const void *right)
{
	char a[RECORD_BLOB_KEY], b[RECORD_BLOB_KEY];

	write_key(a, left);
	write_key(b, right);
	return strcmp(a, b);
}

void record_blob_keys(struct record_writer *writer, struct record_blobs *blobs)
{
	char keys[RECORD_BLOBS][RECORD_BLOB_KEY], digest[DIGEST_TEXT_SIZE];
	struct json *json = &writer->json;

	if (!blobs || blobs->count == 0)
		return;
	qsort(blobs->items, blobs->count, sizeof(blobs->items[0]), compare);
	json_begin_object(json, "blobs");
	for (size_t i = 0; i < blobs->count; i++) {
		write_key(keys[i], &blobs->items[i]);
		digest_text(&blobs->items[i].digest, digest);
		json_begin_object(json, keys[i]);
		json_uint(json, "bytes", blobs->items[i].bytes.size);
		json_text(json, "digest", digest);
		json_end_object(json);
	}
	json_end_object(json);
}
