/*
 * Processes that are confined by more than their ids: Landlock, filters of their own, securebits, a debugger,
 * memory that others may not read. What these forbid stays forbidden, and what they allow is done.
 */
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>

#include "equal.h"

static void ask_both(const char *label)
{
	static const char *const folders[] = {"allowed", "other", NULL};
	char name[64], moved[64];

	for (int i = 0; folders[i]; i++) {
		snprintf(name, sizeof(name), "%s/%s-file", folders[i], label);
		STEP_CLOSE(open(name, O_WRONLY | O_CREAT | O_EXCL, 0644), "%s: create %s", label, name);
		STEP_CLOSE(open(name, O_WRONLY | O_TRUNC), "%s: truncate by open %s", label, name);
		step(truncate(name, 10), "%s: truncate %s", label, name);
		step(chmod(name, 0600), "%s: chmod %s", label, name);
		snprintf(moved, sizeof(moved), "%s/%s-moved", folders[1 - i], label);
		step(rename(name, moved), "%s: rename to %s", label, moved);
		step(link(name, moved), "%s: link to %s", label, moved);
		snprintf(moved, sizeof(moved), "%s/%s-folder", folders[i], label);
		step(mkdir(moved, 0755), "%s: mkdir %s", label, moved);
		step(rmdir(moved), "%s: rmdir %s", label, moved);
		step(symlink("x", moved), "%s: symlink %s", label, moved);
		step(unlink(moved), "%s: unlink %s", label, moved);
		snprintf(moved, sizeof(moved), "%s/there", folders[i]);
		STEP_CLOSE(open(moved, O_WRONLY), "%s: write %s", label, moved);
		STEP_CLOSE(open(moved, O_RDONLY), "%s: read %s", label, moved);
		STEP_CLOSE(open(folders[i], O_TMPFILE | O_RDWR, 0600), "%s: no name in %s", label, folders[i]);
		snprintf(moved, sizeof(moved), "%s/%s-fifo", folders[i], label);
		step(mkfifo(moved, 0600), "%s: mkfifo %s", label, moved);
	}
}

static void make_both(void)
{
	make_folder("allowed", 0755);
	make_folder("other", 0755);
	make_file("allowed/there", 0644, "text");
	make_file("other/there", 0644, "text");
}

static bool restrict_to_allowed(void)
{
	/* the rights of the first version, which every kernel with Landlock has */
	struct landlock_ruleset_attr rules = {.handled_access_fs = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1};
	int fd = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules.handled_access_fs), 0);

	if (fd < 0) {
		skip("no Landlock: %s", name_of_error(errno));
		return false;
	}
	struct landlock_path_beneath_attr beneath = {.allowed_access = rules.handled_access_fs,
						     .parent_fd = open("allowed", O_PATH)};
	NEED(syscall(SYS_landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) == 0);
	NEED(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	NEED(syscall(SYS_landlock_restrict_self, fd, 0) == 0 && close(fd) == 0 && close(beneath.parent_fd) == 0);
	return true;
}

static void ask_landlocked(void)
{
	ask_both("child");
}

static void landlocked(void)
{
	if (!restrict_to_allowed())
		return;
	ask_both("landlocked");
	in_child("child", ask_landlocked);
}

static int maker_ended[2];

/* With CLONE_PARENT its parent is the parent of who made it, which is free; the rules are its maker's. */
static void landlocked_beside(void)
{
	char byte;

	if (!restrict_to_allowed())
		return;
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
	NEED(pid >= 0);
	if (pid > 0)
		return;
	NEED(close(maker_ended[1]) == 0 && read(maker_ended[0], &byte, 1) == 0);
	ask_both("beside");
	_exit(0);
}

static void confined_landlock_beside(void)
{
	make_both();
	NEED(pipe(maker_ended) == 0);
	in_child("restricted", landlocked_beside);
	NEED(close(maker_ended[1]) == 0);
	say("%s", wait(NULL) > 0 ? "another child" : "no other child");
	ask_both("free");
}

static void confined_landlock(void)
{
	make_both();
	in_child("restricted", landlocked);
	ask_both("free");
}

static long filter_calls(uint32_t number, uint32_t action)
{
	struct sock_filter program[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, action),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog description = {sizeof(program) / sizeof(*program), program};

	NEED(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &description);
}

