#include "witness/scan.h"

enum state {
	STATE_VALUE,       /* a value has to come */
	STATE_FIRST_VALUE, /* or the array's end */
	STATE_NAME,        /* a member has to come */
	STATE_FIRST_NAME,  /* or the object's end */
	STATE_COLON,
	STATE_AFTER, /* a comma, or the container's end */
	STATE_STRING,
	STATE_ESCAPE,
	STATE_UNIT, /* the digits of a \u escape */
	STATE_TOKEN,
	STATE_DONE,
	STATE_BROKEN,
};

enum { LEVEL_ARRAY = 1, LEVEL_TAKEN = 2 };

void scan_begin(struct scan *scan, const struct scan_handler *handler, void *context)
{
	/* The arrays are written before they are read: a stream has an event, and so a beginning, for every few bytes. */
	scan->handler = handler;
	scan->context = context;
	scan->depth = scan->passed = scan->raw_depth = 0;
	scan->state = STATE_VALUE;
	scan->want_text = scan->in_name = scan->raw = scan->name_long = false;
	scan->high = scan->unit = 0;
	scan->unit_digits = scan->name_size = scan->token_size = 0;
}

struct bytes scan_name(const struct scan *scan)
{
	return (struct bytes){scan->name, scan->name_size};
}

bool scan_is_empty(const struct scan *scan)
{
	return scan->state == STATE_VALUE && scan->depth == 0;
}

static uint8_t word_of(const struct scan *scan)
{
	static const struct {
		char name[22];
		uint8_t size;
	} words[SCAN_WORD_COUNT] = {
#define WORD(identifier) [WORD_##identifier] = {#identifier, sizeof(#identifier) - 1},
#include "words.def"
#undef WORD
	};

	if (scan->name_long)
		return SCAN_OTHER;
	for (unsigned i = 1; i < SCAN_WORD_COUNT; i++)
		if (words[i].size == scan->name_size && words[i].name[0] == scan->name[0] &&
		    memcmp(words[i].name, scan->name, scan->name_size) == 0)
			return (uint8_t)i;
	return SCAN_OTHER;
}

static bool is_array(const struct scan *scan)
{
	return scan->depth > 0 && (scan->level[scan->depth - 1] & LEVEL_ARRAY);
}

/* --- what comes of a value -------------------------------------------------------------------------------------- */

static unsigned value_begins(struct scan *scan, enum scan_kind kind)
{
	if (scan->passed)
		return SCAN_PASS;
	unsigned wanted = scan->handler->begin(scan->context, scan, kind);
	if ((wanted & SCAN_RAW) && !scan->raw) {
		scan->raw = true;
		scan->raw_depth = scan->depth;
	}
	return wanted;
}

static void value_ended(struct scan *scan)
{
	scan->state = scan->depth == 0 ? STATE_DONE : STATE_AFTER;
}

/* The raw value ends with the byte before `end`, when it is this one. */
static const char *raw_ends(struct scan *scan, const char *from, const char *end)
{
	if (!scan->raw || scan->depth != scan->raw_depth)
		return from;
	scan->raw = false;
	scan->handler->raw(scan->context, (struct bytes){from, (size_t)(end - from)}, true);
	return end;
}

static bool open_container(struct scan *scan, bool array)
{
	unsigned wanted = value_begins(scan, array ? SCAN_ARRAY : SCAN_OBJECT);
	if (scan->depth == SCAN_DEPTH_LIMIT)
		return false;
	/* The step that leads here has no meaning for anybody: neither have those below. */
	if (!scan->passed && scan->depth > 0 && scan->step[scan->depth - 1] == SCAN_OTHER)
		scan->passed = scan->depth;
	scan->level[scan->depth] = (uint8_t)((array ? LEVEL_ARRAY : 0) | (wanted & SCAN_TAKE ? LEVEL_TAKEN : 0));
	scan->step[scan->depth++] = array ? SCAN_ELEMENT : SCAN_OTHER;
	scan->state = array ? STATE_FIRST_VALUE : STATE_FIRST_NAME;
	return true;
}

static bool close_container(struct scan *scan, bool array)
{
	if (scan->depth == 0 || is_array(scan) != array)
		return false;
	scan->depth--;
	if (scan->passed == scan->depth)
		scan->passed = 0;
	if (!scan->passed && (scan->level[scan->depth] & LEVEL_TAKEN))
		scan->handler->end(scan->context, scan);
	value_ended(scan);
	return true;
}

/* --- strings ---------------------------------------------------------------------------------------------------- */

