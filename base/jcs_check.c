/*
 * Is a document canonical? One pass, on the hot path of a verifier.
 */
#include <stdlib.h>

#include "base/jcs.h"
#include "base/text.h"

struct cursor {
	const char *at, *end;
	unsigned depth;
};

static bool check_value(struct cursor *cursor);

/* Absent text is empty: to a pointer that is none nothing may be added, not even nothing. */
static struct cursor over(struct bytes text)
{
	return text.data ? (struct cursor){text.data, text.data + text.size, 0} : (struct cursor){"", "", 0};
}

static bool take(struct cursor *cursor, char c)
{
	if (cursor->at == cursor->end || *cursor->at != c)
		return false;
	cursor->at++;
	return true;
}

static bool take_word(struct cursor *cursor, const char *word, size_t size)
{
	if ((size_t)(cursor->end - cursor->at) < size || memcmp(cursor->at, word, size) != 0)
		return false;
	cursor->at += size;
	return true;
}

/* Behind a backslash: the short form where there is one, else four lower-case digits of a control character. */
static bool check_escape(struct cursor *cursor)
{
	static const char brief[] = "\"\\bfnrt";
	uint8_t value;

	if (cursor->at == cursor->end)
		return false;
	char c = *cursor->at++;
	if (c != 'u')
		return c != '\0' && strchr(brief, c) != NULL;
	if (cursor->end - cursor->at < 4 || memcmp(cursor->at, "00", 2) != 0 ||
	    !text_hex_parse((struct bytes){cursor->at + 2, 2}, &value, 1))
		return false;
	cursor->at += 4;
	return value < 0x20 && value != '\b' && value != '\f' && value != '\n' && value != '\r' && value != '\t';
}

/* `out` receives what stands between the quotes, escaped as it is. */
static bool check_string(struct cursor *cursor, struct bytes *out)
{
	if (!take(cursor, '"'))
		return false;
	const char *start = cursor->at;
	while (cursor->at < cursor->end) {
		unsigned char c = (unsigned char)*cursor->at;
		if (c == '"') {
			*out = (struct bytes){start, (size_t)(cursor->at - start)};
			cursor->at++;
			return true;
		}
		if (c < 0x20)
			return false;
		if (c == '\\') {
			cursor->at++;
			if (!check_escape(cursor))
				return false;
		} else if (c < 0x80) {
			cursor->at++;
		} else {
			uint32_t code;
			size_t size =
			    text_utf8_decode((struct bytes){cursor->at, (size_t)(cursor->end - cursor->at)}, &code);
			if (size == 0)
				return false;
			cursor->at += size;
		}
	}
	return false;
}

/* The next code point of an escaped string. */
static uint32_t next_code(struct bytes *text)
{
	uint32_t code = (unsigned char)*text->data;
	size_t size = 1;

	if (code == '\\') {
		static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
		char c = text->data[1];
		const char *brief = strchr(from, c);
		uint8_t value = (uint8_t)(brief ? to[brief - from] : c);
		size = 2;
		if (c == 'u') {
			(void)text_hex_parse((struct bytes){text->data + 4, 2}, &value, 1);
			size = 6;
		}
		code = value;
	} else if (code >= 0x80) {
		size = text_utf8_decode(*text, &code);
	}
	text->data += size;
	text->size -= size;
	return code;
}

/* By UTF-16 code units: what needs two of them stands below U+E000. */
static uint32_t weight(uint32_t code)
{
	if (code >= 0x10000)
		return 0xd800u << 16 | (code - 0x10000);
	return code << 16;
}

static bool comes_before(struct bytes one, struct bytes other)
{
	/* What is plain ASCII without escapes compares as bytes: nearly always the first byte that differs settles it. */
	while (one.size > 0 && other.size > 0) {
		uint32_t left = next_code(&one), right = next_code(&other);
		if (left != right)
			return weight(left) < weight(right);
	}
	return one.size == 0 && other.size > 0;
}

