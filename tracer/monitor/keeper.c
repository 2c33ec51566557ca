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
#include "os/procfs.h"
#include "os/tree.h"

/* Blocked like SIGCHLD, and taken in turn with it. Nobody of the tree may send us any. */
enum { MONITOR_DIED = SIGTERM };

/*
 * Nobody sees any more what the tree does. The guardian ends it, unless it was killed as well (by the kernel, for want of
 * memory): then nobody but us is left to.
 */
static _Noreturn void end_all(void)
{
	tree_end(NULL, 0);
	_exit(125);
}

static void report(int reports, enum message_type type, uint64_t first, uint64_t second)
{
	struct message message = {.type = type, .fields = {{.number = first}, {.number = second}}};

	if (!message_send(reports, &message, NULL))
		end_all();
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

/* False when there is none. */
static bool report_children(int reports)
{
	for (;;) {
		siginfo_t child = {0};
		if (waitid(P_ALL, 0, &child, WEXITED | WSTOPPED | WNOHANG | __WALL) != 0)
			return errno == EINTR;
		if (child.si_pid == 0)
			return true;
		report_child(reports, &child);
	}
}

_Noreturn void keeper_main(int reports, pid_t command, pid_t monitor)
{
	int keep[] = {reports, procfs_root()};
	sigset_t signals;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	/* A reader of the command's output must see its end although we live on. */
	for (int fd = 0; fd <= 2 && null >= 0; fd++)
		(void)dup2(null, fd);
	fd_close_from(3, keep, 2);
	(void)prctl(PR_SET_NAME, "assure-keeper");
	/* In the command's session, so that a process group of its own is no orphan to the terminal; in no job of it. */
	(void)setpgid(0, 0);
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, MONITOR_DIED);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 || prctl(PR_SET_PDEATHSIG, MONITOR_DIED) != 0 ||
	    getppid() != monitor)
		end_all();
	/* Not to be looked into or traced by others of the same user; the command was forked before, and is not concerned. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	report(reports, MESSAGE_child_begun, command > 0 ? (uint64_t)command : 0, 0);
	while (report_children(reports)) {
		siginfo_t news;
		if (sigwaitinfo(&signals, &news) == MONITOR_DIED)
			end_all();
	}
	/*
	 * Childless: every process of the tree descends from us, so nothing of it is left. Ending here, and being waited for,
	 * hands the tree's processor time up to whoever waits for us all.
	 */
	_exit(0);
}
