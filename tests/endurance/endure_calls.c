/*
 * endure_calls NAME NUMBER [WORD]: storms of calls.
 *
 *   threads COUNT            200 threads that make COUNT files each, at once
 *   timer COUNT restart|not  COUNT files under a timer signal of 5 kHz, with SA_RESTART or without
 *   connects COUNT wait|poll COUNT connections at once, each of a thread that waits, or all of one that polls
 *   execs COUNT              COUNT processes, in each of which a thread executes while others make files
 *   bomb LIMIT               forks of forks that only RLIMIT_NPROC ends
 *   descriptors LIMIT        opens until it may not, at most LIMIT
 *   steady COUNT             4 processes and a group of their own, COUNT files each, slowly
 */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "endure.h"

enum {
	THREADS = 200,
	MOST_CONNECTIONS = 2000,
	STACK = 65536,
	TIMER_US = 200,
	EXECS_AT_ONCE = 8,
	BYSTANDERS = 3,
	BOMB_SECONDS = 2,
	STEADY = 4,
	STEADY_NS = 5000000,
	PATIENCE_MS = 60000,
};

static long count;
static atomic_long good, bad;
static pthread_barrier_t together;

static void tally(int error)
{
	atomic_fetch_add(error ? &bad : &good, 1);
}

static pthread_t start(void *(*run)(void *), long number)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	errno = pthread_create(&thread, &attributes, run, (void *)(intptr_t)number);
	if (errno)
		endure_die("pthread_create");
	pthread_attr_destroy(&attributes);
	return thread;
}

static void *make_many(void *number)
{
	pthread_barrier_wait(&together);
	for (long i = 0; i < count; i++)
		tally(endure_make("t", (long)(intptr_t)number, i));
	return NULL;
}

static void threads(const char *word)
{
	pthread_t all[THREADS];

	(void)word;
	pthread_barrier_init(&together, NULL, THREADS);
	for (long i = 0; i < THREADS; i++)
		all[i] = start(make_many, i);
	for (long i = 0; i < THREADS; i++)
		pthread_join(all[i], NULL);
	endure_say("made", atomic_load(&good));
	endure_say("failed", atomic_load(&bad));
}

static atomic_long signals;

static void on_timer(int number)
{
	(void)number;
	atomic_fetch_add(&signals, 1);
}

/* A call that says EINTR has done nothing; else the next one finds the file there. */
static void timer(const char *word)
{
	struct itimerval often = {{0, TIMER_US}, {0, TIMER_US}}, never = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = on_timer, .sa_flags = strcmp(word, "restart") == 0 ? SA_RESTART : 0};
	long interrupted = 0;
	int error;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (long i = 0; i < count; i++) {
		while ((error = endure_make("s", 0, i)) == EINTR)
			interrupted++;
		tally(error);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	endure_say("made", atomic_load(&good));
	endure_say("failed", atomic_load(&bad));
	fprintf(stderr, "interrupted %ld\nsignals %ld\n", interrupted, atomic_load(&signals));
}

static struct sockaddr_in server;
static int connections[MOST_CONNECTIONS];

static void *accept_all(void *given)
{
	int listener = (int)(intptr_t)given;
	long accepted = 0;
	struct pollfd wait = {.fd = listener, .events = POLLIN};

	while (accepted < count && poll(&wait, 1, PATIENCE_MS) > 0)
		accepted += accept4(listener, NULL, NULL, SOCK_CLOEXEC) >= 0;
	return (void *)(intptr_t)accepted;
}

static void *connect_and_wait(void *number)
{
	int fd = connections[(intptr_t)number];

	pthread_barrier_wait(&together);
	tally(connect(fd, (struct sockaddr *)&server, sizeof(server)) == 0 ? 0 : errno);
	return NULL;
}

static void connect_in_threads(void)
{
	static pthread_t all[MOST_CONNECTIONS];

	pthread_barrier_init(&together, NULL, (unsigned)count);
	for (long i = 0; i < count; i++)
		all[i] = start(connect_and_wait, i);
	for (long i = 0; i < count; i++)
		pthread_join(all[i], NULL);
}

static void connect_and_poll(void)
{
	socklen_t size = sizeof(int);
	int error;

	for (long i = 0; i < count; i++)
		if (connect(connections[i], (struct sockaddr *)&server, sizeof(server)) != 0 && errno != EINPROGRESS)
			endure_die("connect");
	for (long i = 0; i < count; i++) {
		struct pollfd wait = {.fd = connections[i], .events = POLLOUT};
		if (poll(&wait, 1, PATIENCE_MS) != 1)
			endure_die("poll");
		if (getsockopt(connections[i], SOL_SOCKET, SO_ERROR, &error, &size) != 0)
			endure_die("SO_ERROR");
		tally(error);
	}
}

