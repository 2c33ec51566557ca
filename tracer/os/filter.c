#include "os/filter.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel_constants.h"

#define FOREIGN_BIT 0x40000000u /* x32 numbers */

struct rule {
	enum condition condition;
	enum lens lens;
	unsigned count;
	struct scmp_arg_cmp comparisons[2];
};

#define SET(argument, bits)                                                        \
	{                                                                          \
		(argument), SCMP_CMP_MASKED_EQ, (uint32_t)(bits), (uint32_t)(bits) \
	}
#define IS(argument, mask, value)                                                   \
	{                                                                           \
		(argument), SCMP_CMP_MASKED_EQ, (uint32_t)(mask), (uint32_t)(value) \
	}
#define NOT(argument, value)                        \
	{                                           \
		(argument), SCMP_CMP_NE, (value), 0 \
	}
#define ALWAYS            \
	0,                \
	{                 \
		{         \
			0 \
		}         \
	}
#define ONE(first)    \
	1,            \
	{             \
		first \
	}
#define TWO(first, second)    \
	2,                    \
	{                     \
		first, second \
	}

static const struct rule rules[] = {
#define WHEN(...)
#define RULE(condition_, lens_, ...) {WHEN_##condition_, LENS_##lens_, __VA_ARGS__},
#include "conditions.def"
#undef WHEN
#undef RULE
};

static bool rule_applies(const struct rule *rule, const struct syscall_row *row, enum lens lens)
{
	return rule->condition == row->when && rule->lens <= lens;
}

static bool add_row(scmp_filter_ctx context, const struct syscall_row *row, enum lens lens, struct err *err)
{
	int number = syscall_number(row);

	if (number < 0 || row->lens > lens)
		return true;
	/* A rule without comparisons covers all others of its row; libseccomp would refuse the rest as duplicates. */
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (!rule_applies(&rules[i], row, lens) || rules[i].count != 0)
			continue;
		int status = seccomp_rule_add_array(context, SCMP_ACT_NOTIFY, number, 0, NULL);
		return status == 0 || err_set(err, -status, "adding %s to the system call filter", row->name);
	}
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (!rule_applies(&rules[i], row, lens))
			continue;
		int status =
		    seccomp_rule_add_array(context, SCMP_ACT_NOTIFY, number, rules[i].count, rules[i].comparisons);
		if (status != 0 && status != -EEXIST)
			return err_set(err, -status, "adding %s to the system call filter", row->name);
	}
	return true;
}

/*
 * What libseccomp cannot say: calls of a foreign architecture, and numbers that the table does not know, go to the
 * monitor too, which refuses and records them. They come first, because libseccomp's own program ends the process there.
 */
static unsigned short write_prologue(struct sock_filter out[])
{
	const uint32_t highest = (uint32_t)syscall_highest_known();
	const struct sock_filter prologue[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYSCALL_NATIVE_ARCH, 1, 0),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    /* No call: a tracer has taken it away (PTRACE_SET_SYSCALL), and answers in its place. */
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, UINT32_MAX, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	    BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, highest, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	};
	_Static_assert(FOREIGN_BIT > 1024, "x32 numbers lie above every native one");

	memcpy(out, prologue, sizeof(prologue));
	return sizeof(prologue) / sizeof(prologue[0]);
}

static bool export_program(scmp_filter_ctx context, struct filter *filter, struct err *err)
{
	enum { PROLOGUE_ROOM = 16 };
	int memory CLEANUP_FD = memfd_create("assure-filter", MFD_CLOEXEC);
	if (memory < 0)
		return err_set(err, errno, "making room for the system call filter");

	int status = seccomp_export_bpf(context, memory);
	if (status != 0)
		return err_set(err, -status, "generating the system call filter");
	off_t size = lseek(memory, 0, SEEK_END);
	if (size <= 0 || size % (off_t)sizeof(struct sock_filter) != 0)
		return err_set(err, 0, "generating the system call filter: odd size %lld", (long long)size);
	size_t count = (size_t)size / sizeof(struct sock_filter);
	if (count > BPF_MAXINSNS - PROLOGUE_ROOM)
		return err_set(err, 0, "the system call filter is too long: %zu instructions", count);

	struct sock_filter *instructions = calloc(count + PROLOGUE_ROOM, sizeof(*instructions));
	if (!instructions)
		return err_set(err, ENOMEM, "building the system call filter");
	unsigned short prologue = write_prologue(instructions);
	if (pread(memory, instructions + prologue, (size_t)size, 0) != size) {
		free(instructions);
		return err_set(err, errno, "reading back the system call filter");
	}
	filter->instructions = instructions;
	filter->count = (unsigned short)(prologue + count);
	return true;
}

bool filter_build(struct filter *filter, enum lens lens, struct err *err)
{
	*filter = (struct filter){0};
	scmp_filter_ctx context = seccomp_init(SCMP_ACT_ALLOW);
	if (!context)
		return err_set(err, ENOMEM, "building the system call filter");

	/* 2: a binary tree over the numbers instead of a chain that every call walks. */
	bool done = true;
	int status = seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (status != 0)
		done = err_set(err, -status, "setting up the system call filter");
	for (size_t i = 0; done && i < syscall_row_count; i++)
		done = add_row(context, &syscall_rows[i], lens, err);
	done = done && export_program(context, filter, err);
	seccomp_release(context);
	return done;
}

void filter_free(struct filter *filter)
{
	free(filter->instructions);
	*filter = (struct filter){0};
}

int filter_install(const struct filter *filter, bool *no_new_privs, struct err *err)
{
	const struct sock_fprog program = {filter->count, filter->instructions};
	const unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;

	/* Without no_new_privs set-user-id programs keep working; only root may do that. */
	*no_new_privs = false;
	long listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
	if (listener < 0 && errno == EACCES) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
			return err_set(err, errno, "setting no_new_privs"), -1;
		*no_new_privs = true;
		listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
	}
	if (listener >= 0)
		return (int)listener;

	int number = errno;
	err_set(err, number, "installing the system call filter");
	if (number == EBUSY)
		err_hint(err, "another supervisor (assure itself, or a container's profile) already listens here: run "
			      "assure outside of it");
	else if (number == EINVAL)
		err_hint(err, "the kernel may be older than 5.19; see `assure doctor`");
	return -1;
}
