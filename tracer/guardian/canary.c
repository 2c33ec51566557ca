#include "canary.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

/* Both get the signal from the same loop in the kernel; what is left is how long the canary takes to be scheduled. */
enum { PATIENCE_MS = 100, NICETY_MS = 10 };

struct report {
	int signal;
	pid_t sender;
};

_Noreturn static void sing(int out, pid_t guardian)
{
	sigset_t all;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd <= 2 && null >= 0; fd++)
		(void)dup2(null, fd);
	fd_close_from(3, &out, 1);
	sigfillset(&all);
	int signals = signalfd(-1, &all, SFD_CLOEXEC);
	(void)prctl(PR_SET_NAME, "assure-canary");
	(void)prctl(PR_SET_DUMPABLE, 0);
	if (signals < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != guardian)
		_exit(125);
	for (;;) {
		struct signalfd_siginfo info;
		if (read(signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
			_exit(125);
		struct report report = {(int)info.ssi_signo, (pid_t)info.ssi_pid};
		if (!fd_write_full(out, &report, sizeof(report)))
			_exit(0);
	}
}

void canary_start(struct canary *canary)
{
	int pair[2];
	pid_t guardian = getpid();

	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) != 0)
		return;
	canary->pid = fork();
	if (canary->pid == 0)
		sing(pair[1], guardian);
	close(pair[1]);
	canary->reports = pair[0];
	if (canary->pid < 0)
		fd_close(&canary->reports);
}

bool canary_heard(struct canary *canary, int signal, pid_t sender)
{
	for (int waited = 0; canary->pid > 0 && waited < PATIENCE_MS; waited += NICETY_MS) {
		struct pollfd wait = {canary->reports, POLLIN, 0};
		struct report report;
		if (poll(&wait, 1, NICETY_MS) <= 0)
			continue;
		ssize_t size = read(canary->reports, &report, sizeof(report));
		if (size == 0)
			canary->pid = -1; /* gone, with the group perhaps */
		/* Reports of what the terminal sent are passed over: nobody asks about those. */
		if (size == (ssize_t)sizeof(report) && report.signal == signal && report.sender == sender)
			return true;
	}
	return false;
}

void canary_end(struct canary *canary)
{
	if (canary->pid > 0) {
		(void)kill(canary->pid, SIGKILL);
		(void)waitpid(canary->pid, NULL, 0);
	}
	canary->pid = -1;
	fd_close(&canary->reports);
}