static void connects(const char *word)
{
	bool waits = strcmp(word, "wait") == 0;
	int flags = SOCK_STREAM | SOCK_CLOEXEC, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(server);
	struct rlimit limit;
	void *accepted;

	if (count > MOST_CONNECTIONS || getrlimit(RLIMIT_NOFILE, &limit) != 0)
		exit(64);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	server.sin_family = AF_INET;
	server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listener, (struct sockaddr *)&server, size) != 0 || listen(listener, MOST_CONNECTIONS) != 0 ||
	    getsockname(listener, (struct sockaddr *)&server, &size) != 0)
		endure_die("listen");
	for (long i = 0; i < count; i++) {
		connections[i] = socket(AF_INET, waits ? flags : flags | SOCK_NONBLOCK, 0);
		if (connections[i] < 0)
			endure_die("socket");
	}
	pthread_t server_thread = start(accept_all, listener);
	if (waits)
		connect_in_threads();
	else
		connect_and_poll();
	pthread_join(server_thread, &accepted);
	endure_say("connected", atomic_load(&good));
	endure_say("failed", atomic_load(&bad));
	endure_say("accepted", (long)(intptr_t)accepted);
}

static void *make_until_gone(void *number)
{
	for (long i = 0;; i++)
		(void)endure_make("m", getpid(), (long)(intptr_t)number * 1000000 + i);
	return NULL;
}

static void *execute(void *number)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", (long)(intptr_t)number + 1);
	endure_nap((long)(intptr_t)number % 7 * 100000);
	execl("/proc/self/exe", "executed", "after", text, NULL);
	_exit(1);
}

/* What the thread's program does. */
static void after(const char *word)
{
	(void)word;
	tally(endure_make("x", 0, count - 1));
	exit(atomic_load(&bad) != 0);
}

static void execs(const char *word)
{
	long ended = 0;
	int status;

	(void)word;
	for (long i = 0, alive = 0; i < count || alive; alive--) {
		for (; i < count && alive < EXECS_AT_ONCE; i++, alive++)
			if (fork() == 0) {
				for (long thread = 0; thread < BYSTANDERS; thread++)
					start(make_until_gone, thread);
				start(execute, i);
				for (;;)
					pause();
			}
		ended += wait(&status) > 0 && status == 0;
	}
	endure_say("ended well", ended);
}

struct bomb {
	atomic_long forked, refused, made;
	atomic_bool over;
};

static struct bomb *bomb_state;

static void explode(void)
{
	while (!atomic_load(&bomb_state->over)) {
		pid_t child = fork();
		if (child < 0) {
			atomic_fetch_add(&bomb_state->refused, 1);
			endure_nap(1000000);
		} else if (child == 0) {
			atomic_fetch_add(&bomb_state->made, endure_make("b", 0, getpid()) == 0);
		} else {
			atomic_fetch_add(&bomb_state->forked, 1);
		}
	}
}

static void bomb(const char *word)
{
	struct rlimit limit = {(rlim_t)count, (rlim_t)count};

	bomb_state = mmap(NULL, sizeof(*bomb_state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (bomb_state == MAP_FAILED)
		endure_die("mmap");
	if (strcmp(word, "inside") == 0 && setrlimit(RLIMIT_NPROC, &limit) != 0)
		endure_die("setrlimit");
	for (int i = 0; i < 2; i++)
		if (fork() == 0) {
			explode();
			while (wait(NULL) > 0)
				;
			_exit(0);
		}
	sleep(BOMB_SECONDS);
	atomic_store(&bomb_state->over, true);
	long good_ones = endure_collect();
	endure_say("first", good_ones);
	/* Each number of a process is of one process only as long as they are not used again. */
	fprintf(stderr, "forked %ld\nmade %ld\nrefused %ld\n", atomic_load(&bomb_state->forked),
		atomic_load(&bomb_state->made), atomic_load(&bomb_state->refused));
}

static void descriptors(const char *word)
{
	struct rlimit limit;
	long opened = 0;
	int error = 0;

	(void)word;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		endure_die("getrlimit");
	while (opened < count && !error) {
		char name[32];
		snprintf(name, sizeof(name), "e-0-%ld", opened);
		error = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) < 0 ? errno : 0;
		opened += !error;
	}
	endure_say("limit", (long)limit.rlim_cur);
	endure_say("opened", opened);
	endure_say("error", error);
}

static void steady(const char *word)
{
	(void)word;
	for (long process = 0; process < STEADY; process++)
		if (fork() == 0) {
			for (long i = 0; i < count; i++) {
				tally(endure_make("y", process, i));
				endure_nap(STEADY_NS);
			}
			_exit(atomic_load(&bad) != 0);
		}
	endure_say("ended well", endure_collect());
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(const char *word);
	} storms[] = {{"threads", threads}, {"timer", timer}, {"connects", connects},       {"execs", execs},
		      {"after", after},     {"bomb", bomb},   {"descriptors", descriptors}, {"steady", steady}};

	if (argc < 3)
		return 64;
	count = endure_number(argv[2]);
	for (size_t i = 0; i < sizeof(storms) / sizeof(storms[0]); i++)
		if (strcmp(storms[i].name, argv[1]) == 0) {
			storms[i].run(argc > 3 ? argv[3] : "");
			return 0;
		}
	return 64;
}
