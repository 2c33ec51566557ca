/*
 * A record as others may see it: the same object, with what matches taken out of its strings. What the ledger itself says,
 * and what stands in the columns beside the record, is never touched.
 */
#include "ledger/redacted.h"

#include "base/jcs.h"
#include "base/json.h"
#include "base/text.h"
#include "ledger/record.h"

/* Of the outer object. Sorted, as specs/LEDGER.md lists them. */
static const char *const kept[] = {
    "class",   "code",    "dev",    "errno", "host_key", "how", "ino",    "key_exposed", "keys", "kind", "lane",
    "lineage", "mono_ns", "result", "run",   "schema",   "seq", "status", "syscall",     "time", "type",
};

static const char base64_end[] = "b64";

struct rewriting {
	const struct redactor *redactor;
	struct json json;
	redactions what;
	struct bytes dropped[RECORD_BLOBS]; /* fields whose blobs are withheld, as they are named */
	size_t dropped_count;
	struct bytes parent; /* the member in which a value stands; absent in the outer object */
	struct buf before;   /* owned: the element before, when it is a string */
	bool has_before;
	bool failed;
};

static void copy_object(struct rewriting *rewriting, struct bytes key, struct bytes object, bool argument);

static bool is_kept(struct bytes key)
{
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (bytes_equal(key, bytes_of(kept[i])))
			return true;
	return false;
}

static bool is_base64(struct bytes key)
{
	size_t size = sizeof(base64_end) - 1;

	return key.data && key.size >= size && memcmp(key.data + key.size - size, base64_end, size) == 0;
}

/* A text of which only the beginning stands in the record, and the whole is withheld: where it was cut nobody can look. */
static bool is_excerpt(const struct rewriting *rewriting, struct bytes key)
{
	for (size_t i = 0; key.data && i < rewriting->dropped_count; i++) {
		struct bytes field = rewriting->dropped[i], parent = rewriting->parent;
		size_t before = parent.data ? parent.size + 1 : 0;
		bool inside = before == 0 || (field.size > before && bytes_start_with(field, parent) &&
					      field.data[parent.size] == '.');
		struct bytes name = {field.data + before, inside ? field.size - before : 0};
		if (inside && bytes_start_with(key, name) &&
		    (key.size == name.size || (key.size == name.size + 4 && is_base64(key))))
			return true;
	}
	return false;
}

/* The bytes that a string stands for, as they may be seen. False when the string is none. */
static bool take_out(struct rewriting *rewriting, struct bytes value, bool base64, bool argument, struct buf *content,
		     struct buf *shown)
{
	CLEANUP_BUF struct buf text = {.limit = RECORD_SIZE_LIMIT};
	struct bytes before = rewriting->has_before ? buf_bytes(&rewriting->before) : BYTES_NONE;

	if (!jcs_string(value, base64 ? &text : content) || (base64 && !text_base64_parse(content, buf_bytes(&text))))
		return false;
	bool any = argument ? redact_argument(rewriting->redactor, before, buf_bytes(content), shown, &rewriting->what)
			    : redact(rewriting->redactor, buf_bytes(content), REDACT_NAME, shown, &rewriting->what);
	if (!any) {
		buf_reset(shown);
		buf_append_bytes(shown, value);
		return true;
	}
	if (shown->failed) {
		/* What there is no room to cut out goes with all that is around it. */
		buf_reset(shown);
		buf_append_text(shown, "[withheld]");
	}
	CLEANUP_BUF struct buf quoted = {.limit = 8 * RECORD_SIZE_LIMIT};
	struct json json;
	json_start(&json, &quoted);
	if (base64) {
		buf_reset(&text);
		text.limit = 4 * RECORD_SIZE_LIMIT;
		text_base64(&text, buf_bytes(shown));
		json_at_word(&json, BYTES_NONE, buf_bytes(&text));
	} else {
		json_at_text(&json, BYTES_NONE, buf_bytes(shown));
	}
	buf_reset(shown);
	buf_append_bytes(shown, buf_bytes(&quoted));
	rewriting->failed = rewriting->failed || quoted.failed || text.failed;
	return true;
}

static void copy_string(struct rewriting *rewriting, struct bytes key, struct bytes value, bool base64, bool argument,
			bool element)
{
	CLEANUP_BUF struct buf content = {.limit = RECORD_SIZE_LIMIT}, shown = {.limit = 8 * RECORD_SIZE_LIMIT};

	if (is_excerpt(rewriting, key)) {
		/* Base64 of "[withheld]". */
		json_at_word(&rewriting->json, key, base64 ? BYTES("W3dpdGhoZWxkXQ==") : BYTES("[withheld]"));
		return;
	}
	if (!take_out(rewriting, value, base64, argument, &content, &shown)) {
		json_at_value(&rewriting->json, key, value);
		return;
	}
	json_at_value(&rewriting->json, key, buf_bytes(&shown));
	rewriting->failed = rewriting->failed || shown.failed;
	if (element) {
		buf_reset(&rewriting->before);
		buf_append_bytes(&rewriting->before, buf_bytes(&content));
		rewriting->has_before = true;
	}
}

