/* A call is put into a sibling that asked for nothing. */
#include "ev.h"

#include <sys/ptrace.h>
#include <sys/user.h>

static const char name[] = "f";

/* Any place with this instruction will do; int3 gives the victim back. */
__asm__(".text\ninjected:\n\tsyscall\n\tint3\n");
extern const char injected[];

static int await_stop(pid_t pid)
{
	int status;

	MUST(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
	return WSTOPSIG(status);
}

int main(void)
{
	struct user_regs_struct old, changed;

	pid_t victim = fork();
	MUST(victim >= 0);
	if (victim == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	if (ptrace(PTRACE_ATTACH, victim, NULL, NULL) != 0)
		skip("ptrace");
	MUST(await_stop(victim) == SIGSTOP);
	MUST(ptrace(PTRACE_GETREGS, victim, NULL, &old) == 0);
	changed = old;
	changed.rip = (uintptr_t)injected;
	changed.rax = SYS_openat;
	changed.orig_rax = (unsigned long long)-1;
	changed.rdi = (unsigned long long)AT_FDCWD;
	changed.rsi = (uintptr_t)name;
	changed.rdx = O_WRONLY | O_CREAT | O_EXCL;
	changed.r10 = 0644;
	MUST(ptrace(PTRACE_SETREGS, victim, NULL, &changed) == 0);
	MUST(ptrace(PTRACE_CONT, victim, NULL, NULL) == 0);
	MUST(await_stop(victim) == SIGTRAP);
	MUST(ptrace(PTRACE_GETREGS, victim, NULL, &changed) == 0);
	MUST((long long)changed.rax >= 0 && size_of("f") == 0);
	MUST(ptrace(PTRACE_SETREGS, victim, NULL, &old) == 0);
	MUST(ptrace(PTRACE_DETACH, victim, NULL, NULL) == 0);
	kill(victim, SIGKILL);
	join(victim);
	did("create f victim~%d", victim);
	return 0;
}
