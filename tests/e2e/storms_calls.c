/*
 * storms_calls NAME [COUNT]: many calls at once, or calls from unusual places. Prints how many of them did what they
 * should; a test compares that with what was recorded.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK = 65536, MANY = 512 };

static atomic_int good;
static long count;

/* A new file by that name. */
static void make(const char *kind, long one, long two)
{
	char name[64];

	snprintf(name, sizeof(name), "%s-%ld-%ld", kind, one, two);
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	close(fd);
	atomic_fetch_add(&good, 1);
}

static long collect(void)
{
	int status;
	long ended = 0;

	while (wait(&status) > 0)
		ended += status == 0;
	return ended;
}

/* Processes of under a millisecond, no more than 32 at a time; each of them ends with 7 but the last. */
static void brief(void)
{
	long alive = 0, ended = 0;
	int status;

	for (long i = 0; i < count; i++) {
		if (alive == 32 && wait(&status) > 0) {
			ended += WEXITSTATUS(status) == 7;
			alive--;
		}
		pid_t child = fork();
		if (child == 0)
			_exit(7);
		alive += child > 0;
	}
	while (wait(&status) > 0)
		ended += WEXITSTATUS(status) == 7;
	atomic_store(&good, (int)ended);
}

static void opens(void)
{
	for (long process = 0; process < 16; process++)
		if (fork() == 0) {
			for (long i = 0; i < count; i++)
				make("o", process, i);
			_exit(atomic_load(&good) != count);
		}
	atomic_store(&good, (int)(collect() * count));
}

static void *thread_opens(void *number)
{
	for (long i = 0; i < count; i++)
		make("t", (long)(intptr_t)number, i);
	return NULL;
}

static void threads(void)
{
	pthread_t all[50];

	for (long i = 0; i < 50; i++)
		if (pthread_create(&all[i], NULL, thread_opens, (void *)(intptr_t)i) != 0)
			exit(1);
	for (long i = 0; i < 50; i++)
		pthread_join(all[i], NULL);
}

static struct sockaddr_in listener_address;

static void *connect_one(void *unused)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)unused;
	if (fd >= 0 && connect(fd, (struct sockaddr *)&listener_address, sizeof(listener_address)) == 0)
		atomic_fetch_add(&good, 1);
	/* Open until the end, so that each has a port of its own. */
	return NULL;
}

static void connects(void)
{
	pthread_t all[MANY];
	socklen_t size = sizeof(listener_address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	listener_address.sin_family = AF_INET;
	listener_address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (struct sockaddr *)&listener_address, size) != 0 || listen(fd, MANY) != 0 ||
	    getsockname(fd, (struct sockaddr *)&listener_address, &size) != 0)
		exit(1);
	for (long i = 0; i < count && i < MANY; i++)
		if (pthread_create(&all[i], NULL, connect_one, NULL) != 0)
			exit(1);
	for (long i = 0; i < count && i < MANY; i++)
		pthread_join(all[i], NULL);
}

/* Each forks two, `count` levels deep. */
static void fork_storm(long level)
{
	for (int i = 0; i < 2 && level < count; i++)
		if (fork() == 0) {
			fork_storm(level + 1);
			_exit(collect() < 0);
		}
	make("f", level, getpid());
}

static void *exec_here(void *unused)
{
	(void)unused;
	execl("/bin/sh", "sh", "-c", "echo x >by-thread; echo 1", NULL);
	return NULL;
}

static void thread_exec(void)
{
	pthread_t thread;

	for (int i = 0; i < 8; i++) /* others that the exec ends */
		if (pthread_create(&thread, NULL, i < 7 ? thread_opens : exec_here, (void *)(intptr_t)(100 + i)) != 0)
			exit(1);
	for (;;)
		pause();
}

static void vfork_exec(void)
{
	/* What lives across vfork must not sit in a register that the child may have changed. */
	for (volatile long i = 0; i < count; i++)
		if (vfork() == 0) { /* NOLINT(clang-analyzer-security.insecureAPI.vfork): it is what is tested */
			execl("/bin/true", "vforked", NULL);
			_exit(127);
		}
	atomic_store(&good, (int)collect());
}

static int go_below(void *unused)
{
	(void)unused;
	return mkdir("below", 0700) != 0 || chdir("below") != 0;
}

static int open_three(void *unused)
{
	(void)unused;
	return dup2(open("shared", O_WRONLY | O_CREAT | O_CLOEXEC, 0600), 33) != 33;
}

/* A cwd and a descriptor that another process puts in our hands. */
static void shared(void)
{
	char *stack = malloc(STACK);

	if (clone(open_three, stack + STACK, CLONE_FILES | SIGCHLD, NULL) < 0 || collect() != 1)
		exit(1);
	if (clone(go_below, stack + STACK, CLONE_FS | SIGCHLD, NULL) < 0 || collect() != 1)
		exit(1);
	atomic_fetch_add(&good, fchmod(33, 0640) == 0);
	make("in", 0, 0); /* below/in-0-0 */
}

static void on_signal(int number)
{
	(void)number;
}

static void storm_of(int number, int flags)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};

	sigaction(number, &action, NULL);
}

static void timer(void)
{
	struct itimerval often = {{0, 1000}, {0, 1000}};

	storm_of(SIGALRM, SA_RESTART);
	setitimer(ITIMER_REAL, &often, NULL);
	for (long i = 0; i < count; i++)
		make("s", 0, i);
}

static atomic_int over;

static void *urge(void *thread)
{
	struct timespec moment = {0, 200000};

	while (!atomic_load(&over)) {
		pthread_kill(*(pthread_t *)thread, SIGURG);
		nanosleep(&moment, NULL);
	}
	return NULL;
}

/* As Go's scheduler pre-empts: one thread signals another that is in the middle of a call. */
static void urgent(void)
{
	pthread_t self = pthread_self(), other;

	storm_of(SIGURG, SA_RESTART);
	if (pthread_create(&other, NULL, urge, &self) != 0)
		exit(1);
	for (long i = 0; i < count; i++)
		make("u", 0, i);
	atomic_store(&over, 1);
	pthread_join(other, NULL);
}

static void forks(void)
{
	fork_storm(0);
	collect();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} storms[] = {{"brief", brief}, {"opens", opens},      {"threads", threads},  {"connects", connects},
		      {"forks", forks}, {"exec", thread_exec}, {"vfork", vfork_exec}, {"shared", shared},
		      {"timer", timer}, {"urgent", urgent}};

	count = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	for (size_t i = 0; argc > 1 && i < sizeof(storms) / sizeof(storms[0]); i++)
		if (strcmp(storms[i].name, argv[1]) == 0) {
			storms[i].run();
			printf("%d\n", atomic_load(&good));
			return 0;
		}
	return 64;
}
