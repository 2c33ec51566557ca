/*
 * Calls that wait for messages with descriptors: what ends them, and what they give. Nothing may tell the receiver that
 * somebody has looked before.
 */
#include <sys/resource.h>

#include "equal_message.h"

static volatile sig_atomic_t alarms;

static void count_alarm(int number)
{
	(void)number;
	alarms++;
}

static void ring(int flags, long first_ms, long every_ms)
{
	struct sigaction action = {.sa_handler = count_alarm, .sa_flags = flags};
	struct itimerval timer = {{0, every_ms * 1000}, {0, first_ms * 1000}};

	NEED(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static void receive_types(void)
{
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
	int pair[2], file = a_file(), pipes[2];

	NEED(pipe2(pipes, O_CLOEXEC) == 0);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		connected(pair, types[i]);
		int sent[] = {file, pipes[0], pipes[1], pair[0], open(".", O_PATH), open("/", O_RDONLY)};
		send_them(pair[0], "many", sent, 6);
		send_one(pair[0], "one", file);
		send_them(pair[0], "none", NULL, 0);
		take(pair[1], 0, "many");
		take_many(pair[1], 0, "one");
		take(pair[1], 0, "none");
		take(pair[1], MSG_DONTWAIT, "empty");
		take_many(pair[1], MSG_DONTWAIT, "empty, of many");
		say("getfl 0%o", (unsigned)fcntl(pair[1], F_GETFL));
		NEED(fcntl(pair[1], F_SETFL, O_NONBLOCK) == 0);
		take(pair[1], 0, "empty, not blocking");
		say("getfl 0%o", (unsigned)fcntl(pair[1], F_GETFL));
		disconnect(pair);
	}
}

static void receive_interrupted(void)
{
	int pair[2];

	connected(pair, SOCK_STREAM);
	ring(0, WAITED_MS, 0);
	take(pair[1], 0, "recvmsg");
	ring(0, WAITED_MS, 0);
	take_many(pair[1], 0, "recvmmsg");
	say("rung %d", alarms);
	send_file(pair[0], "x");
	take(pair[1], 0, "after that");
}

static void receive_restarted(void)
{
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM};
	int pair[2];

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		connected(pair, types[i]);
		pid_t pid = sender_after(pair[0], 2 * SENT_AFTER_MS, "late");
		ring(SA_RESTART, 20, 50);
		take(pair[1], 0, "restarted");
		ring(SA_RESTART, 0, 0);
		say("rung %d", alarms > 0);
		join_child("sender", pid);
		take(pair[1], MSG_DONTWAIT, "once");
	}
}

/* What is taken by a handler is gone when the call that it interrupted goes on. */
static int stolen_from;

static void steal(int number)
{
	char byte;

	(void)number;
	NEED(recv(stolen_from, &byte, 1, MSG_DONTWAIT) == 1);
	alarms++;
}

static void receive_stolen(void)
{
	struct sigaction action = {.sa_handler = steal, .sa_flags = SA_RESTART};
	int pair[2], status;

	connected(pair, SOCK_DGRAM);
	stolen_from = pair[1];
	NEED(sigaction(SIGUSR1, &action, NULL) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		take(pair[1], 0, "the second");
		say("stolen %d", alarms);
		_exit(0);
	}
	pause_ms(SENT_AFTER_MS);
	/* It must not get the message before its handler does. */
	NEED(kill(pid, SIGSTOP) == 0 && waitpid(pid, &status, WUNTRACED) == pid);
	say("stopped: %d", WIFSTOPPED(status));
	send_file(pair[0], "stolen");
	NEED(kill(pid, SIGUSR1) == 0 && kill(pid, SIGCONT) == 0);
	pause_ms(SENT_AFTER_MS);
	send_file(pair[0], "left");
	join_child("receiver", pid);
}

static int child_socket;

static void take_in_child(void)
{
	take(child_socket, 0, "in the child");
}

