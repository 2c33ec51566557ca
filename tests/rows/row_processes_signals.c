/* Signals to other processes. The receiver says what arrived. */
#include "row_process.h"

#include <pthread.h>
#include <time.h>

/* A child that takes one signal and ends with its number; 0 when none came. */
struct receiver {
	pid_t pid;
	int pidfd;
};

enum { SIGNAL_WAIT = 20 }; /* seconds; far more than anybody needs */

static sigset_t signals_of_interest(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGRTMIN + 3);
	return set;
}

static struct receiver receiver_start(bool own_group)
{
	sigset_t set = signals_of_interest();
	struct timespec limit = {SIGNAL_WAIT, 0};
	int ready[2];
	char byte;

	/* Blocked before the fork: no signal can come too early. */
	if (sigprocmask(SIG_BLOCK, &set, NULL) != 0 || pipe(ready) != 0)
		row_give_up("receiver");
	pid_t pid = fork();
	if (pid == 0) {
		if ((own_group && setpgid(0, 0) != 0) || write(ready[1], "", 1) != 1)
			_exit(99);
		int number = sigtimedwait(&set, NULL, &limit);
		_exit(number < 0 ? 0 : number);
	}
	if (pid < 0 || read(ready[0], &byte, 1) != 1)
		row_give_up("receiver");
	close(ready[0]);
	close(ready[1]);
	return (struct receiver){pid, (int)syscall(SYS_pidfd_open, pid, 0)};
}

/* The truth about a call that said it had sent a signal. */
static void receiver_end(struct receiver *receiver, int expected)
{
	int status = row_wait(receiver->pid);

	close(receiver->pidfd);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != expected) {
		fprintf(stderr, "signal %d did not arrive: status %d\n", expected, status);
		exit(1);
	}
}

static void expect_signal(const char *row, long pid, const char *signal, long result)
{
	row_expect(row, "proc.signal", result);
	row_number("target.pid", pid);
	row_text("args.sig", signal);
}

/* No signal has this number: named by it. */
static void expect_number(const char *row, long pid, int number, long result)
{
	row_expect(row, "proc.signal", result);
	row_number("target.pid", pid);
	row_number("args.sig", number);
}

static void kill_refused(void)
{
	pid_t parent = getppid();

	row_be_nobody();
	expect_signal("kill", parent, "SIGURG", syscall(SYS_kill, parent, SIGURG));
	row_done();
}

/* Everybody in the caller's group: the caller has the signal blocked, the other one takes it. */
static void kill_own_group(void)
{
	if (setpgid(0, 0) != 0)
		row_give_up("setpgid");
	struct receiver one = receiver_start(false);
	expect_signal("kill", 0, "SIGUSR1", syscall(SYS_kill, 0, SIGUSR1));
	row_done();
	receiver_end(&one, SIGUSR1);
}

/* A signal that the C library counts from SIGRTMIN. */
static void kill_real_time(void)
{
	struct receiver one = receiver_start(false);

	expect_signal("kill", one.pid, "SIGRTMIN+3", syscall(SYS_kill, one.pid, SIGRTMIN + 3));
	row_done();
	receiver_end(&one, SIGRTMIN + 3);
}

static void kill_self(void)
{
	pid_t self = getpid();

	if (syscall(SYS_kill, self, SIGURG) != 0)
		row_give_up("kill");
	row_no_effect("kill", "\"target.pid\":%d,\"args.sig\":\"SIGURG\"", self);
}

static void row_kill(void)
{
	struct receiver one = receiver_start(true);

	if (syscall(SYS_kill, one.pid, 0) != 0)
		row_give_up("kill");
	row_no_effect("kill", "\"target.pid\":%d,\"args.sig\":0", one.pid);
	expect_signal("kill", one.pid, "SIGUSR1", syscall(SYS_kill, one.pid, SIGUSR1));
	row_done();
	receiver_end(&one, SIGUSR1);

	struct receiver group = receiver_start(true);
	expect_signal("kill", -group.pid, "SIGUSR2", syscall(SYS_kill, -group.pid, SIGUSR2));
	row_done();
	receiver_end(&group, SIGUSR2);

	struct receiver killed = receiver_start(false);
	expect_number("kill", killed.pid, 100, syscall(SYS_kill, killed.pid, 100));
	row_done();
	expect_signal("kill", killed.pid, "SIGKILL", syscall(SYS_kill, killed.pid, SIGKILL));
	row_done();
	row_wait(killed.pid);

	expect_signal("kill", ROW_NO_PROCESS, "SIGUSR1", syscall(SYS_kill, ROW_NO_PROCESS, SIGUSR1));
	row_done();
	if (geteuid() == 0)
		row_apart(kill_refused);
	else
		row_skip("kill", "EPERM needs root: a process of another user that is ours");
	row_apart(kill_self);
	row_apart(kill_own_group);
	kill_real_time();
}

static void *wait_for_end(void *argument)
{
	int *pipes = argument;
	long tid = syscall(SYS_gettid);
	char byte;

	if (write(pipes[1], &tid, sizeof(tid)) == sizeof(tid))
		(void)!read(pipes[2], &byte, 1);
	return NULL;
}