static void string_piece(struct scan *scan, const char *data, size_t size)
{
	if (scan->in_name) {
		size_t room = sizeof(scan->name) - scan->name_size, kept = size < room ? size : room;
		memcpy(scan->name + scan->name_size, data, kept);
		scan->name_size = (uint8_t)(scan->name_size + kept);
		scan->name_long |= kept < size;
	} else if (scan->want_text && size > 0) {
		scan->handler->text(scan->context, scan, (struct bytes){data, size}, false);
	}
}

static void string_code_point(struct scan *scan, uint32_t c)
{
	char utf8[4];
	size_t size = 0;

	if (c < 0x80) {
		utf8[size++] = (char)c;
	} else if (c < 0x800) {
		utf8[size++] = (char)(0xc0 | c >> 6);
	} else if (c < 0x10000) {
		utf8[size++] = (char)(0xe0 | c >> 12);
		utf8[size++] = (char)(0x80 | (c >> 6 & 0x3f));
	} else {
		utf8[size++] = (char)(0xf0 | c >> 18);
		utf8[size++] = (char)(0x80 | (c >> 12 & 0x3f));
		utf8[size++] = (char)(0x80 | (c >> 6 & 0x3f));
	}
	if (c >= 0x80)
		utf8[size++] = (char)(0x80 | (c & 0x3f));
	string_piece(scan, utf8, size);
}

/* A half that has no other stands for nothing: what decoders make of it is U+FFFD. */
static void string_lone_half(struct scan *scan)
{
	if (scan->high)
		string_code_point(scan, 0xfffd);
	scan->high = 0;
}

static void string_unit(struct scan *scan, uint16_t unit)
{
	if (scan->high && unit >= 0xdc00 && unit <= 0xdfff) {
		uint32_t c = 0x10000 + ((uint32_t)(scan->high - 0xd800) << 10) + (unit - 0xdc00u);
		scan->high = 0;
		string_code_point(scan, c);
		return;
	}
	string_lone_half(scan);
	if (unit >= 0xd800 && unit <= 0xdbff)
		scan->high = unit;
	else
		string_code_point(scan, unit >= 0xdc00 && unit <= 0xdfff ? 0xfffd : unit);
}