static void receive_stopped(void)
{
	int pair[2], status;

	connected(pair, SOCK_STREAM);
	child_socket = pair[1];
	pid_t pid = start_child(take_in_child);
	for (int i = 0; i < 3; i++) {
		pause_ms(WAITED_MS);
		NEED(kill(pid, SIGSTOP) == 0 && waitpid(pid, &status, WUNTRACED) == pid);
		say("stopped: %d", WIFSTOPPED(status));
		if (i == 2)
			send_file(pair[0], "while it stood");
		pause_ms(WAITED_MS);
		NEED(kill(pid, SIGCONT) == 0);
	}
	join_child("receiver", pid);
	take(pair[1], MSG_DONTWAIT, "nothing is left");
}

static void receive_killed(void)
{
	int pair[2];

	connected(pair, SOCK_STREAM);
	child_socket = pair[1];
	pid_t pid = start_child(take_in_child);
	pause_ms(WAITED_MS);
	NEED(kill(pid, SIGKILL) == 0);
	join_child("receiver", pid);
	send_file(pair[0], "after its death");
	take(pair[1], 0, "the heir");
}

static void receive_late(void)
{
	int pair[2];

	for (int late = 0; late < 2; late++) {
		connected(pair, SOCK_SEQPACKET);
		pid_t pid = sender_after(pair[0], late ? 1300 : SENT_AFTER_MS, "late");
		take(pair[1], 0, late ? "later than anybody waits" : "late");
		join_child("sender", pid);
	}
}

static void receive_time_limit(void)
{
	struct timeval limit = {0, 120000};
	struct timespec begin, end;
	int pair[2];

	connected(pair, SOCK_STREAM);
	NEED(setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0);
	NEED(clock_gettime(CLOCK_MONOTONIC, &begin) == 0);
	take(pair[1], 0, "until the limit");
	NEED(clock_gettime(CLOCK_MONOTONIC, &end) == 0);
	/* The kernel counts in ticks, and may begin in the middle of one. */
	long ms = (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000;
	say("all of it: %d", ms >= 100);
	take_many(pair[1], 0, "until the limit, of many");
	limit.tv_sec = 10;
	NEED(setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0);
	/* With a limit no handler makes it go on (signal(7)). */
	ring(SA_RESTART, WAITED_MS, 0);
	take(pair[1], 0, "a limit and a signal");
	pid_t pid = sender_after(pair[0], SENT_AFTER_MS, "in time");
	take(pair[1], 0, "within the limit");
	join_child("sender", pid);
}

static void close_later(void)
{
	int pair[2];

	connected(pair, SOCK_STREAM);
	pid_t pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		close(pair[1]);
		pause_ms(SENT_AFTER_MS);
		_exit(0);
	}
	close(pair[0]);
	take(pair[1], 0, "until the other end is closed");
	join_child("other end", pid);
}

static void receive_end(void)
{
	int pair[2];

	connected(pair, SOCK_STREAM);
	send_file(pair[0], "last");
	NEED(shutdown(pair[0], SHUT_WR) == 0);
	take(pair[1], 0, "the last");
	take(pair[1], 0, "after shutdown");
	connected(pair, SOCK_SEQPACKET);
	close(pair[0]);
	take(pair[1], 0, "closed");
	take_many(pair[1], 0, "closed, of many");
	close_later();
	connected(pair, SOCK_STREAM);
	NEED(shutdown(pair[1], SHUT_RD) == 0);
	take(pair[1], 0, "own half is shut");
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	take(listener, 0, "not connected");
	NEED(bind(listener, &(struct sockaddr){AF_UNIX, ""}, sizeof(sa_family_t)) == 0 && listen(listener, 1) == 0);
	take(listener, MSG_DONTWAIT, "a listener");
	take(a_file(), 0, "a file");
	take(555, 0, "a closed descriptor");
}

