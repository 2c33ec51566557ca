/* Ids, capabilities, filters, rule sets. Whatever cannot be taken back happens in a child. */
#include "row_process.h"

#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

/* Newer than the C library's headers may be. */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_restrict_self 446
#endif
#ifndef SYS_lsm_set_self_attr
#define SYS_lsm_set_self_attr 460
#endif

enum { LSM_CURRENT = 100, LANDLOCK_ASK_VERSION = 1, LANDLOCK_WRITE_FILE = 2 };

static void expect_ids(const char *row, const char *first, const char *second, const char *third, long id, long result)
{
	row_expect(row, "priv.ids", result);
	row_number(first, id);
	if (second)
		row_number(second, id);
	if (third)
		row_number(third, id);
	row_done();
}

static void change_user(int uid)
{
	expect_ids("setfsuid", "args.fsuid", NULL, NULL, uid, syscall(SYS_setfsuid, uid) >= 0 ? 0 : -1);
	expect_ids("setreuid", "args.ruid", "args.euid", NULL, uid, syscall(SYS_setreuid, uid, uid));
	expect_ids("setresuid", "args.ruid", "args.euid", "args.suid", uid, syscall(SYS_setresuid, uid, uid, uid));
	expect_ids("setuid", "args.uid", NULL, NULL, uid, syscall(SYS_setuid, uid));
}

static void change_group(int gid)
{
	expect_ids("setfsgid", "args.fsgid", NULL, NULL, gid, syscall(SYS_setfsgid, gid) >= 0 ? 0 : -1);
	expect_ids("setregid", "args.rgid", "args.egid", NULL, gid, syscall(SYS_setregid, gid, gid));
	expect_ids("setresgid", "args.rgid", "args.egid", "args.sgid", gid, syscall(SYS_setresgid, gid, gid, gid));
	expect_ids("setgid", "args.gid", NULL, NULL, gid, syscall(SYS_setgid, gid));
}

static void ids_changed(void)
{
	bool root = geteuid() == 0;

	/* Another id where that is allowed, its own where not. Groups first: afterwards nobody may. */
	change_group(root ? ROW_NOBODY : (int)getgid());
	change_user(root ? ROW_NOBODY : (int)getuid());
	if (root && (getuid() != ROW_NOBODY || getegid() != ROW_NOBODY))
		row_give_up("ids");
}

static void ids_refused(void)
{
	row_be_nobody();
	change_group(0);
	change_user(0);
	if (geteuid() == 0 || getegid() == 0)
		row_give_up("ids");
}

/* -1 leaves an id alone, and out of the record. */
static void ids_kept(void)
{
	row_expect("setresuid", "priv.ids", syscall(SYS_setresuid, -1, getuid(), -1));
	char only[64];
	snprintf(only, sizeof(only), "{\"euid\":%u}", getuid());
	row_json("args", only);
	row_done();
}

static void row_ids(void)
{
	row_apart(ids_changed);
	row_apart(ids_refused);
	row_apart(ids_kept);
	row_skip("setfsuid", "it never says that it failed");
	row_skip("setfsgid", "it never says that it failed");
}

static void try_groups(void)
{
	gid_t groups[3] = {7, 8, 4294967294U};

	row_expect("setgroups", "priv.ids", syscall(SYS_setgroups, 3, groups));
	row_number("args.size", 3);
	row_json("args.list", "[7,8,4294967294]");
	row_done();
}

static void groups_refused(void)
{
	row_be_nobody();
	try_groups();
}

static void groups_too_many(void)
{
	static gid_t groups[65537];

	row_expect("setgroups", "priv.ids", syscall(SYS_setgroups, 65537, groups));
	row_number("args.size", 65537);
	row_done();
}

static void row_setgroups(void)
{
	row_apart(try_groups);
	if (geteuid() != 0)
		row_skip("setgroups", "success needs root");
	row_apart(groups_refused);
	groups_too_many();
}

static void try_capset(uint32_t permitted)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct caps[2] = {{0}};

	caps[0].permitted = permitted;
	row_expect("capset", "priv.caps", syscall(SYS_capset, &head, caps));
	row_done();
}

static void capset_refused(void)
{
	row_be_nobody();
	try_capset(1U << CAP_KILL);
}

static void capset_dropped(void)
{
	try_capset(0);
}

static void row_capset(void)
{
	row_apart(capset_dropped);
	row_apart(capset_refused);
}

