#include "os/table.h"

#include <string.h>

#include "kernel_constants.h"

#define ARG(kind, name)           \
	{                         \
		ARG_##kind, #name \
	}

const struct syscall_row syscall_rows[] = {
#define SYSCALL(name_, x86_64_, aarch64_, effect_, handling_, lens_, when_, special_, status_, test_, ...) \
	{                                                                                                  \
	    .name = #name_,                                                                                \
	    .number_x86_64 = (x86_64_),                                                                    \
	    .number_aarch64 = (aarch64_),                                                                  \
	    .effect = EFFECT_##effect_,                                                                    \
	    .handling = HANDLING_##handling_,                                                              \
	    .lens = LENS_##lens_,                                                                          \
	    .when = WHEN_##when_,                                                                          \
	    .special = SPECIAL_##special_,                                                                 \
	    .status = STATUS_##status_,                                                                    \
	    .test = #test_,                                                                                \
	    .args = {__VA_ARGS__},                                                                         \
	},
#include "syscalls.def"
#undef SYSCALL
};

const size_t syscall_row_count = sizeof(syscall_rows) / sizeof(syscall_rows[0]);

enum variant_row {
#define SYSCALL(name_, x86_64_, ...) ROW_##name_ = (x86_64_),
#include "syscalls.def"
#undef SYSCALL
};

static const struct syscall_variant variants[] = {
#define VARIANT(syscall_, argument_, mask_, value_, effect_, handling_) \
	{ROW_##syscall_, (argument_), (mask_), (value_), EFFECT_##effect_, HANDLING_##handling_},
#include "variants.def"
#undef VARIANT
};

static const int numbers_without_effect[] = {
#define NO_EFFECT(name_, number_, because_) (number_),
#include "no-effect.def"
#undef NO_EFFECT
};

enum { NUMBER_LIMIT = 1024 };

int syscall_number(const struct syscall_row *row)
{
#if defined(__x86_64__)
	return row->number_x86_64;
#elif defined(__aarch64__)
	return row->number_aarch64;
#else
#error "no system call numbers for this architecture"
#endif
}

int syscall_highest_known(void)
{
	static int highest;

	if (highest != 0)
		return highest;
	int found = 0;
	for (size_t i = 0; i < syscall_row_count; i++)
		if (syscall_number(&syscall_rows[i]) > found)
			found = syscall_number(&syscall_rows[i]);
	for (size_t i = 0; i < sizeof(numbers_without_effect) / sizeof(numbers_without_effect[0]); i++)
		if (numbers_without_effect[i] > found)
			found = numbers_without_effect[i];
	highest = found;
	return highest;
}

const struct syscall_row *syscall_row_find(int number)
{
	static const struct syscall_row *by_number[NUMBER_LIMIT];
	static bool filled;

	if (!__atomic_load_n(&filled, __ATOMIC_ACQUIRE)) {
		/* Threads that race here store the same pointers. */
		for (size_t i = 0; i < syscall_row_count; i++) {
			int own = syscall_number(&syscall_rows[i]);
			if (own >= 0 && own < NUMBER_LIMIT)
				__atomic_store_n(&by_number[own], &syscall_rows[i], __ATOMIC_RELAXED);
		}
		__atomic_store_n(&filled, true, __ATOMIC_RELEASE);
	}
	return number >= 0 && number < NUMBER_LIMIT ? by_number[number] : NULL;
}

const struct syscall_row *syscall_row_of(uint32_t arch, int number)
{
	return arch == SYSCALL_NATIVE_ARCH ? syscall_row_find(number) : NULL;
}

const struct syscall_variant *syscall_variant_find(const struct syscall_row *row, const uint64_t args[SYSCALL_ARGS])
{
	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		const struct syscall_variant *variant = &variants[i];
		if (variant->row_number == row->number_x86_64 &&
		    (args[variant->argument] & variant->mask) == variant->value)
			return variant;
	}
	return NULL;
}

static const char *const lens_names[] = {
#define LENS(identifier, name, meaning) name,
#include "lenses.def"
#undef LENS
};

const char *lens_name(enum lens lens)
{
	return lens_names[lens];
}

/* The place of a name in its vocabulary; `count` when it has none. */
static size_t place_of(const char *name, const char *const *names, size_t count)
{
	size_t i = 0;

	while (i < count && strcmp(name, names[i]) != 0)
		i++;
	return i;
}

bool lens_find(const char *name, enum lens *lens)
{
	*lens = (enum lens)place_of(name, lens_names, LENS_COUNT);
	return *lens != LENS_COUNT;
}

static const char *const results_names[] = {
#define RESULTS(identifier, name, meaning) name,
#include "results.def"
#undef RESULTS
};

const char *results_name(enum results results)
{
	return results_names[results];
}

bool results_find(const char *name, enum results *results)
{
	*results = (enum results)place_of(name, results_names, RESULTS_COUNT);
	return *results != RESULTS_COUNT;
}
