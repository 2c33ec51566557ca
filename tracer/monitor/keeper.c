#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/message.h"

static void report(int reports, enum message_type type, uint64_t first, uint64_t second)
{
	struct message message = {.type = type, .fields = {{.number = first}, {.number = second}}};

	if (!message_send(reports, &message, NULL))
		_exit(125);
}

static void report_child(int reports, const siginfo_t *child)
{
	uint64_t pid = (uint64_t)child->si_pid;

	if (child->si_code == CLD_STOPPED) {
		report(reports, MESSAGE_child_stopped, pid, (uint64_t)child->si_status);
		return;
	}
	int status = child->si_code == CLD_EXITED ? (child->si_status & 0xff) << 8 : child->si_status;
	if (child->si_code == CLD_DUMPED)
		status |= 0x80;
	report(reports, MESSAGE_child_ended, pid, (uint64_t)(uint32_t)status);
}

_Noreturn void keeper_main(int reports, pid_t command, pid_t monitor)
{
	int keep[] = {reports};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	/* A reader of the command's output must see its end although we live on. */
	for (int fd = 0; fd <= 2 && null >= 0; fd++)
		(void)dup2(null, fd);
	fd_close_from(3, keep, 1);
	(void)prctl(PR_SET_NAME, "assure-keeper");
	/* In the command's session, so that a process group of its own is no orphan to the terminal; in no job of it. */
	(void)setpgid(0, 0);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
	    getppid() != monitor)
		_exit(125);
	/* Not to be looked into or traced by others of the same user; the command was forked before, and is not concerned. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	report(reports, MESSAGE_child_begun, command > 0 ? (uint64_t)command : 0, 0);
	for (;;) {
		siginfo_t child = {0};
		if (waitid(P_ALL, 0, &child, WEXITED | WSTOPPED | __WALL) == 0)
			report_child(reports, &child);
		else if (errno != EINTR)
			break;
	}
	/*
	 * Childless: every process of the tree descends from us, so nothing of it is left. Ending here, and being waited for,
	 * hands the tree's processor time up to whoever waits for us all.
	 */
	_exit(0);
}
