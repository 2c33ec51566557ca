/* Starting processes in namespaces, moving between namespaces, tracing; and what only marks. */
#include "row_process.h"

#include <sys/inotify.h>
#include <sys/ptrace.h>

static void expect_flags(const char *row, const char *kind, long result, const char *flags)
{
	row_expect(row, kind, result);
	row_json("flags", flags);
}

/* The call itself: the C library has reasons of its own for the flags it adds. */
static long raw_clone(unsigned long flags)
{
	long pid = syscall(SYS_clone, flags, 0, 0, 0, 0);

	if (pid == 0)
		syscall(SYS_exit, 0);
	if (pid > 0) {
		int error = errno;
		row_wait((pid_t)pid);
		errno = error;
	}
	return pid;
}

static void clone_refused(void)
{
	row_be_nobody();
	expect_flags("clone", "priv.namespace", raw_clone(CLONE_NEWUTS | SIGCHLD), "[\"SIGCHLD\",\"CLONE_NEWUTS\"]");
	row_done();
}

static void row_clone(void)
{
	long made = raw_clone(CLONE_NEWUSER | SIGCHLD);

	expect_flags("clone", "priv.namespace", made, "[\"SIGCHLD\",\"CLONE_NEWUSER\"]");
	row_done();
	row_wanted("clone", made, "needs user namespaces");
	expect_flags("clone", "priv.namespace", raw_clone(CLONE_NEWUSER | CLONE_NEWNS | CLONE_FS | SIGCHLD),
		     "[\"SIGCHLD\",\"CLONE_FS\",\"CLONE_NEWNS\",\"CLONE_NEWUSER\"]");
	row_done();
	row_apart(clone_refused);

	if (raw_clone(SIGCHLD) < 0)
		row_give_up("clone");
	row_no_effect("clone", "\"flags\":[\"SIGCHLD\"]");
}

static void unshare_done(void)
{
	long result = syscall(SYS_unshare, CLONE_NEWUSER | CLONE_NEWUTS);

	expect_flags("unshare", "priv.namespace", result, "[\"CLONE_NEWUTS\",\"CLONE_NEWUSER\"]");
	row_done();
	row_wanted("unshare", result, "needs user namespaces");
}

static void unshare_refused(void)
{
	row_be_nobody();
	expect_flags("unshare", "priv.namespace", syscall(SYS_unshare, CLONE_NEWUTS), "[\"CLONE_NEWUTS\"]");
	row_done();
}

/* Descriptors of its own are nobody else's business. */
static void unshare_quiet(void)
{
	if (syscall(SYS_unshare, CLONE_FILES) != 0)
		row_give_up("unshare");
	row_no_effect("unshare", "\"flags\":[\"CLONE_FILES\"]");
}

static void row_unshare(void)
{
	row_apart(unshare_done);
	row_apart(unshare_refused);
	row_apart(unshare_quiet);
	/* no such flag */
	expect_flags("unshare", "priv.namespace", syscall(SYS_unshare, CLONE_NEWUSER | 1),
		     "[\"CLONE_NEWUSER\",\"0x1\"]");
	row_done();
}

static void try_setns(int fd, int type, const char *flags)
{
	char entry[64], text[64] = "";
	struct stat status;

	snprintf(entry, sizeof(entry), "/proc/self/fd/%d", fd);
	if (readlink(entry, text, sizeof(text) - 1) < 0 || fstat(fd, &status) != 0)
		row_give_up(entry);
	expect_flags("setns", "priv.namespace", syscall(SYS_setns, fd, type), flags);
	row_text("path", text);
	row_inode("", &status);
	row_number("args.fd", fd);
	row_done();
}

static void setns_own(void)
{
	int outer = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);

	if (unshare(CLONE_NEWUSER | CLONE_NEWUTS) != 0) {
		row_skip("setns", "needs user namespaces");
		return;
	}
	int inner = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);
	if (outer < 0 || inner < 0)
		row_give_up("/proc/self/ns/uts");
	try_setns(inner, CLONE_NEWUTS, "[\"CLONE_NEWUTS\"]");
	try_setns(inner, 0, "[]");
	/* a namespace of another type, and one that belongs to the outer user namespace */
	try_setns(inner, CLONE_NEWIPC, "[\"CLONE_NEWIPC\"]");
	try_setns(outer, CLONE_NEWUTS, "[\"CLONE_NEWUTS\"]");
}

static void row_setns(void)
{
	row_apart(setns_own);
}

static void setsid_twice(void)
{
	if (syscall(SYS_setsid) < 0 || syscall(SYS_setsid) != -1 || errno != EPERM)
		row_give_up("setsid");
}