/* Lists are argument vectors, or like them: an option says what the next element is. */
static void copy_array(struct rewriting *rewriting, struct bytes key, struct bytes array)
{
	struct bytes rest = array, one;

	json_at_open(&rewriting->json, key, '[');
	rewriting->has_before = false;
	while (jcs_element(&rest, &one)) {
		if (one.data[0] == '"')
			copy_string(rewriting, BYTES_NONE, one, false, true, true);
		else if (one.data[0] == '{')
			copy_object(rewriting, BYTES_NONE, one, true);
		else
			json_at_value(&rewriting->json, BYTES_NONE, one);
	}
	rewriting->has_before = false;
	json_end_array(&rewriting->json);
}

/* Names of members are the ledger's own: one that needs an escape, or is foreign, is in no record. */
static bool is_plain(struct bytes key)
{
	for (size_t i = 0; i < key.size; i++)
		if ((unsigned char)key.data[i] < 0x20 || (unsigned char)key.data[i] > 0x7e || key.data[i] == '\\')
			return false;
	return true;
}

static void copy_value(struct rewriting *rewriting, struct bytes key, struct bytes value, bool argument)
{
	if (!is_plain(key)) {
		rewriting->failed = true;
		return;
	}
	switch (value.data[0]) {
	case '"':
		copy_string(rewriting, key, value, is_base64(key), argument, false);
		return;
	case '[':
		copy_array(rewriting, key, value);
		return;
	case '{':
		copy_object(rewriting, key, value, argument || bytes_equal(key, BYTES("args")));
		return;
	default:
		json_at_value(&rewriting->json, key, value);
	}
}

static void copy_object(struct rewriting *rewriting, struct bytes key, struct bytes object, bool argument)
{
	struct bytes rest = object, name, value;

	struct bytes parent = rewriting->parent;
	rewriting->parent = key;
	json_at_open(&rewriting->json, key, '{');
	while (jcs_pair(&rest, &name, &value))
		copy_value(rewriting, name, value, argument);
	json_end_object(&rewriting->json);
	rewriting->parent = parent;
}

/* ---- blobs ---- */

static void find_dropped(struct rewriting *rewriting, struct bytes record, const struct redact_blobs *blobs)
{
	struct bytes rest = jcs_member(record, "blobs"), field, said;

	while (blobs && rest.size > 0 && jcs_pair(&rest, &field, &said)) {
		struct bytes digest = jcs_member(said, "digest");
		if (!digest.data || !blobs->matches(blobs->context, digest, &rewriting->what))
			continue;
		if (rewriting->dropped_count < RECORD_BLOBS)
			rewriting->dropped[rewriting->dropped_count++] = field;
		else
			rewriting->failed = true;
	}
}

static bool is_dropped(const struct rewriting *rewriting, struct bytes field)
{
	for (size_t i = 0; i < rewriting->dropped_count; i++)
		if (bytes_equal(rewriting->dropped[i], field))
			return true;
	return false;
}

/* Those that may be seen; none is no member. */
static void copy_blobs(struct rewriting *rewriting, struct bytes blobs)
{
	struct bytes rest = blobs, field, said;
	bool any = false;

	while (jcs_pair(&rest, &field, &said)) {
		if (is_dropped(rewriting, field))
			continue;
		if (!any)
			json_at_open(&rewriting->json, BYTES("blobs"), '{');
		any = true;
		json_at_value(&rewriting->json, field, said);
	}
	if (any)
		json_end_object(&rewriting->json);
}

static bool lists(struct bytes array, const char *name)
{
	struct bytes rest = array, one;
	size_t size = strlen(name);

	while (array.data && jcs_element(&rest, &one))
		if (one.size == size + 2 && memcmp(one.data + 1, name, size) == 0)
			return true;
	return false;
}

/* What was withheld before it was recorded, and what is now. */
static void write_withheld(struct json *json, struct bytes before, redactions what)
{
	struct bytes rest = before, one;

	json_at_open(json, BYTES("withheld"), '[');
	while (before.data && jcs_element(&rest, &one))
		json_at_value(json, BYTES_NONE, one);
	for (unsigned bit = 0; bit <= REDACTION_PATTERN; bit++) {
		bool said = !(what >> bit & 1) || lists(before, redaction_name(bit));
		for (unsigned other = 0; other < bit && !said; other++)
			said = what >> other & 1 && strcmp(redaction_name(other), redaction_name(bit)) == 0;
		if (!said)
			json_text(json, NULL, redaction_name(bit));
	}
	json_end_array(json);
}

