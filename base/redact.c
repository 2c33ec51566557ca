#include "base/redact.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

enum form { FORM_token, FORM_value, FORM_url, FORM_block };
enum alphabet {
	ALPHABET_alnum = 1,
	ALPHABET_word = 2,
	ALPHABET_dotted = 4,
	ALPHABET_upper = 8,
	ALPHABET_token68 = 16,
	ALPHABET_value = 32,
	ALPHABET_line = 64
};
enum demand { DEMAND_none, DEMAND_mixed, DEMAND_dotted };

static const struct secret {
	const char *name, *anchor;
	enum form form;
	enum alphabet alphabet;
	size_t anchor_size, least;
	enum demand demand;
} secrets[] = {
#define SECRET(identifier, name, form, anchor, alphabet, least, demand, help) \
	{name, anchor, FORM_##form, ALPHABET_##alphabet, sizeof(anchor) - 1, least, DEMAND_##demand},
#define SECRET_OPTION(...)
#include "secrets.def"
#undef SECRET
#undef SECRET_OPTION
};

static const char *const options[] = {
#define SECRET(...)
#define SECRET_OPTION(option) option,
#include "secrets.def"
#undef SECRET
#undef SECRET_OPTION
};

enum { SECRETS = sizeof(secrets) / sizeof(secrets[0]), OPTIONS = sizeof(options) / sizeof(options[0]) };
_Static_assert(SECRETS < REDACTION_PATTERN - 1, "a bit for each");

/* How much one pattern may do to one value before the value is withheld whole. */
enum { MATCH_LIMIT = 100000, DEPTH_LIMIT = 1000, HEAP_LIMIT_KIB = 1024 };

struct redactor {
	uint8_t alphabets[256];   /* of which alphabets a byte is */
	uint8_t pairs[65536 / 8]; /* two bytes with which an anchor may begin */
	uint64_t rows[256];       /* by the first byte: the rows whose anchors may begin with it */
	pcre2_code **patterns;
	size_t pattern_count;
	pcre2_match_context *limits;
};

/* --- making one ------------------------------------------------------------------------------------------------- */

static bool between(unsigned c, char first, char last)
{
	return c >= (unsigned char)first && c <= (unsigned char)last;
}

static uint8_t alphabets_of(unsigned c)
{
	bool capital = between(c, 'A', 'Z'), digit = between(c, '0', '9');
	bool alnum = capital || digit || between(c, 'a', 'z');
	bool word = alnum || c == '_' || c == '-';
	bool blank = c <= ' ' || c == 0x7f;
	unsigned of = 0;

	of |= alnum ? ALPHABET_alnum : 0;
	of |= word ? ALPHABET_word : 0;
	of |= word || c == '.' ? ALPHABET_dotted : 0;
	of |= capital || digit ? ALPHABET_upper : 0;
	of |= word || (c && strchr(".~+/=", (int)c)) ? ALPHABET_token68 : 0;
	of |= !blank && !strchr("\"'`&;,)}|<>", (int)c) ? ALPHABET_value : 0;
	of |= c != '\n' && c != '\r' && c != '"' && c != '\'' && c != 0 ? ALPHABET_line : 0;
	return (uint8_t)of;
}

static unsigned lower(unsigned c)
{
	return between(c, 'A', 'Z') ? c + ('a' - 'A') : c;
}

static unsigned upper(unsigned c)
{
	return between(c, 'a', 'z') ? c - ('a' - 'A') : c;
}

static void note_pair(struct redactor *redactor, unsigned first, unsigned second)
{
	unsigned pair = first << 8 | second;

	redactor->pairs[pair / 8] |= (uint8_t)(1U << pair % 8);
}

static void note_anchor(struct redactor *redactor, const struct secret *secret)
{
	unsigned first = (unsigned char)secret->anchor[0], second = (unsigned char)secret->anchor[1];

	const uint64_t bit = UINT64_C(1) << (secret - secrets);

	note_pair(redactor, first, second);
	redactor->rows[first] |= bit;
	if (secret->form != FORM_value)
		return;
	redactor->rows[upper(first)] |= bit;
	note_pair(redactor, upper(first), second);
	note_pair(redactor, first, upper(second));
	note_pair(redactor, upper(first), upper(second));
}

/* The pattern itself may be a secret: only its place among the others is told. */
static bool compile(struct redactor *redactor, const char *pattern, size_t place, struct err *err)
{
	int number;
	PCRE2_SIZE at;
	PCRE2_UCHAR why[128];
	pcre2_code *code =
	    pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_NEVER_BACKSLASH_C, &number, &at, NULL);

	if (!code) {
		pcre2_get_error_message(number, why, sizeof(why));
		return err_set(err, 0, "regular expression %zu is wrong at byte %zu: %s", place + 1, (size_t)at,
			       (const char *)why);
	}
	redactor->patterns[redactor->pattern_count++] = code;
	return true;
}

