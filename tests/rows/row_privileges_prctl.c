/* The operations of prctl(2) that have an effect. */
#include "row_process.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>

/* Newer than the C library's headers may be. */
#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

struct call {
	const char *name;
	int operation;
	unsigned long arguments[4]; /* arg2 to arg5 */
};

static long try_prctl(const char *kind, const struct call *call)
{
	static const char *const names[] = {"args.arg2", "args.arg3", "args.arg4", "args.arg5"};
	const unsigned long *arguments = call->arguments;
	long result = syscall(SYS_prctl, call->operation, arguments[0], arguments[1], arguments[2], arguments[3]);

	row_expect("prctl", kind, result);
	row_text("args.op", call->name);
	for (int i = 0; i < 4; i++)
		if (arguments[i] != 0)
			row_hex(names[i], arguments[i]);
	row_done();
	return result;
}

#define CALL(operation, ...) (&(struct call){#operation, operation, {__VA_ARGS__}})

/* The root of a user namespace, where the outer one has none. */
static bool some_root(void)
{
	return geteuid() == 0 || unshare(CLONE_NEWUSER) == 0;
}

static void tracing_opened(void)
{
	try_prctl("proc.trace", CALL(PR_SET_DUMPABLE, 1));
	try_prctl("proc.trace", CALL(PR_SET_DUMPABLE, 7));
	row_wanted("prctl", try_prctl("proc.trace", CALL(PR_SET_PTRACER, (unsigned long)getppid())),
		   "PR_SET_PTRACER needs Yama");
	try_prctl("proc.trace", CALL(PR_SET_PTRACER, ROW_NO_PROCESS));
	/* Last: a monitor that is not root cannot look at the process any more. */
	try_prctl("proc.trace", CALL(PR_SET_DUMPABLE, 0));
}

static void privileges_renounced(void)
{
	try_prctl("priv.caps", CALL(PR_SET_NO_NEW_PRIVS, 0));
	try_prctl("priv.caps", CALL(PR_SET_NO_NEW_PRIVS, 1));
	try_prctl("priv.caps", CALL(PR_SET_KEEPCAPS, 1));
	try_prctl("priv.caps", CALL(PR_SET_KEEPCAPS, 2));
	try_prctl("priv.caps", CALL(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL));
	try_prctl("priv.caps", CALL(PR_CAP_AMBIENT, 99));
}

static void capabilities_changed(void)
{
	if (!some_root()) {
		row_skip("prctl", "dropping capabilities needs root or user namespaces");
		return;
	}
	try_prctl("priv.caps", CALL(PR_CAPBSET_DROP, CAP_AUDIT_READ));
	try_prctl("priv.caps", CALL(PR_CAPBSET_DROP, 99));
	try_prctl("priv.caps", CALL(PR_SET_SECUREBITS, SECBIT_NOROOT));
	if (prctl(PR_GET_SECUREBITS) != SECBIT_NOROOT || prctl(PR_CAPBSET_READ, CAP_AUDIT_READ) != 0)
		row_give_up("prctl");
}

static void capabilities_refused(void)
{
	row_be_nobody();
	try_prctl("priv.caps", CALL(PR_CAPBSET_DROP, CAP_AUDIT_READ));
	try_prctl("priv.caps", CALL(PR_SET_SECUREBITS, SECBIT_NOROOT));
	try_prctl("priv.caps", CALL(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL));
	/* before anything of the operation's own is looked at */
	try_prctl("kernel.other", CALL(PR_SET_MM, PR_SET_MM_START_CODE, 4096));
}

static struct sock_fprog *allow_all(void)
{
	static struct sock_filter code[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
	static struct sock_fprog program = {1, code};

	return &program;
}

static void filter_installed(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		row_give_up("PR_SET_NO_NEW_PRIVS");
	try_prctl("priv.filter", CALL(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (unsigned long)allow_all()));
	try_prctl("priv.filter", CALL(PR_SET_SECCOMP, 99));
	try_prctl("priv.filter", CALL(PR_SET_SYSCALL_USER_DISPATCH, 99));
	/* The range from which calls go to the kernel as ever is everything. */
	try_prctl("priv.filter", CALL(PR_SET_SYSCALL_USER_DISPATCH, 1, 0, LONG_MAX));
	try_prctl("priv.filter", CALL(PR_SET_SYSCALL_USER_DISPATCH, 0));
}

static void filter_refused(void)
{
	/* Who is not root is traced only without the right to gain privileges, and may have filters then. */
	if (geteuid() != 0) {
		row_skip("prctl", "EACCES needs root");
		return;
	}
	row_be_nobody();
	try_prctl("priv.filter", CALL(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (unsigned long)allow_all()));
}

static void process_changed(void)
{
	unsigned size = 0;

	try_prctl("kernel.other", CALL(PR_SET_CHILD_SUBREAPER, 1));
	try_prctl("kernel.other", CALL(PR_SET_CHILD_SUBREAPER, 0));
	row_wanted("prctl", try_prctl("kernel.other", CALL(PR_SET_MM, PR_SET_MM_MAP_SIZE, (unsigned long)&size)),
		   "PR_SET_MM needs a kernel with checkpoint and restore");
	try_prctl("kernel.other", CALL(PR_SET_MM, PR_SET_MM_MAP_SIZE, (unsigned long)&size, 0, 1));
}

static void row_prctl(void)
{
	row_apart(tracing_opened);
	row_apart(privileges_renounced);
	row_apart(capabilities_changed);
	row_apart(capabilities_refused);
	row_apart(filter_installed);
	row_apart(filter_refused);
	row_apart(process_changed);

	if (prctl(PR_SET_NAME, "row", 0, 0, 0) != 0 || prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) < 0)
		row_give_up("prctl");
	row_no_effect("prctl", "\"args.op\":\"PR_SET_NAME\"");
	row_no_effect("prctl", "\"args.op\":\"PR_GET_DUMPABLE\"");
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {{"prctl", row_prctl}, {0}};

	return row_main(cases, argc, argv);
}
