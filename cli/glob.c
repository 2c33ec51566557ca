#include "glob.h"

#include <stdlib.h>
#include <string.h>

/* The end of the set that begins at `pattern` ('['), or NULL when it has none and is an ordinary character. */
static const char *match_set(const char *pattern, unsigned char c, bool *matched)
{
	const char *at = pattern + 1;
	bool negated = *at == '!' || *at == '^', found = false;
	at += negated;
	for (const char *first = at; *at && (*at != ']' || at == first); at++) {
		unsigned char low = (unsigned char)*at, high = low;
		if (at[1] == '-' && at[2] && at[2] != ']') {
			high = (unsigned char)at[2];
			at += 2;
		}
		found |= c >= low && c <= high;
	}
	if (*at != ']')
		return NULL;
	*matched = found != negated && c != '/';
	return at + 1;
}

/*
 * Names are the agent's: without a memory of what was tried in vain, a pattern of a few stars would take for ever on some.
 */
struct tried {
	const char *pattern, *text; /* where they begin */
	size_t width;
	unsigned char *seen; /* by place in the pattern and in the text; NULL: there was no room for it */
};

static bool is_tried(struct tried *tried, const char *pattern, const char *text)
{
	if (!tried->seen)
		return false;
	size_t at = (size_t)(pattern - tried->pattern) * tried->width + (size_t)(text - tried->text);
	unsigned char bit = (unsigned char)(1u << (at % 8));
	bool seen = tried->seen[at / 8] & bit;
	tried->seen[at / 8] |= bit;
	return seen;
}

static bool match(struct tried *tried, const char *pattern, struct bytes text)
{
	if (is_tried(tried, pattern, text.data))
		return false;
	for (; *pattern; text = (struct bytes){text.data + 1, text.size - 1}) {
		if (pattern[0] == '*' && pattern[1] == '*') {
			pattern += 2;
			if (*pattern == '/' && match(tried, pattern + 1, text))
				return true;
			for (size_t i = 0; i <= text.size; i++)
				if (match(tried, pattern, (struct bytes){text.data + i, text.size - i}))
					return true;
			return false;
		}
		if (*pattern == '*') {
			for (size_t i = 0; i <= text.size; i++) {
				if (match(tried, pattern + 1, (struct bytes){text.data + i, text.size - i}))
					return true;
				if (i < text.size && text.data[i] == '/')
					return false;
			}
			return false;
		}
		if (text.size == 0)
			return false;
		unsigned char c = (unsigned char)text.data[0];
		bool matched = false;
		const char *end = *pattern == '[' ? match_set(pattern, c, &matched) : NULL;
		if (!end) {
			matched = *pattern == '?' ? c != '/' : c == (unsigned char)*pattern;
			end = pattern + 1;
		}
		if (!matched)
			return false;
		pattern = end;
	}
	return text.size == 0;
}

bool glob_match(const char *pattern, struct bytes path)
{
	if (!path.data)
		return false;
	if (!strchr(pattern, '/')) {
		const char *slash = memrchr(path.data, '/', path.size);
		if (slash && strcmp(pattern, "**") != 0)
			path = (struct bytes){slash + 1, path.size - (size_t)(slash + 1 - path.data)};
	}
	struct tried tried = {.pattern = pattern, .text = path.data, .width = path.size + 2};
	size_t places = 0;
	if (!__builtin_mul_overflow(strlen(pattern) + 1, tried.width, &places))
		tried.seen = calloc(1, places / 8 + 1);
	bool matched = match(&tried, pattern, path);
	free(tried.seen);
	return matched;
}
