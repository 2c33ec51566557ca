/*
 * Text made of any bytes: what goes to a terminal is UTF-8 without anything that a terminal obeys or hides, and both
 * it and the shell word say exactly the bytes they were made of.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool condition)
{
	if (!condition)
		abort();
}

static void check_shown(struct bytes text)
{
	while (text.size != 0) {
		uint32_t c;
		size_t size = text_utf8_decode(text, &c);
		check(size != 0);
		check(c >= 0x20 && !(c >= 0x7f && c <= 0x9f));
		check(!(c >= 0x200b && c <= 0x200f) && !(c >= 0x2028 && c <= 0x202e) && !(c >= 0x2066 && c <= 0x2069));
		check(c != 0xfeff && !(c >= 0xe0000 && c <= 0xe007f));
		text.data += size;
		text.size -= size;
	}
}

static unsigned number(const char **at, size_t digits, int base)
{
	char text[9] = {0};
	check(digits < sizeof(text));
	memcpy(text, *at, digits);
	*at += digits;
	char *end;
	unsigned long value = strtoul(text, &end, base);
	check(end == text + digits);
	return (unsigned)value;
}

static void append_code_point(struct buf *out, uint32_t c)
{
	check(c >= 0x80);
	if (c >= 0x10000) {
		buf_append_char(out, (char)(0xf0 | c >> 18));
		buf_append_char(out, (char)(0x80 | (c >> 12 & 63)));
	} else if (c >= 0x800) {
		buf_append_char(out, (char)(0xe0 | c >> 12));
	}
	buf_append_char(out, c >= 0x800 ? (char)(0x80 | (c >> 6 & 63)) : (char)(0xc0 | c >> 6));
	buf_append_char(out, (char)(0x80 | (c & 63)));
}

/* Undo one escape; `at` is after the backslash. */
static void append_unescaped(struct buf *out, const char **at)
{
	char c = *(*at)++;
	if (c == 'n') {
		buf_append_char(out, '\n');
	} else if (c == 't') {
		buf_append_char(out, '\t');
	} else if (c == 'x') {
		buf_append_char(out, (char)number(at, 2, 16));
	} else if (c == 'u') {
		check(*(*at)++ == '{');
		append_code_point(out, number(at, strcspn(*at, "}"), 16));
		++*at;
	} else if (c >= '0' && c <= '3') {
		--*at;
		buf_append_char(out, (char)number(at, 3, 8));
	} else {
		check(c == '\\' || c == '\'');
		buf_append_char(out, c);
	}
}

static void check_terminal(struct bytes in)
{
	struct buf shown CLEANUP_BUF = {0}, back CLEANUP_BUF = {0};
	text_for_terminal(&shown, in);
	check_shown(buf_bytes(&shown));
	check(text_width(buf_bytes(&shown)) <= 2 * shown.size);
	for (const char *at = buf_bytes(&shown).data; *at;) {
		char c = *at++;
		if (c == '\\')
			append_unescaped(&back, &at);
		else
			buf_append_char(&back, c);
	}
	check(!shown.failed && bytes_equal(buf_bytes(&back), in));
}

static void check_shell(struct bytes in)
{
	struct buf word CLEANUP_BUF = {0}, back CLEANUP_BUF = {0};
	text_shell_word(&word, in);
	check_shown(buf_bytes(&word));
	check(word.size != 0);
	enum { BARE, QUOTED, ESCAPED } mode = BARE;
	for (const char *at = word.data; *at;) {
		char c = *at++;
		if (mode == BARE && c == '$' && *at == '\'') {
			mode = ESCAPED;
			at++;
		} else if (c == '\'') {
			mode = mode == BARE ? QUOTED : BARE;
		} else if (c == '\\' && mode == BARE) {
			buf_append_char(&back, *at++);
		} else if (c == '\\' && mode == ESCAPED) {
			append_unescaped(&back, &at);
		} else {
			check(mode != BARE || (c > ' ' && !strchr("|&;<>()$`\"*?[]#~{}!^", c)));
			buf_append_char(&back, c);
		}
	}
	check(mode == BARE && !word.failed && bytes_equal(buf_bytes(&back), in));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = {(const char *)data, size};
	check_terminal(in);
	check_shell(in);
	bool valid = text_is_utf8(in);
	struct buf shown CLEANUP_BUF = {0};
	text_for_terminal(&shown, in);
	check(valid || memchr(buf_bytes(&shown).data, '\\', shown.size));
	return 0;
}
