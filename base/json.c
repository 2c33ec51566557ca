#include "base/json.h"

#include <assert.h>

#include "base/text.h"

#define JSON_FOREIGN_SUFFIX "_b64"
/* Above this a reader that holds numbers as doubles (RFC 8785 assumes one) would read another number. */
static const uint64_t json_integer_max = ((uint64_t)1 << 53) - 1;

static unsigned json_level(const struct json *json)
{
	return json->depth < JSON_DEPTH_LIMIT ? json->depth : JSON_DEPTH_LIMIT - 1;
}

/* True when a byte stands for itself in a JSON string, whatever stands next to it. */
static bool json_is_plain(char c)
{
	return (unsigned char)c >= 0x20 && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

/* The same for eight bytes at once: true when all of them are plain. */
static bool json_are_plain(const char *text)
{
	static const uint64_t ones = UINT64_C(0x0101010101010101), highs = UINT64_C(0x8080808080808080);
	uint64_t word;
	memcpy(&word, text, sizeof(word));
	/* A subtraction borrows into the high bit of the least byte that is too small: 0 for a byte that was looked for. */
	uint64_t quotes = word ^ ones * '"', backslashes = word ^ ones * '\\';
	uint64_t found =
	    ((word - ones * 0x20) & ~word) | ((quotes - ones) & ~quotes) | ((backslashes - ones) & ~backslashes) | word;
	return (found & highs) == 0;
}

/* How many bytes at the start of the text are plain. Nearly every text is plain as a whole. */
static size_t json_plain_size(struct bytes text)
{
	enum { STEP = sizeof(uint64_t) };
	size_t size = 0;
	while (text.size - size >= STEP && json_are_plain(text.data + size))
		size += STEP;
	if (text.size - size < STEP && text.size >= STEP && json_are_plain(text.data + text.size - STEP))
		return text.size;
	while (size < text.size && json_is_plain(text.data[size]))
		size++;
	return size;
}

static void json_escape(struct buf *out, unsigned char c)
{
	static const char letters[0x20] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
	char letter = c < sizeof(letters) ? letters[c] : (char)c;
	/* Not by printf: names full of control characters must not be a way to slow us down. */
	const char escape[] = {'\\', 'u', '0', '0', (char)('0' + (c >> 4)), "0123456789abcdef"[c & 15]};
	if (letter)
		buf_append(out, (const char[]){'\\', letter}, 2);
	else
		buf_append(out, escape, sizeof(escape));
}

/* What stands between the quotes, run by run. The first `plain` bytes are known to be so. */
static void json_escaped(struct buf *out, struct bytes text, size_t plain)
{
	size_t run = 0;
	for (size_t i = plain; i < text.size;) {
		unsigned char c = (unsigned char)text.data[i];
		uint32_t code_point;
		struct bytes rest = {text.data + i, text.size - i};
		size_t size = c < 0x80 ? json_plain_size(rest) : text_utf8_decode(rest, &code_point);
		if (size != 0) {
			i += size;
			continue;
		}
		buf_append(out, text.data + run, i - run);
		if (c < 0x80)
			json_escape(out, c);
		else
			buf_append_text(out, "\xef\xbf\xbd");
		run = ++i;
	}
	buf_append(out, text.data + run, text.size - run);
}

static int json_key_compare(struct bytes a, struct bytes b)
{
	int order = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
	return order ? order : (a.size > b.size) - (a.size < b.size);
}

/*
 * True when `key` follows the key before it, in either form that that one may have been written in: whether the output
 * is canonical must not depend on the agent's bytes, nor be found out only when they are not UTF-8.
 */
__attribute__((unused)) /* without asserts */
static bool
json_key_follows(const struct json *json, struct bytes key)
{
	unsigned level = json_level(json);
	struct bytes last = json->last_key[level];
	if (!last.data)
		return true;
	/* Nearly always the first byte settles it, for both forms. */
	if (last.size != 0 && key.size != 0 && (unsigned char)last.data[0] < (unsigned char)key.data[0])
		return true;
	if (json_key_compare(last, key) >= 0)
		return false;
	if (!json->last_foreign[level] || !bytes_start_with(key, last))
		return true;
	struct bytes rest = {key.data + last.size, key.size - last.size};
	return json_key_compare(BYTES(JSON_FOREIGN_SUFFIX), rest) < 0;
}

/* Of debug builds alone: a key of ours is in order, or it never is. */
static inline void json_key_check(struct json *json, struct bytes key, bool foreign)
{
#ifdef NDEBUG
	(void)json;
	(void)key;
	(void)foreign;
#else
	unsigned level = json_level(json);
	assert(json->out->failed || json->keyed[level] == (key.data != NULL));
	if (!key.data)
		return;
	assert(json->out->failed || json_key_follows(json, key));
	json->last_key[level] = key;
	json->last_foreign[level] = foreign;
#endif
}

static char *json_copy(char *to, struct bytes from)
{
	if (from.size != 0)
		memcpy(to, from.data, from.size);
	return to + from.size;
}

/*
 * Write what comes before a value: the comma, and the key with its suffix. Returns where the value of `size` bytes goes,
 * which ends with json_commit(), or NULL when there is no room for all of it.
 */
static inline char *json_reserve(struct json *json, struct bytes key, struct bytes suffix, size_t size)
{
	unsigned level = json_level(json);
	bool comma = !json->first[level];
	size_t before = comma;
	assert(json->out->failed || json->depth > 0 || json->first[0]);
	json->first[level] = false;
	if (key.data)
		before += key.size + suffix.size + sizeof("\"\":") - 1;
	if (size > SIZE_MAX - before) {
		json->out->failed = true;
		return NULL;
	}
	char *to = buf_reserve(json->out, before + size);
	if (!to)
		return NULL;
	if (comma)
		*to++ = ',';
	if (!key.data)
		return to;
	*to++ = '"';
	to = json_copy(json_copy(to, key), suffix);
	*to++ = '"';
	*to++ = ':';
	return to;
}

static inline void json_commit(struct json *json, const char *end)
{
	buf_commit(json->out, (size_t)(end - json->out->data) - json->out->size);
}

/* A value whose bytes are as they shall be, with its key. */
static inline void json_raw(struct json *json, struct bytes key, struct bytes value)
{
	char *to = json_reserve(json, key, BYTES_NONE, value.size);
	if (to)
		json_commit(json, json_copy(to, value));
}

static void json_plain(struct json *json, struct bytes key, struct bytes text)
{
	char *to = json_reserve(json, key, BYTES_NONE, text.size + 2);
	if (!to)
		return;
	*to++ = '"';
	to = json_copy(to, text);
	*to++ = '"';
	json_commit(json, to);
}

/* A string of which the first `plain` bytes need no care. */
static void json_string(struct json *json, struct bytes key, struct bytes text, size_t plain)
{
	if (plain == text.size) {
		json_plain(json, key, text);
		return;
	}
	json_raw(json, key, BYTES("\""));
	json_escaped(json->out, text, plain);
	buf_append_char(json->out, '"');
}

void json_start(struct json *json, struct buf *out)
{
	/* Not all of it, which is much for every record: json_at_open() sets what it comes to. */
	json->out = out;
	json->depth = 0;
	json->first[0] = true;
	json->keyed[0] = false;
	json->last_foreign[0] = false;
	json->last_key[0] = BYTES_NONE;
}

void json_at_open(struct json *json, struct bytes key, char bracket)
{
	json_key_check(json, key, false);
	json_raw(json, key, (struct bytes){&bracket, 1});
	if (++json->depth >= JSON_DEPTH_LIMIT)
		json->out->failed = true;
	unsigned level = json_level(json);
	json->first[level] = true;
	json->keyed[level] = bracket == '{';
	json->last_foreign[level] = false;
	json->last_key[level] = BYTES_NONE;
}

static void json_close(struct json *json, char c, bool keyed)
{
	if (json->depth == 0 || (json->depth < JSON_DEPTH_LIMIT && json->keyed[json->depth] != keyed)) {
		json->out->failed = true;
		return;
	}
	json->depth--;
	buf_append_char(json->out, c);
}

void json_end_object(struct json *json)
{
	json_close(json, '}', true);
}

void json_end_array(struct json *json)
{
	json_close(json, ']', false);
}

void json_at_text(struct json *json, struct bytes key, struct bytes text)
{
	json_key_check(json, key, false);
	json_string(json, key, text, json_plain_size(text));
}

void json_at_word(struct json *json, struct bytes key, struct bytes word)
{
	json_key_check(json, key, false);
	json_plain(json, key, word);
}

/* True when the text is UTF-8, of which nothing but the part that is not plain has to be looked at. */
static bool json_is_utf8(struct bytes text, size_t plain)
{
	return plain == text.size || text_is_utf8((struct bytes){text.data + plain, text.size - plain});
}

void json_at_bytes(struct json *json, struct bytes key, struct bytes bytes)
{
	assert(key.data);
	json_key_check(json, key, true);
	if (!bytes.data)
		return;
	size_t plain = json_plain_size(bytes);
	if (json_is_utf8(bytes, plain)) {
		json_string(json, key, bytes, plain);
		return;
	}
	char *to = json_reserve(json, key, BYTES(JSON_FOREIGN_SUFFIX), 1);
	if (!to)
		return;
	*to++ = '"';
	json_commit(json, to);
	text_base64(json->out, bytes);
	buf_append_char(json->out, '"');
}

void json_element(struct json *json, struct bytes bytes)
{
	json_key_check(json, BYTES_NONE, false);
	size_t plain = json_plain_size(bytes);
	if (!bytes.data) {
		json_raw(json, BYTES_NONE, BYTES("null"));
	} else if (json_is_utf8(bytes, plain)) {
		json_string(json, BYTES_NONE, bytes, plain);
	} else {
		json_raw(json, BYTES_NONE, BYTES("{\"b64\":\""));
		text_base64(json->out, bytes);
		buf_append_text(json->out, "\"}");
	}
}

static void json_number(struct json *json, struct bytes key, bool negative, uint64_t magnitude, bool quoted)
{
	json_key_check(json, key, false);
	unsigned digits = text_decimal_size(magnitude);
	char *to = json_reserve(json, key, BYTES_NONE, digits + negative + (quoted ? 2 : 0));
	if (!to)
		return;
	if (quoted)
		*to++ = '"';
	if (negative)
		*to++ = '-';
	to = text_put_decimal(to, magnitude, digits);
	if (quoted)
		*to++ = '"';
	json_commit(json, to);
}

void json_at_int(struct json *json, struct bytes key, int64_t value)
{
	bool negative = value < 0;
	uint64_t magnitude = negative ? -(uint64_t)value : (uint64_t)value;
	bool exact = magnitude <= json_integer_max;
	json_number(json, key, negative, magnitude, !exact);
}

void json_at_uint(struct json *json, struct bytes key, uint64_t value)
{
	json_number(json, key, false, value, value > json_integer_max);
}

void json_at_uint_text(struct json *json, struct bytes key, uint64_t value)
{
	json_number(json, key, false, value, true);
}

void json_at_null(struct json *json, struct bytes key)
{
	json_key_check(json, key, false);
	json_raw(json, key, BYTES("null"));
}

void json_at_bool(struct json *json, struct bytes key, bool value)
{
	json_key_check(json, key, false);
	json_raw(json, key, value ? BYTES("true") : BYTES("false"));
}

void json_at_value(struct json *json, struct bytes key, struct bytes value)
{
	if (!value.data)
		return;
	json_key_check(json, key, false);
	json_raw(json, key, value);
}
