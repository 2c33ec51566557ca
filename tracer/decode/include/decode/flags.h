/*
 * Names of flag words and selectors, from specs/flagsets.def and specs/flags.def.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum flag_set {
#define FLAGSET(identifier, ...) FLAGSET_##identifier,
#include "flagsets.def"
#undef FLAGSET
	FLAGSET_COUNT
};

/* The name of one value; NULL when the set has none for it. */
const char *flags_enum_name(enum flag_set set, uint64_t value);

/*
 * The names in a flag word, ordered by value: at most `limit` of them go to `names`; their number is returned. Bits
 * that got no name, for want of one or of room, are left in `rest`.
 */
size_t flags_names(enum flag_set set, uint64_t word, const char **names, size_t limit, uint64_t *rest);

enum { SIGNAL_NAME_SIZE = 16 };

/* "SIGTERM", "SIGRTMIN+3"; NULL when there is no such signal. The text is static or in `buffer`. */
const char *flags_signal_name(int number, char buffer[SIGNAL_NAME_SIZE]);
