/* Syscall user dispatch: the program catches its own call, and makes it in the handler. */
#include "ev.h"

#include <ucontext.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
enum { PR_SET_SYSCALL_USER_DISPATCH = 59 };
#endif
enum { ALLOW = 0, BLOCK = 1 };

static volatile char selector = ALLOW;
static volatile int caught;

static void handle(int number, siginfo_t *info, void *argument)
{
	ucontext_t *context = argument;
	greg_t *registers = context->uc_mcontext.gregs;

	(void)number;
	selector = ALLOW;
	caught = caught + 1;
	long result =
	    syscall(info->si_syscall, registers[REG_RDI], registers[REG_RSI], registers[REG_RDX], registers[REG_R10]);
	registers[REG_RAX] = result < 0 ? -errno : result;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};

	MUST(sigaction(SIGSYS, &action, NULL) == 0);
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, &selector) != 0)
		skip("syscall user dispatch");
	selector = BLOCK;
	long fd = syscall(SYS_openat, AT_FDCWD, "f", O_WRONLY | O_CREAT | O_EXCL, 0644);
	selector = ALLOW;
	MUST(fd >= 0 && size_of("f") == 0);
	did("create f caught=%d", caught);
	return 0;
}