static bool comes_after(struct bytes key, struct bytes other)
{
	int order = memcmp(key.data, other.data, key.size < other.size ? key.size : other.size);

	return order > 0 || (order == 0 && key.size > other.size);
}

/* `what`: what is known to be withheld, for the member that says so; 0 to find out. */
static void copy_record(struct rewriting *rewriting, struct bytes record, redactions what, struct buf *out)
{
	static const struct bytes withheld = BYTES("withheld");
	struct bytes rest = record, key, value, before = jcs_member(record, "withheld");
	bool said = what == 0;

	json_start(&rewriting->json, out);
	json_at_open(&rewriting->json, BYTES_NONE, '{');
	while (jcs_pair(&rest, &key, &value)) {
		bool own = bytes_equal(key, withheld);
		if (!said && (own || comes_after(key, withheld))) {
			write_withheld(&rewriting->json, before, what);
			said = true;
		}
		if (own && what != 0)
			continue;
		if (bytes_equal(key, BYTES("blobs")) && value.data[0] == '{')
			copy_blobs(rewriting, value);
		else if (own || is_kept(key)) /* which are plain */
			json_at_value(&rewriting->json, key, value);
		else
			copy_value(rewriting, key, value, false);
	}
	if (!said)
		write_withheld(&rewriting->json, before, what);
	json_end_object(&rewriting->json);
	rewriting->failed = rewriting->failed || out->failed;
}

enum redacted redact_record(const struct redactor *redactor, struct bytes record, const struct redact_blobs *blobs,
			    struct buf *out)
{
	CLEANUP_BUF struct buf text = {.limit = 16 * RECORD_SIZE_LIMIT};
	struct rewriting rewriting = {.redactor = redactor, .before = {.limit = RECORD_SIZE_LIMIT}};

	find_dropped(&rewriting, record, blobs);
	copy_record(&rewriting, record, 0, &text);
	redactions what = rewriting.what;
	if (what != 0) {
		buf_reset(&text);
		copy_record(&rewriting, record, what, &text);
	}
	buf_free(&rewriting.before);
	if (what == 0 && !rewriting.failed)
		return REDACTED_NOTHING;
	if (rewriting.failed || text.size > RECORD_SIZE_LIMIT)
		return REDACTED_FAILED;
	buf_append_bytes(out, buf_bytes(&text));
	return out->failed ? REDACTED_FAILED : REDACTED_SOME;
}

bool redact_blob(const struct redactor *redactor, struct bytes blob, redactions *what)
{
	CLEANUP_BUF struct buf out = {.limit = 8 * RECORD_BLOB_LIMIT};
	struct bytes before = BYTES_NONE, rest = blob;
	bool any = false;

	while (rest.size > 0) {
		const char *end = memchr(rest.data, '\0', rest.size);
		struct bytes one = {rest.data, end ? (size_t)(end - rest.data) : rest.size};
		any = redact_argument(redactor, before, one, &out, what) || any;
		before = one;
		rest = (struct bytes){rest.data + one.size + (end ? 1 : 0), rest.size - one.size - (end ? 1 : 0)};
	}
	return any;
}

bool redact_value(const struct redactor *redactor, struct bytes text, struct buf *out)
{
	redactions what = 0;

	if (!redact(redactor, text, REDACT_NAME, out, &what))
		return false;
	if (out->failed) {
		buf_reset(out);
		buf_append_text(out, "[withheld]");
	}
	return true;
}

static bool finds(const struct redactor *redactor, struct bytes object, const char *key)
{
	CLEANUP_BUF struct buf text = {.limit = RECORD_SIZE_LIMIT}, out = {.limit = 8 * RECORD_SIZE_LIMIT};
	struct bytes value = jcs_member(object, key);
	redactions what = 0;

	return value.data &&
	       (!jcs_string(value, &text) || redact(redactor, buf_bytes(&text), REDACT_NAME, &out, &what));
}

bool redact_finds(const struct redactor *redactor, struct bytes document)
{
	struct bytes rest = jcs_member(document, "entries"), one;

	if (finds(redactor, jcs_member(document, "payload"), "host"))
		return true;
	while (rest.size > 0 && jcs_element(&rest, &one)) {
		CLEANUP_BUF struct buf entry = {.limit = 2 * RECORD_SIZE_LIMIT};
		if (!jcs_string(one, &entry) || finds(redactor, buf_bytes(&entry), "reason"))
			return true;
	}
	return false;
}