static void row_setsid(void)
{
	row_apart(setsid_twice);
	row_no_effect("setsid", "%s", "");
}

static void row_setpgid(void)
{
	struct row_idle idle = row_idle_start(false);

	if (syscall(SYS_setpgid, idle.pid, 0) != 0)
		row_give_up("setpgid");
	if (syscall(SYS_setpgid, ROW_NO_PROCESS, 0) != -1 || errno != ESRCH)
		row_give_up("setpgid");
	row_idle_end(&idle);
	row_no_effect("setpgid", "%s", "");
}

static void row_umask(void)
{
	mode_t before = (mode_t)syscall(SYS_umask, 027);

	if (syscall(SYS_umask, before) != 027)
		row_give_up("umask");
	row_no_effect("umask", "%s", "");
}

static void row_inotify(const char *name, int fd)
{
	if (fd < 0)
		row_give_up(name);
	close(fd);
	row_no_effect(name, "%s", "");
}

static void row_inotify_init(void)
{
	row_inotify("inotify_init", (int)syscall(SYS_inotify_init));
}

static void row_inotify_init1(void)
{
	if (syscall(SYS_inotify_init1, -1) != -1)
		row_give_up("inotify_init1");
	row_inotify("inotify_init1", (int)syscall(SYS_inotify_init1, IN_CLOEXEC));
}

static void row_pidfd_open(void)
{
	long fd = syscall(SYS_pidfd_open, getpid(), 0);

	if (fd < 0 || syscall(SYS_pidfd_open, ROW_NO_PROCESS, 0) != -1)
		row_give_up("pidfd_open");
	close((int)fd);
	row_no_effect("pidfd_open", "%s", "");
}

static void expect_trace(const char *operation, pid_t pid, long result)
{
	row_expect("ptrace", "proc.trace", result);
	row_text("args.op", operation);
	row_number("target.pid", pid);
	row_done();
}

/* A child that its parent traces from here on, and only once. */
static void trace_me(void)
{
	long first = syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0);

	expect_trace("PTRACE_TRACEME", 0, first);
	if (first != 0)
		_exit(1);
	expect_trace("PTRACE_TRACEME", 0, syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0));
}

static void trace_attach(void)
{
	struct row_idle idle = row_idle_start(false);
	long result = syscall(SYS_ptrace, PTRACE_ATTACH, idle.pid, 0, 0);
	int status;

	expect_trace("PTRACE_ATTACH", idle.pid, result);
	if (result == 0 && waitpid(idle.pid, &status, __WALL) != idle.pid)
		row_give_up("waitpid");
	/* traced already */
	expect_trace("PTRACE_ATTACH", idle.pid, syscall(SYS_ptrace, PTRACE_ATTACH, idle.pid, 0, 0));
	if (syscall(SYS_ptrace, PTRACE_DETACH, idle.pid, 0, 0) != 0)
		row_give_up("PTRACE_DETACH");
	row_idle_end(&idle);
	row_no_effect("ptrace", "\"args.op\":\"PTRACE_DETACH\"");
}

static void trace_seize(void)
{
	struct row_idle idle = row_idle_start(false);

	expect_trace("PTRACE_SEIZE", idle.pid, syscall(SYS_ptrace, PTRACE_SEIZE, idle.pid, 0, 0));
	expect_trace("PTRACE_SEIZE", idle.pid, syscall(SYS_ptrace, PTRACE_SEIZE, idle.pid, 0, 0));
	expect_trace("PTRACE_SEIZE", ROW_NO_PROCESS, syscall(SYS_ptrace, PTRACE_SEIZE, ROW_NO_PROCESS, 0, 0));
	row_idle_end(&idle);
}

static void trace_refused(void)
{
	row_be_nobody();
	struct row_idle idle = row_idle_start(true);
	expect_trace("PTRACE_SEIZE", idle.pid, syscall(SYS_ptrace, PTRACE_SEIZE, idle.pid, 0, 0));
	expect_trace("PTRACE_ATTACH", idle.pid, syscall(SYS_ptrace, PTRACE_ATTACH, idle.pid, 0, 0));
	row_idle_end(&idle);
}

static void row_ptrace(void)
{
	trace_attach();
	trace_seize();
	row_apart(trace_refused);
	row_apart(trace_me);
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {
	    {"clone", row_clone},
	    {"unshare", row_unshare},
	    {"setns", row_setns},
	    {"setsid", row_setsid},
	    {"setpgid", row_setpgid},
	    {"pidfd_open", row_pidfd_open},
	    {"ptrace", row_ptrace},
	    {"umask", row_umask},
	    {"inotify_init", row_inotify_init},
	    {"inotify_init1", row_inotify_init1},
	    {0},
	};

	return row_main(cases, argc, argv);
}
