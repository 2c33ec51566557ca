/*
 * specs/syscalls.def and specs/no-effect.def against the lists of all calls, and against the running kernel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernel_constants.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

#define ARG(kind, name) #kind " " #name
static const struct row {
	const char *name;
	int x86_64, aarch64;
	const char *when, *special, *test;
	const char *args[6];
} rows[] = {
#define SYSCALL(name_, x86_64_, aarch64_, effect_, handling_, lens_, when_, special_, status_, test_, ...) \
	{#name_, x86_64_, aarch64_, #when_, #special_, #test_, {__VA_ARGS__}},
#include "syscalls.def"
#undef SYSCALL
};

static const struct reason {
	const char *name;
	int x86_64;
	const char *because;
} reasons[] = {
#define NO_EFFECT(name_, x86_64_, because_) {#name_, x86_64_, because_},
#include "no-effect.def"
#undef NO_EFFECT
};

static const char *const conditions[] = {
#define WHEN(identifier, meaning) #identifier,
#define RULE(...)
#include "conditions.def"
#undef WHEN
#undef RULE
};

static const struct rule {
	const char *when, *lens;
} rules[] = {
#define WHEN(...)
#define RULE(when_, lens_, ...) {#when_, #lens_},
#include "conditions.def"
#undef WHEN
#undef RULE
};

static const struct variant {
	const char *syscall;
	unsigned argument;
	uint64_t mask, value;
	const char *text;
} variants[] = {
#define VARIANT(syscall_, argument_, mask_, value_, ...) {#syscall_, argument_, mask_, (uint32_t)(value_), #value_},
#include "variants.def"
#undef VARIANT
};

static const char *const specials[] = {
#define SPECIAL(identifier, ...) #identifier,
#include "specials.def"
#undef SPECIAL
};

static const struct row *find_row(const char *name)
{
	for (size_t i = 0; i < LENGTH(rows); i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

static const struct reason *find_reason(const char *name)
{
	for (size_t i = 0; i < LENGTH(reasons); i++)
		if (strcmp(reasons[i].name, name) == 0)
			return &reasons[i];
	return NULL;
}

/* How many lines of the list of an architecture disagree with the tables; their names go to the log. */
static int compare(const char *architecture, bool x86_64, size_t *lines)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/specs/syscalls-%s.list", SOURCE_DIR, architecture);
	FILE *list = fopen(path, "re");
	assert_non_null(list);

	int wrong = 0, last = -1;
	char line[80];
	*lines = 0;
	while (fgets(line, sizeof(line), list)) {
		char *name;
		int number = (int)strtol(line, &name, 10);
		assert_true(name > line && *name == ' ');
		name++;
		name[strcspn(name, "\n")] = 0;
		++*lines;
		const struct row *row = find_row(name);
		const struct reason *reason = find_reason(name);
		bool agrees = number > last && (row != NULL) != (reason != NULL);
		if (agrees && row != NULL)
			agrees = number == (x86_64 ? row->x86_64 : row->aarch64);
		if (agrees && reason != NULL && x86_64)
			agrees = number == reason->x86_64;
		if (!agrees) {
			print_error("%s: %d %s\n", architecture, number, name);
			wrong++;
		}
		last = number;
	}
	assert_true(feof(list));
	fclose(list);
	return wrong;
}

static void test_lists(void **state)
{
	(void)state;
	size_t lines = 0;

	assert_int_equal(compare("x86_64", true, &lines), 0);
	assert_int_equal(lines, LENGTH(rows) + LENGTH(reasons));

	size_t expected = 0;
	for (size_t i = 0; i < LENGTH(rows); i++)
		expected += rows[i].aarch64 >= 0;
	assert_int_equal(compare("aarch64", false, &lines), 0);
	assert_true(lines >= expected);
}

static void test_columns(void **state)
{
	(void)state;
	int wrong = 0;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		bool good = rows[i].test[0] != '\0';
		for (size_t j = 0; j < i; j++)
			good = good && strcmp(rows[i].test, rows[j].test) != 0;
		for (size_t j = 0; j < 6 && rows[i].args[j] != NULL; j++)
			for (size_t k = 0; k < j; k++)
				good = good && strcmp(strchr(rows[i].args[j], ' '), strchr(rows[i].args[k], ' ')) != 0;
		if (!good) {
			print_error("%s: its test, or a name of an argument, occurs twice\n", rows[i].name);
			wrong++;
		}
	}
	for (size_t i = 0; i < LENGTH(reasons); i++)
		if (strlen(reasons[i].because) < 10) {
			print_error("%s: no reason\n", reasons[i].name);
			wrong++;
		}
	assert_int_equal(wrong, 0);
}

static bool used_by_row(const char *condition)
{
	for (size_t i = 0; i < LENGTH(rows); i++)
		if (strcmp(rows[i].when, condition) == 0)
			return true;
	return false;
}

static bool has_rule(const char *condition)
{
	for (size_t i = 0; i < LENGTH(rules); i++)
		if (strcmp(rules[i].when, condition) == 0)
			return true;
	return false;
}

