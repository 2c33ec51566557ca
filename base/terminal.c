#include "base/text.h"

struct range {
	uint32_t first, last;
};

/*
 * Code points that a terminal or its font lets hide, reorder or overwrite text: an agent could name a file so that a
 * line reads as something else. Sorted.
 */
static const struct range terminal_hidden[] = {
    {0x00, 0x1f},       /* C0 controls */
    {0x7f, 0xa0},       /* delete, C1 controls, no-break space */
    {0xad, 0xad},       /* soft hyphen */
    {0x34f, 0x34f},     /* combining grapheme joiner */
    {0x61c, 0x61c},     /* Arabic letter mark */
    {0x115f, 0x1160},   /* Hangul fillers */
    {0x1680, 0x1680},   /* Ogham space */
    {0x17b4, 0x17b5},   /* Khmer inherent vowels */
    {0x180b, 0x180f},   /* Mongolian selectors */
    {0x2000, 0x200f},   /* spaces, zero-width characters, direction marks */
    {0x2028, 0x202f},   /* line and paragraph separators, bidirectional embeddings and overrides, narrow space */
    {0x205f, 0x206f},   /* mathematical space, word joiner, invisible operators, bidirectional isolates */
    {0x2800, 0x2800},   /* blank Braille pattern */
    {0x3164, 0x3164},   /* Hangul filler */
    {0xfdd0, 0xfdef},   /* noncharacters */
    {0xfe00, 0xfe0f},   /* variation selectors */
    {0xfeff, 0xfeff},   /* byte order mark */
    {0xffa0, 0xffa0},   /* half-width Hangul filler */
    {0xfff0, 0xfffb},   /* interlinear annotation */
    {0xfffe, 0xffff},   /* noncharacters */
    {0x1bca0, 0x1bca3}, /* shorthand format controls */
    {0x1d173, 0x1d17a}, /* musical format controls */
    {0xe0000, 0xe0fff}, /* tags, more variation selectors */
};

/* East Asian wide and full-width blocks, and emoji, from EastAsianWidth.txt. Sorted. */
static const struct range terminal_wide[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},   {0x23f0, 0x23f0},
    {0x23f3, 0x23f3},   {0x25fd, 0x25fe},   {0x2614, 0x2615},   {0x2648, 0x2653},   {0x267f, 0x267f},
    {0x2693, 0x2693},   {0x26a1, 0x26a1},   {0x26aa, 0x26ab},   {0x26bd, 0x26be},   {0x26c4, 0x26c5},
    {0x26ce, 0x26ce},   {0x26d4, 0x26d4},   {0x26ea, 0x26ea},   {0x26f2, 0x26f3},   {0x26f5, 0x26f5},
    {0x26fa, 0x26fa},   {0x26fd, 0x26fd},   {0x2705, 0x2705},   {0x270a, 0x270b},   {0x2728, 0x2728},
    {0x274c, 0x274c},   {0x274e, 0x274e},   {0x2753, 0x2755},   {0x2757, 0x2757},   {0x2795, 0x2797},
    {0x27b0, 0x27b0},   {0x27bf, 0x27bf},   {0x2b1b, 0x2b1c},   {0x2b50, 0x2b50},   {0x2b55, 0x2b55},
    {0x2e80, 0x303e},   {0x3041, 0x4dbf},   {0x4e00, 0xa4cf},   {0xa960, 0xa97c},   {0xac00, 0xd7a3},
    {0xf900, 0xfaff},   {0xfe10, 0xfe19},   {0xfe30, 0xfe6f},   {0xff01, 0xff60},   {0xffe0, 0xffe6},
    {0x16fe0, 0x18cff}, {0x1aff0, 0x1b2ff}, {0x1f004, 0x1f004}, {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f18e},
    {0x1f191, 0x1f19a}, {0x1f200, 0x1f265}, {0x1f300, 0x1f320}, {0x1f32d, 0x1f335}, {0x1f337, 0x1f37c},
    {0x1f37e, 0x1f393}, {0x1f3a0, 0x1f3ca}, {0x1f3cf, 0x1f3d3}, {0x1f3e0, 0x1f3f0}, {0x1f3f4, 0x1f3f4},
    {0x1f3f8, 0x1f43e}, {0x1f440, 0x1f440}, {0x1f442, 0x1f4fc}, {0x1f4ff, 0x1f53d}, {0x1f54b, 0x1f54e},
    {0x1f550, 0x1f567}, {0x1f57a, 0x1f57a}, {0x1f595, 0x1f596}, {0x1f5a4, 0x1f5a4}, {0x1f5fb, 0x1f64f},
    {0x1f680, 0x1f6c5}, {0x1f6cc, 0x1f6cc}, {0x1f6d0, 0x1f6d2}, {0x1f6d5, 0x1f6df}, {0x1f6eb, 0x1f6ec},
    {0x1f6f4, 0x1f6fc}, {0x1f7e0, 0x1f7f0}, {0x1f90c, 0x1f93a}, {0x1f93c, 0x1f945}, {0x1f947, 0x1f9ff},
    {0x1fa70, 0x1faff}, {0x20000, 0x2fffd}, {0x30000, 0x3fffd},
};

