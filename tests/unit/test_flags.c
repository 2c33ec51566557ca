#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "decode/flags.h"
#include "kernel_constants.h"

enum { LIMIT = 16 };

/* The names of a word, joined by "|", and what is left of it in hex. */
static void check(enum flag_set set, uint64_t word, const char *expected)
{
	const char *names[LIMIT];
	uint64_t rest = 0;
	char text[512] = "";
	size_t used = 0;

	size_t count = flags_names(set, word, names, LIMIT, &rest);
	for (size_t i = 0; i < count; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i == 0 ? "" : "|", names[i]);
	if (rest != 0)
		snprintf(text + used, sizeof(text) - used, "%s%#llx", used == 0 ? "" : "|", (unsigned long long)rest);
	assert_string_equal(text, expected);
}

static void test_open(void **state)
{
	(void)state;
	check(FLAGSET_open, 0, "O_RDONLY");
	check(FLAGSET_open, O_WRONLY | O_CREAT | O_TRUNC, "O_WRONLY|O_CREAT|O_TRUNC");
	check(FLAGSET_open, O_ACCMODE, "O_ACCMODE");
	check(FLAGSET_open, O_RDWR | O_SYNC, "O_RDWR|O_SYNC");
	check(FLAGSET_open, O_RDWR | O_DSYNC, "O_RDWR|O_DSYNC");
	check(FLAGSET_open, O_RDWR | O_TMPFILE, "O_RDWR|O_TMPFILE");
	check(FLAGSET_open, O_DIRECTORY | O_CLOEXEC, "O_RDONLY|O_DIRECTORY|O_CLOEXEC");
	check(FLAGSET_open, KERNEL_O_LARGEFILE, "O_RDONLY|O_LARGEFILE");
	check(FLAGSET_open, O_WRONLY | 0x40000000, "O_WRONLY|0x40000000");
}

static void test_fields(void **state)
{
	(void)state;
	check(FLAGSET_map, MAP_SHARED, "MAP_SHARED");
	check(FLAGSET_map, MAP_SHARED_VALIDATE | MAP_SYNC, "MAP_SHARED_VALIDATE|MAP_SYNC");
	check(FLAGSET_map, MAP_PRIVATE | MAP_ANONYMOUS, "MAP_PRIVATE|MAP_ANONYMOUS");
	check(FLAGSET_prot, PROT_NONE, "PROT_NONE");
	check(FLAGSET_prot, PROT_READ | PROT_EXEC, "PROT_READ|PROT_EXEC");
	check(FLAGSET_socket_type, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
	      "SOCK_STREAM|SOCK_NONBLOCK|SOCK_CLOEXEC");
	check(FLAGSET_socket_type, SOCK_RAW, "SOCK_RAW");
	check(FLAGSET_clone, CLONE_NEWUSER | CLONE_NEWNS | SIGCHLD, "SIGCHLD|CLONE_NEWNS|CLONE_NEWUSER");
	check(FLAGSET_clone, CLONE_NEWTIME, "CLONE_NEWTIME");
	check(FLAGSET_mount, MS_MGC_VAL | MS_BIND | MS_REC, "MS_BIND|MS_REC|MS_MGC_VAL");
	check(FLAGSET_mount, MS_PRIVATE, "MS_PRIVATE");
	check(FLAGSET_at, AT_REMOVEDIR, "AT_REMOVEDIR");
	check(FLAGSET_at, 0, "");
	check(FLAGSET_rename, RENAME_EXCHANGE | 0x100, "RENAME_EXCHANGE|0x100");
	check(FLAGSET_none, 5, "0x5");
}

static void test_room(void **state)
{
	(void)state;
	const char *names[2];
	uint64_t rest = 0;

	assert_int_equal(flags_names(FLAGSET_open, O_WRONLY | O_CREAT, names, 0, &rest), 0);
	assert_int_equal(rest, O_WRONLY | O_CREAT);
	assert_int_equal(flags_names(FLAGSET_open, ~UINT64_C(0), names, 2, &rest), 2);
	assert_int_not_equal(rest, 0);
}

static void test_values(void **state)
{
	(void)state;
	assert_string_equal(flags_enum_name(FLAGSET_family, AF_NETLINK), "AF_NETLINK");
	assert_string_equal(flags_enum_name(FLAGSET_family, AF_UNIX), "AF_UNIX");
	assert_string_equal(flags_enum_name(FLAGSET_prctl, PR_SET_DUMPABLE), "PR_SET_DUMPABLE");
	assert_string_equal(flags_enum_name(FLAGSET_fcntl, F_ADD_SEALS), "F_ADD_SEALS");
	assert_string_equal(flags_enum_name(FLAGSET_ioctl, FS_IOC_SETFLAGS), "FS_IOC_SETFLAGS");
	assert_string_equal(flags_enum_name(FLAGSET_ioctl, TIOCSTI), "TIOCSTI");
	assert_null(flags_enum_name(FLAGSET_ioctl, 0xfd00));
	assert_string_equal(flags_enum_name(FLAGSET_bpf, BPF_PROG_LOAD), "BPF_PROG_LOAD");
	assert_string_equal(flags_enum_name(FLAGSET_quota, (uint32_t)Q_SETQUOTA << 8 | 1), "Q_SETQUOTA");
	assert_string_equal(flags_enum_name(FLAGSET_ipc_cmd, 0x100 | IPC_RMID), "IPC_RMID");
	assert_string_equal(flags_enum_name(FLAGSET_reboot, LINUX_REBOOT_CMD_RESTART), "LINUX_REBOOT_CMD_RESTART");
	assert_null(flags_enum_name(FLAGSET_family, 63));
	assert_null(flags_enum_name(FLAGSET_none, 0));
}

static void test_signals(void **state)
{
	(void)state;
	char buffer[SIGNAL_NAME_SIZE];

	assert_string_equal(flags_signal_name(SIGTERM, buffer), "SIGTERM");
	assert_string_equal(flags_signal_name(SIGRTMIN, buffer), "SIGRTMIN");
	assert_string_equal(flags_signal_name(SIGRTMIN + 3, buffer), "SIGRTMIN+3");
	assert_string_equal(flags_signal_name(32, buffer), "SIG32");
	assert_null(flags_signal_name(0, buffer));
	assert_null(flags_signal_name(65, buffer));
	assert_null(flags_signal_name(-1, buffer));
}

/* Two names for one value of a set would make the one that is shown depend on the order of the lines. */
static void test_unambiguous(void **state)
{
	(void)state;
	static const struct {
		enum flag_set set;
		uint64_t mask, value;
		const char *name;
	} lines[] = {
#define FLAG(set_, name_) {FLAGSET_##set_, (uint32_t)(name_), (uint32_t)(name_), #name_},
#define FIELD(set_, mask_, name_) {FLAGSET_##set_, (uint32_t)(mask_), (uint32_t)(name_), #name_},
#define NUMBER(set_, name_, value_) {FLAGSET_##set_, (value_), (value_), #name_},
#include "flags.def"
	};
	size_t count = sizeof(lines) / sizeof(lines[0]);
	int doubled = 0;
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < i; j++)
			if (lines[i].set == lines[j].set && lines[i].mask == lines[j].mask &&
			    lines[i].value == lines[j].value) {
				print_error("%s and %s\n", lines[j].name, lines[i].name);
				doubled++;
			}
	assert_int_equal(doubled, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_open),   cmocka_unit_test(test_fields),  cmocka_unit_test(test_room),
	    cmocka_unit_test(test_values), cmocka_unit_test(test_signals), cmocka_unit_test(test_unambiguous),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