struct redactor *redactor_new(const char *const *patterns, size_t count, struct err *err)
{
	struct redactor *redactor = calloc(1, sizeof(*redactor));

	if (redactor) {
		redactor->patterns = calloc(count + 1, sizeof(pcre2_code *));
		redactor->limits = pcre2_match_context_create(NULL);
	}
	if (!redactor || !redactor->patterns || !redactor->limits) {
		redactor_free(redactor);
		err_set(err, 0, "no memory for the patterns of secrets");
		return NULL;
	}
	pcre2_set_match_limit(redactor->limits, MATCH_LIMIT);
	pcre2_set_depth_limit(redactor->limits, DEPTH_LIMIT);
	pcre2_set_heap_limit(redactor->limits, HEAP_LIMIT_KIB);
	for (unsigned c = 0; c < 256; c++)
		redactor->alphabets[c] = alphabets_of(c);
	for (size_t i = 0; i < SECRETS; i++)
		note_anchor(redactor, &secrets[i]);
	note_pair(redactor, '-', '-');
	for (size_t i = 0; i < count; i++)
		if (!compile(redactor, patterns[i], i, err)) {
			redactor_free(redactor);
			return NULL;
		}
	return redactor;
}

void redactor_free(struct redactor *redactor)
{
	if (!redactor)
		return;
	for (size_t i = 0; i < redactor->pattern_count; i++)
		pcre2_code_free(redactor->patterns[i]);
	free(redactor->patterns);
	pcre2_match_context_free(redactor->limits);
	free(redactor);
}

/* --- the shapes -------------------------------------------------------------------------------------------------- */

/* A part of the text: [start, end). */
struct part {
	size_t start, end;
};

static bool in(const struct redactor *redactor, struct bytes text, size_t at, enum alphabet alphabet)
{
	return at < text.size && redactor->alphabets[(unsigned char)text.data[at]] & alphabet;
}

static bool anchored(const struct secret *secret, struct bytes text, size_t at)
{
	if (text.size - at < secret->anchor_size)
		return false;
	if (secret->form != FORM_value)
		return memcmp(text.data + at, secret->anchor, secret->anchor_size) == 0;
	for (size_t i = 0; i < secret->anchor_size; i++)
		if (lower((unsigned char)text.data[at + i]) != (unsigned char)secret->anchor[i])
			return false;
	return true;
}

static bool meets(const struct secret *secret, struct bytes token)
{
	bool digit = false, capital = false;

	if (secret->demand == DEMAND_dotted)
		return memchr(token.data, '.', token.size) != NULL;
	if (secret->demand == DEMAND_none)
		return true;
	for (size_t i = 0; i < token.size; i++) {
		digit = digit || between((unsigned char)token.data[i], '0', '9');
		capital = capital || between((unsigned char)token.data[i], 'A', 'Z');
	}
	return digit && capital;
}

static bool find_token(const struct redactor *redactor, const struct secret *secret, struct bytes text, size_t at,
		       struct part *part)
{
	size_t end = at + secret->anchor_size;

	if (at > 0 && in(redactor, text, at - 1, ALPHABET_alnum))
		return false;
	while (in(redactor, text, end, secret->alphabet))
		end++;
	size_t size = end - at - secret->anchor_size;
	*part = (struct part){at, end};
	return size >= secret->least && meets(secret, (struct bytes){text.data + end - size, size});
}

