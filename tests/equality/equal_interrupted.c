/*
 * Signals in the middle: every call that reports success has happened once, and one that reports EINTR has not
 * happened.
 */
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "equal.h"

static volatile sig_atomic_t alarms;

static void count_alarm(int number)
{
	(void)number;
	alarms++;
}

static void ring(int flags, long first_us, long every_us)
{
	struct sigaction action = {.sa_handler = count_alarm, .sa_flags = flags};
	struct itimerval timer = {{0, every_us}, {0, first_us}};

	NEED(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static void silence(void)
{
	setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
}

enum { ROUNDS = 120 };

/* As long as a call says EINTR it is made again: were it done already, the next would find its own work. */
#define UNTIL_DONE(result, call)   \
	do {                       \
		(result) = (call); \
	} while ((result) < 0 && errno == EINTR)

static void each_once(void)
{
	int failed = 0, made = 0;
	char name[64], other[64];

	for (int i = 0; i < ROUNDS; i++) {
		long result;
		snprintf(name, sizeof(name), "file-%03d", i);
		snprintf(other, sizeof(other), "moved-%03d", i);
		UNTIL_DONE(result, open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
		failed += result < 0;
		made += result >= 0;
		if (result >= 0)
			close((int)result);
		UNTIL_DONE(result, rename(name, other));
		failed += result < 0;
		snprintf(name, sizeof(name), "folder-%03d", i);
		UNTIL_DONE(result, mkdir(name, 0755));
		failed += result < 0;
		UNTIL_DONE(result, symlink("x", "link"));
		failed += result < 0;
		UNTIL_DONE(result, unlink("link"));
		failed += result < 0;
	}
	silence();
	say("made %d, failed %d, rung %d", made, failed, alarms > 0);
}

static void interrupted_restarting(void)
{
	ring(SA_RESTART, 300, 700);
	each_once();
}

static void interrupted_not_restarting(void)
{
	ring(0, 300, 700);
	each_once();
}

static void interrupted_fifo(void)
{
	NEED(mkfifo("fifo", 0600) == 0);
	ring(0, 100000, 0);
	step(open("fifo", O_WRONLY), "write, interrupted");
	ring(0, 100000, 0);
	step(open("fifo", O_WRONLY | O_CREAT, 0600), "create, interrupted");
	ring(0, 100000, 0);
	step(open("fifo", O_RDONLY), "read, interrupted");
	say("rung %d", alarms);
}

static void read_later(void)
{
	pause_ms(250);
	int fd = open("fifo", O_RDONLY);
	NEED(fd >= 0);
	while (read(fd, &(char){0}, 1) > 0)
		;
}

static void interrupted_fifo_restarting(void)
{
	NEED(mkfifo("fifo", 0600) == 0);
	pid_t pid = start_child(read_later);
	ring(SA_RESTART, 50000, 50000);
	int fd = (int)step(open("fifo", O_WRONLY), "write, restarted");
	silence();
	facts(fd);
	say("rung: %d", alarms > 0);
	close(fd);
	join_child("reader", pid);
}

static void make_folders(void)
{
	char name[32];

	for (int i = 0; i < 100000; i++) {
		snprintf(name, sizeof(name), "%06d", i);
		if (mkdir(name, 0755) != 0)
			_exit(1);
	}
}

static void await_name(const char *name)
{
	while (access(name, F_OK) != 0)
		pause_ms(1);
}

static int count_and_remove(void)
{
	char name[32];
	int count = 0, behind = 0;

	for (;; count++) {
		snprintf(name, sizeof(name), "%06d", count);
		if (rmdir(name) != 0)
			break;
	}
	for (int i = count; i < count + 100; i++) {
		snprintf(name, sizeof(name), "%06d", i);
		behind += rmdir(name) == 0;
	}
	return behind > 0 ? -1 : count;
}

/* Killed in the middle of a call: whatever was done was done in order. */
static void interrupted_for_good(void)
{
	for (int round = 0; round < 4; round++) {
		pid_t pid = start_child(make_folders);
		await_name("000000");
		pause_ms(5 + round);
		kill(pid, SIGKILL);
		join_child("maker", pid);
		int count = count_and_remove();
		say("some: %d, no hole: %d", count > 0, count >= 0);
	}
}

static void append_lines(void)
{
	char line[16];

	for (int i = 0;; i++) {
		int fd = open("log", O_WRONLY | O_APPEND | O_CREAT, 0644);
		snprintf(line, sizeof(line), "%06d\n", i);
		if (fd < 0 || write(fd, line, 7) != 7)
			_exit(1);
		close(fd);
	}
}

static void interrupted_writer(void)
{
	pid_t pid = start_child(append_lines);
	char line[8] = "", wanted[16];
	int count = 0;

	await_name("log");
	pause_ms(30);
	kill(pid, SIGKILL);
	join_child("writer", pid);
	int fd = open("log", O_RDONLY);
	for (; read(fd, line, 7) == 7; count++) {
		snprintf(wanted, sizeof(wanted), "%06d\n", count);
		NEED(memcmp(line, wanted, 7) == 0);
	}
	say("the last line is whole: %d", lseek(fd, 0, SEEK_END) == 7L * count);
	NEED(unlink("log") == 0);
}

static void stopped_maker(void)
{
	for (int i = 0; i < 150; i++)
		NEED(mkdir("turn", 0755) == 0 && rmdir("turn") == 0);
}

static void interrupted_by_stops(void)
{
	int status;
	pid_t pid = start_child(stopped_maker);

	for (int i = 0; i < 20; i++) {
		pause_ms(1);
		kill(pid, SIGSTOP);
		pause_ms(1);
		kill(pid, SIGCONT);
	}
	NEED(waitpid(pid, &status, 0) == pid);
	say_end("maker", status);
}

/* A handler that makes calls of its own while one is under way. */
static void make_in_handler(int number)
{
	char name[32];
	int error = errno;

	(void)number;
	snprintf(name, sizeof(name), "inner-%03d", (int)alarms++);
	NEED(mkdir(name, 0755) == 0 && rmdir(name) == 0);
	errno = error;
}

static void interrupted_by_own_calls(void)
{
	struct sigaction action = {.sa_handler = make_in_handler, .sa_flags = SA_RESTART};
	struct itimerval timer = {{0, 2000}, {0, 1000}};

	NEED(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &timer, NULL) == 0);
	for (int i = 0; i < 200; i++)
		NEED(mkdir("outer", 0755) == 0 && rmdir("outer") == 0);
	silence();
	say("done");
}

static void blocked(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	NEED(sigprocmask(SIG_BLOCK, &set, NULL) == 0 && raise(SIGTERM) == 0);
	step(mkdir("blocked", 0755), "mkdir with a signal that is blocked");
	STEP_CLOSE(open("blocked/file", O_WRONLY | O_CREAT, 0644), "create with a signal that is blocked");
	NEED(sigpending(&set) == 0);
	say("pending: %d", sigismember(&set, SIGTERM));
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	step(mkdir("never", 0755), "not reached");
}

static void interrupted_when_unblocked(void)
{
	in_child("blocked", blocked);
}

static const struct equal_case cases[] = {
    {"interrupted_restarting", false, interrupted_restarting},
    {"interrupted_not_restarting", false, interrupted_not_restarting},
    {"interrupted_fifo", false, interrupted_fifo},
    {"interrupted_fifo_restarting", false, interrupted_fifo_restarting},
    {"interrupted_for_good", false, interrupted_for_good},
    {"interrupted_writer", false, interrupted_writer},
    {"interrupted_by_stops", false, interrupted_by_stops},
    {"interrupted_by_own_calls", false, interrupted_by_own_calls},
    {"interrupted_when_unblocked", false, interrupted_when_unblocked},
    {NULL},
};

int main(int argc, char **argv)
{
	return equal_main(cases, argc, argv);
}