/* Combining marks of the scripts that file names are likely to use. Sorted. */
static const struct range terminal_combining[] = {
    {0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x5bf, 0x5bf},   {0x5c1, 0x5c2},   {0x5c4, 0x5c5},
    {0x610, 0x61a},   {0x64b, 0x65f},   {0x670, 0x670},   {0x6d6, 0x6dc},   {0x93c, 0x93c},   {0x941, 0x948},
    {0x94d, 0x94d},   {0xe31, 0xe31},   {0xe34, 0xe3a},   {0xe47, 0xe4e},   {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},
    {0x20d0, 0x20f0}, {0x302a, 0x302d}, {0x3099, 0x309a}, {0xfe20, 0xfe2f},
};

static bool in_ranges(const struct range *ranges, size_t count, uint32_t code_point)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (code_point > ranges[middle].last)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && code_point >= ranges[low].first;
}
#define IN_RANGES(ranges, code_point) in_ranges(ranges, sizeof(ranges) / sizeof((ranges)[0]), code_point)

static bool terminal_shows(uint32_t code_point)
{
	if (code_point >= 0x20 && code_point < 0x7f)
		return true;
	if ((code_point & 0xfffe) == 0xfffe)
		return false;
	return !IN_RANGES(terminal_hidden, code_point);
}

/* Take the next code point off `rest`; one byte of what is not UTF-8, with `valid` false. */
static struct bytes take(struct bytes *rest, uint32_t *code_point, bool *valid)
{
	size_t size = text_utf8_decode(*rest, code_point);
	*valid = size != 0;
	if (size == 0) {
		*code_point = (unsigned char)rest->data[0];
		size = 1;
	}
	struct bytes taken = {rest->data, size};
	rest->data += size;
	rest->size -= size;
	return taken;
}

void text_for_terminal(struct buf *out, struct bytes bytes)
{
	while (bytes.size != 0) {
		uint32_t code_point;
		bool valid;
		struct bytes taken = take(&bytes, &code_point, &valid);
		if (code_point == '\\')
			buf_append_text(out, "\\\\");
		else if (valid && terminal_shows(code_point))
			buf_append_bytes(out, taken);
		else if (code_point == '\n')
			buf_append_text(out, "\\n");
		else if (code_point == '\t')
			buf_append_text(out, "\\t");
		else if (!valid || code_point < 0x80)
			buf_append_format(out, "\\x%02x", (unsigned)code_point);
		else
			buf_append_format(out, "\\u{%04x}", (unsigned)code_point);
	}
}

enum shell_quoting { SHELL_BARE, SHELL_QUOTED, SHELL_ESCAPED };

static bool shell_is_plain(uint32_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && c < 0x80 && strchr("_@%+=:,./-", (int)c));
}

static enum shell_quoting shell_quoting(struct bytes bytes)
{
	/* An equals sign after nothing but a name would be an assignment, not a word. */
	enum shell_quoting quoting = bytes.size == 0 ? SHELL_QUOTED : SHELL_BARE;
	bool name = true;
	while (bytes.size != 0) {
		uint32_t code_point;
		bool valid;
		take(&bytes, &code_point, &valid);
		if (!valid || !terminal_shows(code_point))
			return SHELL_ESCAPED;
		if (!shell_is_plain(code_point) || (name && code_point == '='))
			quoting = SHELL_QUOTED;
		if (code_point < 0x80 && strchr("@%:,./-", (int)code_point))
			name = false;
	}
	return quoting;
}

static void shell_append_quoted(struct buf *out, struct bytes bytes)
{
	buf_append_char(out, '\'');
	for (size_t i = 0; i < bytes.size; i++) {
		if (bytes.data[i] == '\'')
			buf_append_text(out, "'\\''");
		else
			buf_append_char(out, bytes.data[i]);
	}
	buf_append_char(out, '\'');
}

static void shell_append_escaped(struct buf *out, struct bytes bytes)
{
	buf_append_text(out, "$'");
	while (bytes.size != 0) {
		uint32_t code_point;
		bool valid;
		struct bytes taken = take(&bytes, &code_point, &valid);
		if (code_point == '\\' || code_point == '\'')
			buf_append_char(out, '\\');
		if (valid && terminal_shows(code_point)) {
			buf_append_bytes(out, taken);
		} else if (code_point == '\n') {
			buf_append_text(out, "\\n");
		} else if (code_point == '\t') {
			buf_append_text(out, "\\t");
		} else {
			/* Not \xHH: POSIX leaves open where it ends when another hexadecimal digit follows. */
			for (size_t i = 0; i < taken.size; i++)
				buf_append_format(out, "\\%03o", (unsigned)(unsigned char)taken.data[i]);
		}
	}
	buf_append_char(out, '\'');
}

void text_shell_word(struct buf *out, struct bytes bytes)
{
	switch (shell_quoting(bytes)) {
	case SHELL_BARE:
		buf_append_bytes(out, bytes);
		break;
	case SHELL_QUOTED:
		shell_append_quoted(out, bytes);
		break;
	case SHELL_ESCAPED:
		shell_append_escaped(out, bytes);
		break;
	}
}

size_t text_width(struct bytes escaped)
{
	size_t width = 0;
	while (escaped.size != 0) {
		uint32_t code_point;
		bool valid;
		take(&escaped, &code_point, &valid);
		if (IN_RANGES(terminal_combining, code_point))
			continue;
		width += IN_RANGES(terminal_wide, code_point) ? 2 : 1;
	}
	return width;
}