/* A thread of the caller's own process is no other process. */
static void sibling_quiet(void)
{
	int pipes[4];
	pthread_t thread;
	long tid;

	if (pipe(pipes) != 0 || pipe(pipes + 2) != 0 || pthread_create(&thread, NULL, wait_for_end, pipes) != 0 ||
	    read(pipes[0], &tid, sizeof(tid)) != sizeof(tid))
		row_give_up("sibling");
	if (syscall(SYS_tkill, tid, SIGURG) != 0 || syscall(SYS_tgkill, getpid(), tid, SIGURG) != 0)
		row_give_up("tkill");
	if (write(pipes[3], "", 1) != 1)
		row_give_up("write");
	pthread_join(thread, NULL);
	row_no_effect("tkill", "\"target.pid\":%ld", tid);
	row_no_effect("tgkill", "\"args.tid\":%ld", tid);
}

static void row_tkill(void)
{
	struct receiver one = receiver_start(false);

	expect_number("tkill", one.pid, 100, syscall(SYS_tkill, one.pid, 100));
	row_done();
	expect_signal("tkill", one.pid, "SIGUSR1", syscall(SYS_tkill, one.pid, SIGUSR1));
	row_done();
	receiver_end(&one, SIGUSR1);
	expect_signal("tkill", ROW_NO_PROCESS, "SIGUSR1", syscall(SYS_tkill, ROW_NO_PROCESS, SIGUSR1));
	row_done();
	row_apart(sibling_quiet);
}

static void row_tgkill(void)
{
	struct receiver one = receiver_start(false);

	/* right process, wrong thread */
	expect_signal("tgkill", one.pid, "SIGUSR1", syscall(SYS_tgkill, one.pid, getpid(), SIGUSR1));
	row_number("args.tid", getpid());
	row_done();
	expect_signal("tgkill", one.pid, "SIGUSR2", syscall(SYS_tgkill, one.pid, one.pid, SIGUSR2));
	row_number("args.tid", one.pid);
	row_done();
	receiver_end(&one, SIGUSR2);
}

static siginfo_t queued(int number, int code)
{
	siginfo_t info = {.si_signo = number, .si_code = code};

	info.si_pid = getpid();
	info.si_uid = getuid();
	return info;
}

static void row_rt_sigqueueinfo(void)
{
	struct receiver one = receiver_start(false);
	siginfo_t honest = queued(SIGUSR1, SI_QUEUE), forged = queued(SIGUSR2, SI_USER);

	/* Only the kernel may say that a signal came from kill(2). */
	expect_signal("rt_sigqueueinfo", one.pid, "SIGUSR2", syscall(SYS_rt_sigqueueinfo, one.pid, SIGUSR2, &forged));
	row_done();
	expect_signal("rt_sigqueueinfo", one.pid, "SIGUSR1", syscall(SYS_rt_sigqueueinfo, one.pid, SIGUSR1, &honest));
	row_done();
	receiver_end(&one, SIGUSR1);
	expect_signal("rt_sigqueueinfo", ROW_NO_PROCESS, "SIGUSR1",
		      syscall(SYS_rt_sigqueueinfo, ROW_NO_PROCESS, SIGUSR1, &honest));
	row_done();
}

static void row_rt_tgsigqueueinfo(void)
{
	struct receiver one = receiver_start(false);
	siginfo_t honest = queued(SIGUSR1, SI_QUEUE), forged = queued(SIGUSR2, SI_USER);

	expect_signal("rt_tgsigqueueinfo", one.pid, "SIGUSR2",
		      syscall(SYS_rt_tgsigqueueinfo, one.pid, one.pid, SIGUSR2, &forged));
	row_number("args.tid", one.pid);
	row_done();
	expect_signal("rt_tgsigqueueinfo", one.pid, "SIGUSR1",
		      syscall(SYS_rt_tgsigqueueinfo, one.pid, one.pid, SIGUSR1, &honest));
	row_number("args.tid", one.pid);
	row_done();
	receiver_end(&one, SIGUSR1);
	expect_signal("rt_tgsigqueueinfo", ROW_NO_PROCESS, "SIGUSR1",
		      syscall(SYS_rt_tgsigqueueinfo, ROW_NO_PROCESS, ROW_NO_PROCESS, SIGUSR1, &honest));
	row_done();
}

/* The process is gone, the descriptor is not. */
static void pidfd_of_the_dead(void)
{
	struct receiver dead = receiver_start(false);
	int fd = dup(dead.pidfd);

	kill(dead.pid, SIGUSR1);
	receiver_end(&dead, SIGUSR1);
	row_expect("pidfd_send_signal", "proc.signal", syscall(SYS_pidfd_send_signal, fd, SIGUSR1, NULL, 0));
	row_number("args.pidfd", fd);
	row_text("args.sig", "SIGUSR1");
	row_done();
	close(fd);
}

static void row_pidfd_send_signal(void)
{
	struct receiver one = receiver_start(false);
	siginfo_t other = queued(SIGUSR2, SI_QUEUE);

	expect_signal("pidfd_send_signal", one.pid, "SIGUSR1",
		      syscall(SYS_pidfd_send_signal, one.pidfd, SIGUSR1, &other, 0));
	row_number("args.pidfd", one.pidfd);
	row_done();
	expect_signal("pidfd_send_signal", one.pid, "SIGUSR1",
		      syscall(SYS_pidfd_send_signal, one.pidfd, SIGUSR1, NULL, 0));
	row_number("args.pidfd", one.pidfd);
	row_done();
	receiver_end(&one, SIGUSR1);
	pidfd_of_the_dead();
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {
	    {"kill", row_kill},
	    {"tkill", row_tkill},
	    {"tgkill", row_tgkill},
	    {"rt_sigqueueinfo", row_rt_sigqueueinfo},
	    {"rt_tgsigqueueinfo", row_rt_tgsigqueueinfo},
	    {"pidfd_send_signal", row_pidfd_send_signal},
	    {0},
	};

	return row_main(cases, argc, argv);
}
