/*
 * Any bytes, as a name and as an argument behind another one: what is unchanged says nothing, and what changed says what.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/redact.h"

static void try_one(const struct redactor *redactor, struct bytes text, enum redact_as as)
{
	CLEANUP_BUF struct buf out = {.limit = 1 << 20};
	redactions what = 0;

	if (redact(redactor, text, as, &out, &what) != (what != 0))
		abort();
	if (what != 0 && (out.failed || !memmem(out.data, out.size, "[withheld:", strlen("[withheld:"))))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const patterns[] = {"[a-z]{4}[0-9]+", "(x+)+y"};
	static struct redactor *plain, *with;
	CLEANUP_BUF struct buf out = {.limit = 1 << 20};
	struct bytes text = {(const char *)data, size};
	redactions what = 0;

	if (!plain && (!(plain = redactor_new(NULL, 0, NULL)) || !(with = redactor_new(patterns, 2, NULL))))
		abort();
	try_one(plain, text, REDACT_NAME);
	try_one(plain, text, REDACT_ARGUMENT);
	try_one(with, text, REDACT_ARGUMENT);
	const char *end = size > 0 ? memchr(data, 0, size) : NULL;
	if (end) {
		struct bytes before = {text.data, (size_t)(end - text.data)};
		struct bytes after = {end + 1, size - before.size - 1};
		if (redact_argument(plain, before, after, &out, &what) != (what != 0))
			abort();
	}
	return 0;
}