static void test_references(void **state)
{
	(void)state;
	int wrong = 0;

	for (size_t i = 0; i < LENGTH(conditions); i++)
		if (!used_by_row(conditions[i]) || !has_rule(conditions[i])) {
			print_error("condition %s: no row or no rule\n", conditions[i]);
			wrong++;
		}
	for (size_t i = 0; i < LENGTH(rules); i++) {
		bool known = false;
		for (size_t j = 0; j < LENGTH(conditions); j++)
			known = known || strcmp(rules[i].when, conditions[j]) == 0;
		if (!known) {
			print_error("a rule of %s, which is no condition\n", rules[i].when);
			wrong++;
		}
	}
	for (size_t i = 0; i < LENGTH(specials); i++) {
		bool used = false;
		for (size_t j = 0; j < LENGTH(rows); j++)
			used = used || strcmp(rows[j].special, specials[i]) == 0;
		if (!used) {
			print_error("special %s: no row\n", specials[i]);
			wrong++;
		}
	}
	for (size_t i = 0; i < LENGTH(variants); i++) {
		const struct row *row = find_row(variants[i].syscall);
		bool good = row != NULL && variants[i].argument < 6 && row->args[variants[i].argument] != NULL &&
			    (variants[i].value & variants[i].mask) == variants[i].value;
		/* an earlier line that covers this one makes it dead */
		for (size_t j = 0; good && j < i; j++)
			good = strcmp(variants[j].syscall, variants[i].syscall) != 0 ||
			       variants[j].argument != variants[i].argument ||
			       (variants[j].mask & variants[i].mask) != variants[j].mask ||
			       (variants[i].value & variants[j].mask) != variants[j].value;
		if (!good) {
			print_error("variant %s %s: no such argument, or never reached\n", variants[i].syscall,
				    variants[i].text);
			wrong++;
		}
	}
	assert_int_equal(wrong, 0);
}

/* Entry points whose name in the kernel is not that of the call. */
static const struct alias {
	const char *symbol, *name;
} aliases[] = {
    {"newuname", "uname"}, {"newstat", "stat"},        {"newlstat", "lstat"},
    {"newfstat", "fstat"}, {"sendfile64", "sendfile"}, {"umount", "umount2"},
};

/*
 * Entry points that a 64-bit program cannot reach: of 32-bit programs (whose calls are refused as a whole), of other
 * architectures (stubs), and the one for numbers without a call.
 */
static const char *const unreachable[] = {
    "adjtimex_time32",
    "chown16",
    "clock_adjtime32",
    "clock_getres_time32",
    "clock_gettime32",
    "clock_nanosleep_time32",
    "clock_settime32",
    "fadvise64_64",
    "fchown16",
    "fstatfs64",
    "futex_time32",
    "futimesat_time32",
    "getegid16",
    "geteuid16",
    "getgid16",
    "getgroups16",
    "gethostname",
    "getresgid16",
    "getresuid16",
    "getuid16",
    "io_getevents_time32",
    "io_pgetevents_time32",
    "ipc",
    "lchown16",
    "llseek",
    "mmap_pgoff",
    "mq_timedreceive_time32",
    "mq_timedsend_time32",
    "nanosleep_time32",
    "ni_syscall",
    "nice",
    "old_getrlimit",
    "old_mmap",
    "old_msgctl",
    "old_readdir",
    "old_select",
    "old_semctl",
    "old_shmctl",
    "oldumount",
    "olduname",
    "pciconfig_iobase",
    "pciconfig_read",
    "pciconfig_write",
    "ppoll_time32",
    "pselect6_time32",
    "recv",
    "recvmmsg_time32",
    "rt_sigtimedwait_time32",
    "rtas",
    "sched_rr_get_interval_time32",
    "semtimedop_time32",
    "send",
    "setfsgid16",
    "setfsuid16",
    "setgid16",
    "setgroups16",
    "setregid16",
    "setresgid16",
    "setresuid16",
    "setreuid16",
    "setuid16",
    "sgetmask",
    "signal",
    "sigaction",
    "sigpending",
    "sigprocmask",
    "sigsuspend",
    "socketcall",
    "spu_create",
    "spu_run",
    "ssetmask",
    "statfs64",
    "stime",
    "stime32",
    "subpage_prot",
    "sync_file_range2",
    "time32",
    "timer_gettime32",
    "timer_settime32",
    "timerfd_gettime32",
    "timerfd_settime32",
    "utime32",
    "utimensat_time32",
    "utimes_time32",
    "vm86",
    "vm86old",
    "waitpid",
};

static bool is_known(const char *symbol)
{
	static const char *const prefixes[] = {"ia32_", "s390_"};

	for (size_t i = 0; i < LENGTH(aliases); i++)
		if (strcmp(aliases[i].symbol, symbol) == 0)
			symbol = aliases[i].name;
	if (find_row(symbol) != NULL || find_reason(symbol) != NULL)
		return true;
	for (size_t i = 0; i < LENGTH(unreachable); i++)
		if (strcmp(unreachable[i], symbol) == 0)
			return true;
	for (size_t i = 0; i < LENGTH(prefixes); i++)
		if (strncmp(symbol, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

static void test_kernel(void **state)
{
	(void)state;
	static const char prefix[] = "__x64_sys_";
	char line[512], symbol[256];
	int seen = 0, unknown = 0;

	FILE *symbols = fopen("/proc/kallsyms", "re");
	if (symbols == NULL) {
		print_message("skipped: /proc/kallsyms cannot be opened\n");
		skip();
	}
	while (fgets(line, sizeof(line), symbols) != NULL) {
		if (sscanf(line, "%*s %*s %255s", symbol) != 1 || strncmp(symbol, prefix, strlen(prefix)) != 0)
			continue;
		char *name = symbol + strlen(prefix);
		name[strcspn(name, ".")] = '\0'; /* parts of a function that the compiler moved elsewhere */
		seen++;
		if (!is_known(name)) {
			print_error("the running kernel has %s, which is in neither table\n", name);
			unknown++;
		}
	}
	fclose(symbols);
	if (seen == 0) {
		print_message("skipped: /proc/kallsyms names no x86-64 system calls\n");
		skip();
	}
	assert_int_equal(unknown, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_lists),
	    cmocka_unit_test(test_columns),
	    cmocka_unit_test(test_references),
	    cmocka_unit_test(test_kernel),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