static bool string_escape(struct scan *scan, char c)
{
	static const char meanings[128] = {['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
					   ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t'};

	scan->state = STATE_STRING;
	if (c == 'u') {
		scan->state = STATE_UNIT;
		scan->unit = 0;
		scan->unit_digits = 0;
		return true;
	}
	string_lone_half(scan);
	char meaning = (unsigned char)c < sizeof(meanings) ? meanings[(unsigned char)c] : 0;
	if (meaning)
		string_piece(scan, &meaning, 1);
	return meaning != 0;
}

static bool string_digit(struct scan *scan, char c)
{
	int digit = c >= '0' && c <= '9'                     ? c - '0'
		    : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
							     : -1;

	if (digit < 0)
		return false;
	scan->unit = (uint16_t)(scan->unit << 4 | digit);
	if (++scan->unit_digits == 4) {
		scan->state = STATE_STRING;
		string_unit(scan, scan->unit);
	}
	return true;
}

static void string_ended(struct scan *scan)
{
	string_lone_half(scan);
	if (scan->in_name) {
		scan->in_name = false;
		scan->step[scan->depth - 1] = scan->passed ? SCAN_OTHER : word_of(scan);
		scan->state = STATE_COLON;
		return;
	}
	if (scan->want_text)
		scan->handler->text(scan->context, scan, BYTES(""), true);
	scan->want_text = false;
	value_ended(scan);
}

/* The plain bytes from `at` on, at least one. Returns where they end: at a quote, a backslash, or the end. */
static const char *string_run(struct scan *scan, const char *at, const char *end)
{
	const char *quote = memchr(at, '"', (size_t)(end - at));
	const char *stop = quote ? quote : end, *backslash = memchr(at, '\\', (size_t)(stop - at));

	if (backslash)
		stop = backslash;
	if (stop > at) {
		string_lone_half(scan);
		string_piece(scan, at, (size_t)(stop - at));
	}
	return stop;
}

/* --- tokens ----------------------------------------------------------------------------------------------------- */

static bool is_token_character(char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '+' || c == '-' || c == '.';
}

static bool token_ended(struct scan *scan)
{
	struct bytes token = {scan->token, scan->token_size};
	char first = token.data[0];

	if (first != '-' && (first < '0' || first > '9') && !bytes_equal(token, BYTES("true")) &&
	    !bytes_equal(token, BYTES("false")) && !bytes_equal(token, BYTES("null")))
		return false;
	if (scan->want_text)
		scan->handler->text(scan->context, scan, token, true);
	scan->want_text = false;
	value_ended(scan);
	return true;
}

/* --- the loop --------------------------------------------------------------------------------------------------- */

/* A value begins with this character. */
static bool begin_value(struct scan *scan, char c)
{
	if (c == '{' || c == '[')
		return open_container(scan, c == '[');
	if (c == '"') {
		scan->want_text = value_begins(scan, SCAN_STRING) & SCAN_TAKE;
		scan->state = STATE_STRING;
		return true;
	}
	if (!is_token_character(c))
		return false;
	scan->want_text = value_begins(scan, SCAN_TOKEN) & SCAN_TAKE;
	scan->token[0] = c;
	scan->token_size = 1;
	scan->state = STATE_TOKEN;
	return true;
}

static bool structural(struct scan *scan, char c)
{
	switch ((enum state)scan->state) {
	case STATE_FIRST_VALUE:
		return c == ']' ? close_container(scan, true) : begin_value(scan, c);
	case STATE_VALUE:
		return begin_value(scan, c);
	case STATE_FIRST_NAME:
	case STATE_NAME:
		if (c == '}' && scan->state == STATE_FIRST_NAME)
			return close_container(scan, false);
		scan->state = STATE_STRING;
		scan->in_name = true;
		scan->name_size = 0;
		scan->name_long = false;
		return c == '"';
	case STATE_COLON:
		scan->state = STATE_VALUE;
		return c == ':';
	case STATE_AFTER:
		if (c != ',')
			return (c == ']' || c == '}') && close_container(scan, c == ']');
		scan->state = is_array(scan) ? STATE_VALUE : STATE_NAME;
		return true;
	default: /* something behind the document */
		return false;
	}
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* One step: returns how far it read, or NULL when the document is broken. `raw` is where the raw piece starts. */
static const char *step(struct scan *scan, const char *at, const char *end, const char **raw)
{
	bool raw_before = scan->raw, good;

	switch ((enum state)scan->state) {
	case STATE_STRING:
		if (*at != '"' && *at != '\\')
			return string_run(scan, at, end);
		if (*at == '\\') {
			scan->state = STATE_ESCAPE;
			return at + 1;
		}
		bool value = !scan->in_name;
		string_ended(scan);
		if (value)
			*raw = raw_ends(scan, *raw, at + 1);
		return at + 1;
	case STATE_ESCAPE:
		return string_escape(scan, *at) ? at + 1 : NULL;
	case STATE_UNIT:
		return string_digit(scan, *at) ? at + 1 : NULL;
	case STATE_TOKEN:
		if (is_token_character(*at)) {
			if (scan->token_size == sizeof(scan->token))
				return NULL;
			scan->token[scan->token_size++] = *at;
			return at + 1;
		}
		if (!token_ended(scan))
			return NULL;
		*raw = raw_ends(scan, *raw, at);
		return at;
	default:
		if (is_space(*at))
			return at + 1;
		bool closes = (*at == ']' || *at == '}') && scan->state != STATE_VALUE;
		good = structural(scan, *at);
		if (!good)
			return NULL;
		if (scan->raw && !raw_before)
			*raw = at;
		else if (closes)
			*raw = raw_ends(scan, *raw, at + 1);
		return at + 1;
	}
}

bool scan_feed(struct scan *scan, struct bytes bytes)
{
	const char *at = bytes.data, *end = bytes.data + bytes.size, *raw = at;

	if (scan->state == STATE_BROKEN)
		return false;
	while (at < end) {
		at = step(scan, at, end, &raw);
		if (!at) {
			scan->state = STATE_BROKEN;
			return false;
		}
	}
	if (scan->raw && raw < end)
		scan->handler->raw(scan->context, (struct bytes){raw, (size_t)(end - raw)}, false);
	return true;
}

bool scan_end(struct scan *scan)
{
	/* A number at the top has no other end. */
	if (scan->state == STATE_TOKEN && scan->depth == 0 && !token_ended(scan))
		scan->state = STATE_BROKEN;
	bool whole = scan->state == STATE_DONE;
	if (whole && scan->raw) {
		scan->raw = false;
		scan->handler->raw(scan->context, BYTES(""), true);
	}
	scan->state = STATE_BROKEN;
	return whole;
}
