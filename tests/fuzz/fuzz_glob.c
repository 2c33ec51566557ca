/*
 * Patterns for paths against a second reading of what glob.h says, which keeps a table of what it has found and so
 * takes time by the product of both sizes. Patterns come from the command line, paths from the agent.
 *
 * Input: size of the pattern (1 byte), the pattern, how often the rest is repeated (1), the path.
 */
#include "../../cli/glob.h"
#include "fuzz.h"

enum { PATTERN = 64, PATH = 512 };

struct problem {
	const char *pattern;
	struct bytes path;
	signed char known[PATTERN + 1][PATH + 1]; /* -1: no, 1: yes, 0: not looked at */
};

/* Length of the set at `at`, 0 when it is none; whether it has `c`. */
static size_t set_at(const char *at, unsigned char c, bool *has)
{
	size_t begin = at[1] == '!' || at[1] == '^' ? 2 : 1, end = begin;

	do
		if (!at[end])
			return 0;
	while (at[++end] && at[end] != ']');
	/* The first element may be a bracket, and is one already passed over by the loop. */
	if (at[end] != ']')
		return 0;
	*has = false;
	for (size_t i = begin; i < end; i++) {
		bool range = i + 2 < end && at[i + 1] == '-';
		unsigned char low = (unsigned char)at[i], high = (unsigned char)at[range ? i + 2 : i];
		*has = *has || (low <= c && c <= high);
		i += range ? 2 : 0;
	}
	*has = *has != (begin == 2) && c != '/';
	return end + 1;
}

static bool solve(struct problem *problem, size_t p, size_t t);

static bool solve_anew(struct problem *problem, size_t p, size_t t)
{
	const char *at = problem->pattern + p;
	bool more = t < problem->path.size;
	unsigned char c = more ? (unsigned char)problem->path.data[t] : 0;

	if (!*at)
		return !more;
	if (at[0] == '*' && at[1] == '*') {
		bool found = at[2] == '/' && solve(problem, p + 3, t);
		for (; !found && t <= problem->path.size; t++)
			found = solve(problem, p + 2, t);
		return found;
	}
	if (*at == '*')
		return solve(problem, p + 1, t) || (more && c != '/' && solve(problem, p, t + 1));
	if (!more)
		return false;
	bool has = false;
	size_t set = *at == '[' ? set_at(at, c, &has) : 0;
	if (set)
		return has && solve(problem, p + set, t + 1);
	return (*at == '?' ? c != '/' : c == (unsigned char)*at) && solve(problem, p + 1, t + 1);
}

static bool solve(struct problem *problem, size_t p, size_t t)
{
	signed char *known = &problem->known[p][t];

	if (*known == 0)
		*known = solve_anew(problem, p, t) ? 1 : -1;
	return *known > 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	char pattern[PATTERN + 1] = "", path[PATH];
	struct bytes given = take_bytes(&input, take_number(&input, 1) % PATTERN);
	size_t times = take_number(&input, 1) + 1, used = 0;
	static struct problem problem;

	if (given.size > 0)
		memcpy(pattern, given.data, given.size);
	for (; times > 0 && input.size > 0 && used + input.size <= sizeof(path); times--, used += input.size)
		memcpy(path + used, input.data, input.size);
	problem = (struct problem){.pattern = pattern, .path = {path, used}};
	const char *slash = memrchr(path, '/', used);
	if (!strchr(pattern, '/') && slash && strcmp(pattern, "**") != 0)
		problem.path = (struct bytes){slash + 1, used - (size_t)(slash + 1 - path)};
	need(glob_match(pattern, (struct bytes){path, used}) == solve(&problem, 0, 0));
	need(!glob_match(pattern, BYTES_NONE));
	return 0;
}
