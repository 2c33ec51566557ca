/*
 * What people and agents may call a run: a name that is accepted is one folder entry that hides nothing, and what is
 * typed finds the run that it names and no other, by a second reading of what store.h says.
 *
 * Input: two names of runs (a length byte and its bytes each) that two of the runs bear, and what is typed (the rest).
 */
#include "../../ledger/store_read.h"

#include <sys/stat.h>

#include "fuzz.h"

enum { RUNS = 4 };

static const char *const runs[RUNS] = {"0123456789ABCDEFGHJKMNPQRS", "0123456789ABCDEFGHJKMNPQRT",
				       "0120000000000000000000000A", "ZZZZ0000000000000000000000"};
static int folder = -1;
static char home[64];

static void prepare(void)
{
	char path[64];

	folder = private_folder();
	snprintf(home, sizeof(home), "/proc/self/fd/%d", folder);
	need(mkdirat(folder, "runs", 0700) == 0 && mkdirat(folder, "names", 0700) == 0);
	for (size_t i = 0; i < RUNS; i++) {
		snprintf(path, sizeof(path), "runs/%s", runs[i]);
		need(mkdirat(folder, path, 0700) == 0);
	}
}
PREPARE_BY(prepare)

static bool is_name(const char *name)
{
	struct err err = {.number = 0};
	bool good = store_check_name(name, &err);

	need(good != err_is_set(&err));
	if (!good)
		return false;
	need(*name && strlen(name) < STORE_NAME_SIZE && *name != '.' && *name != '-' && !strchr(name, '/'));
	need(strcmp(name, "last") != 0 && !store_is_run_id(name) && text_is_utf8(bytes_of(name)));
	struct bytes rest = bytes_of(name);
	while (rest.size > 0) {
		uint32_t c;
		size_t size = text_utf8_decode(rest, &c);
		/* No blank, and no control character of either kind. */
		need(c > ' ' && !(c >= 0x7f && c <= 0x9f));
		rest = (struct bytes){rest.data + size, rest.size - size};
	}
	return true;
}

/* A link as the scribe makes it, but to anything. */
static bool give_name(const char *name, const char *to)
{
	char path[512];

	snprintf(path, sizeof(path), "names/%s", name);
	return is_name(name) && symlinkat(to, folder, path) == 0;
}

static void take_name(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "names/%s", name);
	(void)unlinkat(folder, path, 0);
}

static char canonical(char c)
{
	if (c >= 'a' && c <= 'z')
		c = (char)(c - 'a' + 'A');
	if (c == 'O')
		return '0';
	if (c == 'I' || c == 'L')
		return '1';
	return c && strchr("0123456789ABCDEFGHJKMNPQRSTVWXYZ", c) ? c : 0;
}

/* The run that begins so; -1: none, or several. */
static int by_prefix(const char *typed)
{
	size_t size = strlen(typed);
	int found = -1;

	if (size < 4 || size > RUN_ID_SIZE - 1)
		return -1;
	for (int i = 0; i < RUNS; i++) {
		size_t same = 0;
		while (same < size && canonical(typed[same]) == runs[i][same])
			same++;
		if (same < size)
			continue;
		if (found >= 0)
			return -1;
		found = i;
	}
	return found;
}

static void check_found(const char *typed, const char *first, bool named_first, const char *second, bool named_second)
{
	struct err err = {.number = 0};
	char id[RUN_ID_SIZE];
	bool found = store_find(home, typed, id, &err);

	need(found != err_is_set(&err));
	/* Without a file none of them says when it began: the newest folder is as good as another. */
	if (strcmp(typed, "last") == 0) {
		need(found && store_is_run_id(id));
		return;
	}
	int expected = by_prefix(typed);
	if (named_second && strcmp(typed, second) == 0)
		expected = by_prefix(typed); /* its link leads to no run */
	if (named_first && strcmp(typed, first) == 0)
		expected = 2;
	need(found == (expected >= 0) && (!found || strcmp(id, runs[expected]) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	char first[256], second[256], typed[256], outside[32];
	struct open_set before = open_now();

	take_string(&input, first);
	take_string(&input, second);
	struct bytes rest = take_bytes(&input, sizeof(typed) - 1);
	if (rest.size > 0)
		memcpy(typed, rest.data, rest.size);
	typed[rest.size] = 0;
	/* The second is as long as a run's identity, and leads to a folder. */
	snprintf(outside, sizeof(outside), "%s",
		 take_number(&input, 1) & 1 ? "../../../../../../../../../etc" : "../runs/../runs/../runs/..");
	bool named_first = give_name(first, runs[2]);
	bool named_second = give_name(second, outside);
	(void)is_name(typed);
	check_found(typed, first, named_first, second, named_second);
	if (named_first)
		check_found(first, first, named_first, second, named_second);
	if (named_first)
		take_name(first);
	if (named_second)
		take_name(second);
	need_same_open(&before);
	return 0;
}