static const char *pending_error(int fd)
{
	int error = 0;
	socklen_t size = sizeof(error);

	NEED(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0);
	return error == 0 ? "none" : name_of_error(error);
}

/* The other end goes and leaves something unread: an error that is told once, and to the receiver. */
static void reset(int type, bool brings, bool many)
{
	int pair[2];

	connected(pair, type);
	NEED(send(pair[1], "unread", 6, 0) == 6);
	if (brings)
		send_file(pair[0], "x");
	close(pair[0]);
	for (int i = 0; i < 3; i++) {
		if (many)
			take_many(pair[1], MSG_DONTWAIT, "of many");
		else
			take(pair[1], MSG_DONTWAIT, "one");
	}
	say("left on the socket: %s", pending_error(pair[1]));
	close(pair[1]);
}

static void receive_reset(void)
{
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		for (int j = 0; j < 4; j++)
			reset(types[i], j & 1, j & 2);
}

/* It waits already when that happens. */
static void receive_reset_later(void)
{
	static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		int pair[2];
		connected(pair, types[i]);
		NEED(send(pair[1], "unread", 6, 0) == 6);
		pid_t pid = fork();
		NEED(pid >= 0);
		if (pid == 0) {
			close(pair[1]);
			pause_ms(SENT_AFTER_MS);
			_exit(0);
		}
		close(pair[0]);
		take(pair[1], 0, "while it waits");
		take(pair[1], 0, "then");
		say("left on the socket: %s", pending_error(pair[1]));
		join_child("other end", pid);
	}
}

static void receive_cut(void)
{
	static const size_t rooms[] = {0,
				       4,
				       CMSG_LEN(0),
				       CMSG_LEN(sizeof(int)) - 1,
				       CMSG_LEN(sizeof(int)),
				       CMSG_SPACE(sizeof(int)),
				       CMSG_LEN(2 * sizeof(int)),
				       CMSG_LEN(3 * sizeof(int)),
				       ROOM};
	int pair[2], sent[] = {a_file(), a_file(), a_file()};

	connected(pair, SOCK_SEQPACKET);
	for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
		send_them(pair[0], "three", sent, 3);
		take_up_to(pair[1], 64, rooms[i], 0, "cut");
	}
	for (size_t size = 0; size < 3; size++) {
		send_one(pair[0], "longer", sent[0]);
		take_up_to(pair[1], size, ROOM, size == 2 ? MSG_TRUNC : 0, "too short");
	}
	STEP_CLOSE(open("file", O_RDONLY), "the next number");
}

/* Descriptors for which there is no number any more are lost. */
static void receive_few_numbers(void)
{
	struct rlimit limit = {0};
	int pair[2], sent[] = {a_file(), a_file(), a_file()};

	connected(pair, SOCK_STREAM);
	send_them(pair[0], "x", sent, 3);
	send_them(pair[0], "y", sent, 3);
	int next = dup(sent[0]);
	NEED(next >= 0 && close(next) == 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = (rlim_t)next + 1;
	NEED(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	take(pair[1], 0, "one number is free");
	limit.rlim_cur = (rlim_t)next;
	NEED(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	take(pair[1], 0, "none is free");
}

static const struct equal_case cases[] = {
    {"receive_types", false, receive_types},
    {"receive_interrupted", false, receive_interrupted},
    {"receive_restarted", false, receive_restarted},
    {"receive_stolen", false, receive_stolen},
    {"receive_stopped", false, receive_stopped},
    {"receive_killed", false, receive_killed},
    {"receive_late", false, receive_late},
    {"receive_time_limit", false, receive_time_limit},
    {"receive_end", false, receive_end},
    {"receive_reset", false, receive_reset},
    {"receive_reset_later", false, receive_reset_later},
    {"receive_cut", false, receive_cut},
    {"receive_few_numbers", false, receive_few_numbers},
    {NULL},
};

int main(int argc, char **argv)
{
	return equal_main(cases, argc, argv);
}
