/*
 * Standing in for the command towards the shell: stop when it stops, die as it died.
 */
#include "terminal.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guardian/guardian.h"

/* Let `signal` have its default effect on this process now. */
static void suffer(int signal)
{
	sigset_t one;
	struct sigaction action = {.sa_handler = SIG_DFL};

	sigemptyset(&one);
	sigaddset(&one, signal);
	(void)sigaction(signal, &action, NULL);
	(void)raise(signal);
	(void)sigprocmask(SIG_UNBLOCK, &one, NULL);
	(void)sigprocmask(SIG_BLOCK, &one, NULL);
}

void terminal_stop_like(int signal)
{
	suffer(signal);
}

_Noreturn void guardian_exit_like(int wait_status)
{
	if (WIFSIGNALED(wait_status)) {
		/* The command left its core dump; a second one of ours would only confuse. */
		struct rlimit none = {0, 0};
		(void)setrlimit(RLIMIT_CORE, &none);
		(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
		suffer(WTERMSIG(wait_status));
		_exit(128 + WTERMSIG(wait_status));
	}
	_exit(WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 125);
}