static bool find_value(const struct redactor *redactor, const struct secret *secret, struct bytes text, size_t at,
		       struct part *part)
{
	size_t start = at + secret->anchor_size;

	while (start < text.size && strchr(" \t\"'", text.data[start]) && text.data[start])
		start++;
	/* A variable of the shell is the name of a secret. */
	if (start < text.size && text.data[start] == '$')
		return false;
	size_t end = start;
	while (in(redactor, text, end, secret->alphabet))
		end++;
	*part = (struct part){start, end};
	return end - start >= secret->least;
}

/* RFC 3986, section 3.2.1. */
static bool find_url(struct bytes text, size_t at, struct part *part)
{
	enum { LONG_NAME = 16 };
	size_t start = at + strlen("://"), end = start, name = 0;
	bool named = false, password = false;

	for (size_t i = start; i < text.size && !strchr("/?# \t\n\"'", text.data[i]); i++) {
		if (text.data[i] == '@') {
			end = i;
			named = true;
		} else if (text.data[i] == ':' && !password && !named) {
			name = i;
			password = true;
		}
	}
	*part = (struct part){password ? name + 1 : start, end};
	return named && part->end > part->start && (password || end - start >= LONG_NAME);
}

static const char *search(struct bytes text, size_t from, size_t to, const char *what)
{
	to = to < text.size ? to : text.size;
	return from < to ? memmem(text.data + from, to - from, what, strlen(what)) : NULL;
}

/* RFC 7468. Without an end it goes on to that of the text. */
static bool find_block(struct bytes text, size_t at, struct part *part)
{
	enum { LABEL = 80 };
	const char *label = search(text, at, at + LABEL, "PRIVATE KEY");

	if (!label)
		return false;
	const char *end = search(text, (size_t)(label - text.data), text.size, "-----END ");
	const char *close =
	    end ? search(text, (size_t)(end - text.data) + strlen("-----END "), text.size, "-----") : NULL;
	*part = (struct part){at, close ? (size_t)(close - text.data) + strlen("-----") : text.size};
	return true;
}

static bool find_secret(const struct redactor *redactor, const struct secret *secret, struct bytes text, size_t at,
			struct part *part)
{
	switch (secret->form) {
	case FORM_token:
		return find_token(redactor, secret, text, at, part);
	case FORM_value:
		return find_value(redactor, secret, text, at, part);
	case FORM_url:
		return find_url(text, at, part);
	case FORM_block:
		return find_block(text, at, part);
	}
	return false;
}

/* An option with its value in a line for a shell. */
static bool find_option(const struct redactor *redactor, struct bytes text, size_t at, struct part *part)
{
	if (text.data[at] != '-' || (at > 0 && in(redactor, text, at - 1, ALPHABET_value)))
		return false;
	for (size_t i = 0; i < OPTIONS; i++) {
		size_t size = strlen(options[i]);
		if (text.size - at <= size || memcmp(text.data + at, options[i], size) != 0 ||
		    !strchr(" \t=", text.data[at + size]) || !text.data[at + size])
			continue;
		const struct secret value = {.anchor_size = size + 1, .alphabet = ALPHABET_value, .least = 1};
		return find_value(redactor, &value, text, at, part);
	}
	return false;
}

/* The first row that fits here. */
static int secret_at(const struct redactor *redactor, struct bytes text, size_t at, enum redact_as as,
		     struct part *part)
{
	for (uint64_t rows = redactor->rows[(unsigned char)text.data[at]]; rows != 0; rows &= rows - 1) {
		int i = __builtin_ctzll(rows);
		if ((secrets[i].form != FORM_value || as == REDACT_ARGUMENT) && anchored(&secrets[i], text, at) &&
		    find_secret(redactor, &secrets[i], text, at, part))
			return i;
	}
	return as == REDACT_ARGUMENT && find_option(redactor, text, at, part) ? SECRETS : -1;
}

static void put_marker(struct buf *out, const char *name)
{
	buf_append_text(out, "[withheld:");
	buf_append_text(out, name);
	buf_append_char(out, ']');
}

