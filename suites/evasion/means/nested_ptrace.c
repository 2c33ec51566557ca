/* The program traces its own child, call by call, as strace does. */
#include "ev.h"

#include <sys/ptrace.h>
#include <sys/user.h>

static void child(void)
{
	MUST(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
	raise(SIGSTOP);
	make_file("f", "text\n");
	_exit(3);
}

int main(void)
{
	struct user_regs_struct registers;
	int status, stops = 0, opens = 0;

	pid_t pid = fork();
	MUST(pid >= 0);
	if (pid == 0)
		child();
	MUST(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
	MUST(ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD) == 0);
	for (;;) {
		MUST(ptrace(PTRACE_SYSCALL, pid, NULL, NULL) == 0);
		MUST(waitpid(pid, &status, 0) == pid);
		if (!WIFSTOPPED(status))
			break;
		MUST(WSTOPSIG(status) == (SIGTRAP | 0x80));
		MUST(ptrace(PTRACE_GETREGS, pid, NULL, &registers) == 0);
		stops++;
		opens += registers.orig_rax == SYS_openat;
	}
	MUST(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	did("trace child~%d stops=%d opens=%d", pid, stops, opens);
	did("create f");
	return 0;
}