static struct sock_fprog *allow_all(void)
{
	static struct sock_filter code[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
	static struct sock_fprog program = {1, code};

	return &program;
}

static void expect_seccomp(unsigned operation, const char *name, unsigned flags, const char *flag_names)
{
	row_expect("seccomp", "priv.filter", syscall(SYS_seccomp, operation, flags, allow_all()));
	row_text("args.operation", name);
	row_json("flags", flag_names);
	row_done();
}

static void filter_installed(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		row_give_up("PR_SET_NO_NEW_PRIVS");
	expect_seccomp(SECCOMP_SET_MODE_FILTER, "SECCOMP_SET_MODE_FILTER", SECCOMP_FILTER_FLAG_LOG,
		       "[\"SECCOMP_FILTER_FLAG_LOG\"]");
	expect_seccomp(SECCOMP_SET_MODE_FILTER, "SECCOMP_SET_MODE_FILTER", 1U << 30, "[\"0x40000000\"]");
}

static void filter_refused(void)
{
	/* Who is not root is traced only without the right to gain privileges, and may have filters then. */
	if (geteuid() != 0) {
		row_skip("seccomp", "EACCES needs root");
		return;
	}
	row_be_nobody();
	expect_seccomp(SECCOMP_SET_MODE_FILTER, "SECCOMP_SET_MODE_FILTER", 0, "[]");
}

static void row_seccomp(void)
{
	uint32_t action = SECCOMP_RET_ALLOW;

	row_apart(filter_installed);
	row_apart(filter_refused);
	/* Strict mode takes no flags. Without them it cannot be had where a filter is, which is so in every run. */
	expect_seccomp(SECCOMP_SET_MODE_STRICT, "SECCOMP_SET_MODE_STRICT", SECCOMP_FILTER_FLAG_TSYNC,
		       "[\"SECCOMP_FILTER_FLAG_TSYNC\"]");
	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) != 0)
		row_give_up("SECCOMP_GET_ACTION_AVAIL");
	row_no_effect("seccomp", "\"args.operation\":\"SECCOMP_GET_ACTION_AVAIL\"");
}

static long make_ruleset(size_t size, unsigned flags)
{
	uint64_t handled = LANDLOCK_WRITE_FILE;

	return syscall(SYS_landlock_create_ruleset, flags == LANDLOCK_ASK_VERSION ? NULL : &handled, size, flags);
}

static long expect_ruleset(size_t size)
{
	long result = make_ruleset(size, 0);

	row_expect("landlock_create_ruleset", "priv.landlock", result);
	row_number("args.size", (long long)size);
	if (result >= 0)
		row_number("result.value", result);
	row_done();
	return result;
}

static void row_create_ruleset(void)
{
	long ruleset = expect_ruleset(sizeof(uint64_t));

	row_wanted("landlock_create_ruleset", ruleset, "needs Landlock");
	if (ruleset >= 0)
		close((int)ruleset);
	expect_ruleset(1);
	make_ruleset(0, LANDLOCK_ASK_VERSION);
	row_no_effect("landlock_create_ruleset", "\"args.flags\":\"0x1\"");
}

static void expect_restrict(int fd)
{
	long result = syscall(SYS_landlock_restrict_self, fd, 0);

	row_expect("landlock_restrict_self", "priv.landlock", result);
	row_number("args.ruleset_fd", fd);
	row_done();
}

static void restrict_done(void)
{
	long ruleset = make_ruleset(sizeof(uint64_t), 0);

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		row_give_up("PR_SET_NO_NEW_PRIVS");
	if (ruleset >= 0)
		expect_restrict((int)ruleset);
	else
		row_skip("landlock_restrict_self", "needs Landlock");
	/* a descriptor of something else */
	expect_restrict(0);
}

static void restrict_refused(void)
{
	long ruleset = make_ruleset(sizeof(uint64_t), 0);

	/* As with filters. */
	if (geteuid() != 0) {
		row_skip("landlock_restrict_self", "EPERM needs root");
		return;
	}
	row_be_nobody();
	expect_restrict(ruleset < 0 ? 0 : (int)ruleset);
}

static void row_restrict_self(void)
{
	row_apart(restrict_done);
	row_apart(restrict_refused);
}

static void try_lsm_attr(unsigned attribute, const char *name)
{
	struct {
		uint64_t id, flags, size, context_size;
		char context[8];
	} context = {.size = sizeof(context), .context_size = 5, .context = "none"};

	row_expect("lsm_set_self_attr", "priv.caps",
		   syscall(SYS_lsm_set_self_attr, attribute, &context, sizeof(context), 0));
	row_text("args.attr", name);
	row_number("args.size", sizeof(context));
	row_done();
}

static void row_lsm_set_self_attr(void)
{
	try_lsm_attr(LSM_CURRENT, "LSM_ATTR_CURRENT");
	try_lsm_attr(999, "0x3e7");
	row_skip("lsm_set_self_attr", "success needs a security module with labels, and one of its labels");
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {
	    {"setuid", row_ids},
	    {"setgroups", row_setgroups},
	    {"capset", row_capset},
	    {"seccomp", row_seccomp},
	    {"landlock_create_ruleset", row_create_ruleset},
	    {"landlock_restrict_self", row_restrict_self},
	    {"lsm_set_self_attr", row_lsm_set_self_attr},
	    {0},
	};

	return row_main(cases, argc, argv);
}
