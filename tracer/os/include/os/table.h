/*
 * specs/syscalls.def as a value: one row per system call that can have an effect. The filter, the decoder and the
 * coverage page all read these rows; no other list of system calls exists.
 */
#pragma once

#include <linux/audit.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger/effect.h"

enum lens {
#define LENS(identifier, ...) LENS_##identifier,
#include "lenses.def"
#undef LENS
	LENS_COUNT
};

/* What --results asks for. */
enum results {
#define RESULTS(identifier, ...) RESULTS_##identifier,
#include "results.def"
#undef RESULTS
	RESULTS_COUNT
};

enum handling {
#define HANDLING(identifier, ...) HANDLING_##identifier,
#include "handlings.def"
#undef HANDLING
	HANDLING_COUNT
};

enum condition {
#define WHEN(identifier, ...) WHEN_##identifier,
#define RULE(...)
#include "conditions.def"
#undef WHEN
#undef RULE
	CONDITION_COUNT
};

enum special {
#define SPECIAL(identifier, ...) SPECIAL_##identifier,
#include "specials.def"
#undef SPECIAL
	SPECIAL_COUNT
};

enum arg_kind {
#define ARGKIND(identifier, ...) ARG_##identifier,
#include "args.def"
#undef ARGKIND
	ARG_KIND_COUNT
};

enum syscall_status { STATUS_tested, STATUS_attempt };

enum { SYSCALL_ARGS = 6 };

/* AUDIT_ARCH_* of the calls that the table is about. */
#if defined(__x86_64__)
#define SYSCALL_NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SYSCALL_NATIVE_ARCH AUDIT_ARCH_AARCH64
#endif

struct syscall_arg {
	enum arg_kind kind;
	const char *name; /* NULL past the last one */
};

struct syscall_row {
	const char *name;
	int number_x86_64, number_aarch64; /* -1 when the architecture lacks it */
	enum effect_kind effect;
	enum handling handling;
	enum lens lens;
	enum condition when;
	enum special special;
	enum syscall_status status;
	const char *test;
	struct syscall_arg args[SYSCALL_ARGS];
};

/* A value of one argument that gives the call another effect, or another handling (specs/variants.def). */
struct syscall_variant {
	int row_number; /* x86-64 number of the row */
	unsigned argument;
	uint64_t mask, value;
	enum effect_kind effect;
	enum handling handling;
};

extern const struct syscall_row syscall_rows[];
extern const size_t syscall_row_count;

/* Highest number of this architecture that the table or the no-effect list knows; above it a call is foreign. */
int syscall_highest_known(void);
/* The row of a number of the native architecture; NULL when it is not in the table. */
const struct syscall_row *syscall_row_find(int number);
/* The same for a call as the kernel reports it: NULL also for another architecture's. */
const struct syscall_row *syscall_row_of(uint32_t arch, int number);
/* The first variant of the row whose argument matches, or NULL. */
const struct syscall_variant *syscall_variant_find(const struct syscall_row *row, const uint64_t args[SYSCALL_ARGS]);
/* The native number of a row, or -1. */
int syscall_number(const struct syscall_row *row);
const char *lens_name(enum lens lens);
bool lens_find(const char *name, enum lens *lens);
const char *results_name(enum results results);
bool results_find(const char *name, enum results *results);
