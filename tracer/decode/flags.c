#include "decode/flags.h"

#include <stdio.h>
#include <string.h>

#include "kernel_constants.h"

/* A word that matches under `mask` has the name. */
struct flag {
	enum flag_set set;
	uint64_t mask, value;
	const char *name;
};

/* Constants are int or unsigned, by header; none is wider than 32 bits, and bit 31 is no sign. */
#define BITS(value) ((uint64_t)(uint32_t)(value))

static const struct flag flags[] = {
#define FLAG(set_, name_) {FLAGSET_##set_, BITS(name_), BITS(name_), #name_},
#define FIELD(set_, mask_, name_) {FLAGSET_##set_, BITS(mask_), BITS(name_), #name_},
#define NUMBER(set_, name_, value_) {FLAGSET_##set_, BITS(value_), BITS(value_), #name_},
#include "flags.def"
#undef FLAG
#undef FIELD
#undef NUMBER
};

/* The requests of ioctl(2) are named by the list that says what they do. */
static const struct request {
	const char *syscall;
	uint64_t mask, value;
	const char *name;
} requests[] = {
#define VARIANT(syscall_, argument_, mask_, value_, ...) {#syscall_, BITS(mask_), BITS(value_), #value_},
#include "variants.def"
#undef VARIANT
};

enum { FLAG_TOTAL = sizeof(flags) / sizeof(flags[0]), REQUEST_TOTAL = sizeof(requests) / sizeof(requests[0]) };

static const char *request_name(uint64_t value)
{
	for (size_t i = 0; i < REQUEST_TOTAL; i++)
		if (strcmp(requests[i].syscall, "ioctl") == 0 && requests[i].mask == UINT32_MAX &&
		    requests[i].value == value)
			return requests[i].name;
	return NULL;
}

const char *flags_enum_name(enum flag_set set, uint64_t value)
{
	if (set == FLAGSET_ioctl)
		return request_name(value);
	if (set == FLAGSET_quota)
		value >>= 8; /* below it stands the type of the quota */
	if (set == FLAGSET_ipc_cmd)
		value &= ~(uint64_t)0x100; /* IPC_64, which the C library adds on some machines */
	for (size_t i = 0; i < FLAG_TOTAL; i++)
		if (flags[i].set == set && flags[i].value == value)
			return flags[i].name;
	return NULL;
}

size_t flags_names(enum flag_set set, uint64_t word, const char **names, size_t limit, uint64_t *rest)
{
	const struct flag *matching[FLAG_TOTAL];
	uint64_t values[64];
	uint64_t named = 0;
	size_t count = 0, candidates = 0;

	for (size_t i = 0; i < FLAG_TOTAL; i++)
		if (flags[i].set == set && flags[i].mask != 0 && (word & flags[i].mask) == flags[i].value)
			matching[candidates++] = &flags[i];
	/* The flag with the most bits first: O_SYNC before the O_DSYNC in it. A mask is named once. */
	while (count < limit && count < 64) {
		const struct flag *best = NULL;
		for (size_t i = 0; i < candidates; i++) {
			const struct flag *flag = matching[i];
			if ((flag->mask & named) != 0)
				continue;
			if (best == NULL || __builtin_popcountll(flag->mask) > __builtin_popcountll(best->mask))
				best = flag;
		}
		if (best == NULL)
			break;
		named |= best->mask;
		size_t at = count++;
		for (; at > 0 && values[at - 1] > best->value; at--) {
			values[at] = values[at - 1];
			names[at] = names[at - 1];
		}
		values[at] = best->value;
		names[at] = best->name;
	}
	*rest = word & ~named;
	return count;
}

const char *flags_signal_name(int number, char buffer[SIGNAL_NAME_SIZE])
{
	/* The C library keeps the first two for itself; its SIGRTMIN is the one that programs mean. */
	enum { FIRST_REAL_TIME = 32, LAST_REAL_TIME = 64 };

	if (number >= FIRST_REAL_TIME && number <= LAST_REAL_TIME) {
		unsigned above = (unsigned)number - (unsigned)SIGRTMIN;
		if (number < SIGRTMIN)
			snprintf(buffer, SIGNAL_NAME_SIZE, "SIG%u", (unsigned)number % 100);
		else if (above == 0)
			return "SIGRTMIN";
		else
			snprintf(buffer, SIGNAL_NAME_SIZE, "SIGRTMIN+%u", above % 100);
		return buffer;
	}
	const char *name = sigabbrev_np(number);
	if (name == NULL)
		return NULL;
	snprintf(buffer, SIGNAL_NAME_SIZE, "SIG%s", name);
	return buffer;
}
