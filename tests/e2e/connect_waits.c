/*
 * connect_waits: connections that a full listener lets wait, and what ends the wait.
 */
#include <pthread.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "connect_calls.h"

enum { PAUSE_US = 200000 };

/* A listener that takes no more: what connects to it waits. */
static int full_server(void)
{
	int server = bound(SOCK_STREAM, 0);

	for (int i = 0; i < 8; i++) {
		int fd = new_socket(SOCK_STREAM | SOCK_NONBLOCK);
		(void)connect_port(fd, port_of(server));
		struct pollfd ready = {.fd = fd, .events = POLLOUT};
		if (poll(&ready, 1, 50) == 0)
			return server;
	}
	broken("a listener can be full", __LINE__);
}

static int crowded = -1;

static void on_signal(int number)
{
	if (crowded >= 0)
		MUST(listen(crowded, 32) == 0);
	/* The timer was that of the limit on all of this. */
	if (number == SIGALRM) {
		(void)signal(SIGALRM, SIG_DFL);
		alarm(20);
	}
}

static void handle(int number, int flags)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};

	MUST(sigaction(number, &action, NULL) == 0);
}

static void alarm_soon(void)
{
	struct itimerval soon = {.it_value.tv_usec = PAUSE_US};

	MUST(setitimer(ITIMER_REAL, &soon, NULL) == 0);
}

/* Another thread: how the socket looks while a call waits on it, then the end of the wait. */
struct watched {
	int fd, port;
	pthread_t waits, also;
	bool has_also;
};

static void *watch(void *argument)
{
	const struct watched *watched = argument;

	usleep(PAUSE_US);
	printf("while it waits: flags %#x\n", (unsigned)fcntl(watched->fd, F_GETFL));
	if (watched->has_also)
		pthread_kill(watched->also, SIGUSR1);
	usleep(PAUSE_US);
	pthread_kill(watched->waits, SIGUSR1);
	return NULL;
}

static void *also_connect(void *argument)
{
	const struct watched *watched = argument;

	usleep(PAUSE_US / 2);
	say("a second thread on the same socket", connect_port(watched->fd, watched->port));
	return NULL;
}

static void say_watched(int fd, int port, bool two)
{
	struct watched watched = {.fd = fd, .port = port, .waits = pthread_self(), .has_also = two};
	pthread_t watcher;

	handle(SIGUSR1, 0);
	if (two)
		MUST(pthread_create(&watched.also, NULL, also_connect, &watched) == 0);
	MUST(pthread_create(&watcher, NULL, watch, &watched) == 0);
	say("a call that is interrupted", connect_port(fd, port));
	MUST(pthread_join(watcher, NULL) == 0);
	if (two)
		MUST(pthread_join(watched.also, NULL) == 0);
}

static void kill_waiting(int port)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		(void)connect_port(new_socket(SOCK_STREAM), port);
		_exit(1);
	}
	usleep(PAUSE_US);
	MUST(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
	printf("killed while it waits: %s\n", WIFSIGNALED(status) ? "by the signal" : "no");
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(20);
	int server = full_server(), port = port_of(server);
	int fd = new_socket(SOCK_STREAM | SOCK_NONBLOCK);

	tell_port("full", port);
	say("not blocking", connect_port(fd, port));
	say("again", connect_port(fd, port));
	say_state("meanwhile", fd);
	fd = new_socket(SOCK_STREAM);
	say_watched(fd, port, false);
	say_watched(fd, port, false);
	say_watched(new_socket(SOCK_STREAM), port, true);
	MUST(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	say("no more blocking", connect_port(fd, port));
	struct timeval limit = {.tv_usec = PAUSE_US};
	fd = new_socket(SOCK_STREAM);
	MUST(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) == 0);
	say("with a time limit", connect_port(fd, port));
	say("again", connect_port(fd, port));
	say_state("meanwhile", fd);
	handle(SIGALRM, 0);
	alarm_soon();
	say("with an alarm", connect_port(new_socket(SOCK_STREAM), port));
	kill_waiting(port);
	/* The handler makes room; the kernel tries again a second after the first attempt. */
	crowded = server;
	handle(SIGALRM, SA_RESTART);
	alarm_soon();
	fd = new_socket(SOCK_STREAM);
	say("restarted after an alarm", connect_port(fd, port));
	say_state("afterwards", fd);
	return 0;
}