static bool check_number(struct cursor *cursor)
{
	enum { PLAIN_DIGITS = 15 /* below 2^53 whatever they are */ };
	char text[JCS_NUMBER_SIZE], again[JCS_NUMBER_SIZE];
	const char *start = cursor->at;
	size_t size = 0;
	bool plain = true;

	while (cursor->at < cursor->end && strchr("+-.0123456789Ee", *cursor->at) && *cursor->at) {
		plain = plain && (*cursor->at >= '0' || (*cursor->at == '-' && size == 0)) && *cursor->at <= '9';
		cursor->at++;
		if (++size >= sizeof(text))
			return false;
	}
	size_t sign = size > 0 && start[0] == '-';
	if (plain && size - sign <= PLAIN_DIGITS)
		return size > sign && (start[sign] != '0' || size == 1);
	char *end;
	memcpy(text, start, size);
	text[size] = '\0';
	double value = strtod(text, &end);
	return end == text + size && jcs_number(value, again) && strcmp(text, again) == 0;
}

static bool check_object(struct cursor *cursor)
{
	struct bytes last = BYTES_NONE, key;

	if (take(cursor, '}'))
		return true;
	do {
		if (!check_string(cursor, &key) || (last.data && !comes_before(last, key)) || !take(cursor, ':') ||
		    !check_value(cursor))
			return false;
		last = key;
	} while (take(cursor, ','));
	return take(cursor, '}');
}

static bool check_array(struct cursor *cursor)
{
	if (take(cursor, ']'))
		return true;
	do {
		if (!check_value(cursor))
			return false;
	} while (take(cursor, ','));
	return take(cursor, ']');
}

static bool check_value(struct cursor *cursor)
{
	struct bytes text;

	if (cursor->at == cursor->end || cursor->depth >= JCS_DEPTH_LIMIT)
		return false;
	switch (*cursor->at) {
	case '"':
		return check_string(cursor, &text);
	case '{':
	case '[': {
		bool object = *cursor->at++ == '{';
		cursor->depth++;
		bool good = object ? check_object(cursor) : check_array(cursor);
		cursor->depth--;
		return good;
	}
	case 't':
		return take_word(cursor, "true", 4);
	case 'f':
		return take_word(cursor, "false", 5);
	case 'n':
		return take_word(cursor, "null", 4);
	default:
		return check_number(cursor);
	}
}

bool jcs_is_canonical(struct bytes document)
{
	struct cursor cursor = over(document);

	return document.size > 0 && check_value(&cursor) && cursor.at == cursor.end;
}

struct bytes jcs_member(struct bytes document, const char *key)
{
	struct cursor cursor = over(document);
	struct bytes name;

	if (document.size == 0 || !take(&cursor, '{'))
		return BYTES_NONE;
	do {
		if (!check_string(&cursor, &name) || !take(&cursor, ':'))
			return BYTES_NONE;
		const char *start = cursor.at;
		if (!check_value(&cursor))
			return BYTES_NONE;
		if (bytes_equal(name, bytes_of(key)))
			return (struct bytes){start, (size_t)(cursor.at - start)};
	} while (take(&cursor, ','));
	return BYTES_NONE;
}

bool jcs_string(struct bytes value, struct buf *out)
{
	struct cursor cursor = over(value);
	struct bytes text;

	if (value.size == 0 || !check_string(&cursor, &text) || cursor.at != cursor.end)
		return false;
	while (text.size > 0) {
		const char *start = text.data;
		uint32_t code = next_code(&text);
		/* Only what is ASCII has an escape. */
		if (*start == '\\')
			buf_append_char(out, (char)code);
		else
			buf_append(out, start, (size_t)(text.data - start));
	}
	return !out->failed;
}

bool jcs_element(struct bytes *rest, struct bytes *out)
{
	struct cursor cursor = over(*rest);

	if (rest->size == 0 || (!take(&cursor, '[') && !take(&cursor, ',')))
		return false;
	const char *start = cursor.at;
	if (!check_value(&cursor))
		return false;
	*out = (struct bytes){start, (size_t)(cursor.at - start)};
	*rest = (struct bytes){cursor.at, (size_t)(cursor.end - cursor.at)};
	return true;
}

bool jcs_pair(struct bytes *rest, struct bytes *key, struct bytes *value)
{
	struct cursor cursor = over(*rest);

	if (rest->size == 0 || (!take(&cursor, '{') && !take(&cursor, ',')) || !check_string(&cursor, key) ||
	    !take(&cursor, ':'))
		return false;
	const char *start = cursor.at;
	if (!check_value(&cursor))
		return false;
	*value = (struct bytes){start, (size_t)(cursor.at - start)};
	*rest = (struct bytes){cursor.at, (size_t)(cursor.end - cursor.at)};
	return true;
}