static bool redact_shapes(const struct redactor *redactor, struct bytes text, enum redact_as as, struct buf *out,
			  redactions *what)
{
	size_t written = 0;
	struct part part;

	for (size_t at = 0; at + 1 < text.size; at++) {
		unsigned pair = (unsigned)(unsigned char)text.data[at] << 8 | (unsigned char)text.data[at + 1];
		if (!(redactor->pairs[pair / 8] & 1U << pair % 8))
			continue;
		int which = secret_at(redactor, text, at, as, &part);
		/* Part of what was withheld already: a user's name and password, of which the name is a token. */
		if (which < 0 || part.start < written)
			continue;
		buf_append(out, text.data + written, part.start - written);
		put_marker(out, redaction_name((unsigned)which));
		*what |= UINT64_C(1) << which;
		written = part.end;
		at = part.end - 1;
	}
	if (written == 0)
		return false;
	buf_append(out, text.data + written, text.size - written);
	return true;
}

/* --- patterns of the user ----------------------------------------------------------------------------------------- */

/* All matches of one pattern. False: there is none. */
static bool redact_pattern(const struct redactor *redactor, const pcre2_code *code, struct bytes text, struct buf *out)
{
	pcre2_match_data *match = pcre2_match_data_create(1, NULL);
	size_t at = 0, written = 0;
	int found = PCRE2_ERROR_NOMEMORY;

	while (match && at <= text.size &&
	       (found = pcre2_match(code, (PCRE2_SPTR)text.data, text.size, at, 0, match, redactor->limits)) >= 0) {
		const PCRE2_SIZE *place = pcre2_get_ovector_pointer(match);
		if (place[1] <= place[0]) { /* nothing, or \K behind its own end */
			at = at + 1;
			continue;
		}
		buf_append(out, text.data + written, place[0] - written);
		put_marker(out, "pattern");
		at = written = place[1];
	}
	pcre2_match_data_free(match);
	if (found >= 0 || found == PCRE2_ERROR_NOMATCH) {
		buf_append(out, text.data + written, text.size - written);
		return written > 0;
	}
	/* It could not be decided: nobody shall be able to bring a secret through by making its search expensive. */
	buf_reset(out);
	put_marker(out, "pattern");
	return true;
}

static bool redact_patterns(const struct redactor *redactor, struct bytes text, struct buf *out)
{
	struct buf next CLEANUP_BUF = {.limit = out->limit};
	bool any = false;

	for (size_t i = 0; i < redactor->pattern_count; i++) {
		buf_reset(&next);
		if (!redact_pattern(redactor, redactor->patterns[i], any ? buf_bytes(out) : text, &next))
			continue;
		struct buf last = *out;
		*out = next;
		next = last;
		any = true;
	}
	return any;
}

bool redact(const struct redactor *redactor, struct bytes text, enum redact_as as, struct buf *out, redactions *what)
{
	struct buf first CLEANUP_BUF = {.limit = out->limit};

	buf_reset(out);
	if (!text.data)
		return false;
	bool shaped = redact_shapes(redactor, text, as, out, what);
	if (redactor->pattern_count == 0)
		return shaped;
	if (shaped) {
		first = *out;
		*out = (struct buf){.limit = first.limit};
	}
	bool matched = redact_patterns(redactor, shaped ? buf_bytes(&first) : text, out);
	if (matched)
		*what |= UINT64_C(1) << REDACTION_PATTERN;
	if (shaped && !matched) {
		struct buf empty = *out;
		*out = first;
		first = empty;
	}
	return shaped || matched;
}

bool redact_argument(const struct redactor *redactor, struct bytes before, struct bytes argument, struct buf *out,
		     redactions *what)
{
	for (size_t i = 0; i < OPTIONS && before.data && argument.data; i++) {
		if (!bytes_equal(before, bytes_of(options[i])))
			continue;
		buf_reset(out);
		put_marker(out, "option");
		*what |= UINT64_C(1) << SECRETS;
		return true;
	}
	return redact(redactor, argument, REDACT_ARGUMENT, out, what);
}

const char *redaction_name(unsigned bit)
{
	if (bit < SECRETS)
		return secrets[bit].name;
	return bit == SECRETS ? "option" : "pattern";
}

unsigned redaction_count(void)
{
	return SECRETS;
}