static void filtered(void)
{
	step(filter_calls(SYS_mkdirat, SECCOMP_RET_ERRNO | ENOTTY), "filter");
	step(syscall(SYS_mkdirat, AT_FDCWD, "a", 0755), "refused by it");
	step(symlink("x", "b"), "not refused");
	step(filter_calls(SYS_mkdirat, SECCOMP_RET_KILL_PROCESS), "filter");
	step(syscall(SYS_unlinkat, AT_FDCWD, "b", 0), "not refused");
	step(syscall(SYS_mkdirat, AT_FDCWD, "a", 0755), "not reached");
}

static void say_trap(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	say("trapped: call %d code %d", info->si_syscall == SYS_mkdirat, info->si_code);
}

static void trapped(void)
{
	struct sigaction action = {.sa_sigaction = say_trap, .sa_flags = SA_SIGINFO};

	NEED(sigaction(SIGSYS, &action, NULL) == 0);
	step(filter_calls(SYS_mkdirat, SECCOMP_RET_TRAP), "filter");
	syscall(SYS_mkdirat, AT_FDCWD, "trapped", 0755);
	facts_of("trapped");
}

static void confined_filter(void)
{
	in_child("refused and killed", filtered);
	in_child("trapped", trapped);
}

static void unreadable(void)
{
	NEED(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
	umask(027);
	ask_both("undumpable");
	NEED(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
	ask_both("dumpable-again");
}

static void confined_memory(void)
{
	make_both();
	in_child("not dumpable", unreadable);
}

static void debugged(void)
{
	NEED(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
	raise(SIGSTOP);
	ask_both("debugged");
	STEP_CLOSE(open("absent/x", O_WRONLY | O_CREAT, 0644), "debugged, failing");
}

/* A debugger of the program's own, which stops its child at each call. */
static void confined_debugger(void)
{
	int status, calls = 0;

	make_both();
	pid_t pid = start_child(debugged);
	NEED(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
	NEED(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD) == 0);
	for (;;) {
		NEED(ptrace(PTRACE_SYSCALL, pid, 0, 0) == 0 && waitpid(pid, &status, 0) == pid);
		if (!WIFSTOPPED(status))
			break;
		calls += WSTOPSIG(status) == (SIGTRAP | 0x80);
	}
	say_end("debugged", status);
	say("stops: %d", calls);
}

static void as_fixed_up(void)
{
	NEED(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
	ask_both("nobody with all capabilities");
}

static void as_not_root(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};

	NEED(prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED) == 0);
	NEED(syscall(SYS_capset, &header, none) == 0);
	STEP_CLOSE(open("secret", O_WRONLY), "a secret of root's is root's still");
	STEP_CLOSE(open("foreign", O_WRONLY), "another's is not");
	step(chown("secret", NOBODY, NOBODY), "give away");
	execl("/bin/sh", "sh", "-c", "(echo x > foreign) 2>/dev/null || echo refused > out", NULL);
}

static void confined_securebits(void)
{
	make_both();
	make_file("secret", 0600, "");
	make_file("foreign", 0600, "");
	NEED(chown("foreign", NOBODY, NOBODY) == 0);
	in_child("no fixup", as_fixed_up);
	in_child("no root", as_not_root);
}

static void confined_priority(void)
{
	struct rlimit none = {0, 0};

	NEED(setpriority(PRIO_PROCESS, 0, 19) == 0);
	NEED(setrlimit(RLIMIT_CORE, &none) == 0 && setrlimit(RLIMIT_MEMLOCK, &none) == 0);
	NEED(setrlimit(RLIMIT_LOCKS, &none) == 0 && setrlimit(RLIMIT_SIGPENDING, &none) == 0);
	make_both();
	ask_both("without resources");
}

static const struct equal_case cases[] = {
    {"confined_landlock", false, confined_landlock}, {"confined_landlock_beside", false, confined_landlock_beside},
    {"confined_filter", false, confined_filter},     {"confined_memory", false, confined_memory},
    {"confined_debugger", false, confined_debugger}, {"confined_securebits", true, confined_securebits},
    {"confined_priority", false, confined_priority}, {NULL},
};

int main(int argc, char **argv)
{
	return equal_main(cases, argc, argv);
}
