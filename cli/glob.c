#include "glob.h"

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

static bool match(const char *pattern, struct bytes text)
{
	for (; *pattern; text = (struct bytes){text.data + 1, text.size - 1}) {
		if (pattern[0] == '*' && pattern[1] == '*') {
			pattern += 2;
			if (*pattern == '/' && match(pattern + 1, text))
				return true;
			for (size_t i = 0; i <= text.size; i++)
				if (match(pattern, (struct bytes){text.data + i, text.size - i}))
					return true;
			return false;
		}
		if (*pattern == '*') {
			for (size_t i = 0; i <= text.size; i++) {
				if (match(pattern + 1, (struct bytes){text.data + i, text.size - i}))
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
	return match(pattern, path);
}
