/*
 * What race_fault and race_fuse share: calls that do not go on until somebody of the tree has answered, many at once,
 * while another process makes calls that nobody delays.
 */
#pragma once

#include "race.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { STALL_MOST = 256, STALL_NAP_NS = 1000000, STALL_NAME = 64 };

struct stall_call {
	char name[STALL_NAME]; /* below a/ or b/ */
	const char *path;      /* as the call names it */
	bool opens;
	pid_t tid;
	int error;
	pthread_t thread;
};

struct stall {
	long rounds, delay_ms;
	int width;
	char folder[PATH_MAX];
	atomic_long *progress;
	pid_t other;
	struct stall_call calls[STALL_MOST];
};

static struct stall stall;

static long stall_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void stall_sleep_ms(long time)
{
	struct timespec left = {.tv_sec = time / 1000, .tv_nsec = time % 1000 * 1000000};

	while (nanosleep(&left, &left) != 0)
		;
}

/* Answers that are due later, in the order in which they were asked for. */
struct stall_queue {
	struct {
		uint64_t what;
		long due;
	} waiting[STALL_MOST * 4];
	unsigned first, next;
};

static void stall_later(struct stall_queue *queue, uint64_t what)
{
	unsigned size = sizeof(queue->waiting) / sizeof(queue->waiting[0]);

	if (queue->next - queue->first == size)
		race_die("too many wait");
	queue->waiting[queue->next % size].what = what;
	queue->waiting[queue->next++ % size].due = stall_now_ms() + stall.delay_ms;
}

/* For poll(): how long nothing is due; -1 when nothing waits. */
static int stall_timeout(const struct stall_queue *queue)
{
	unsigned size = sizeof(queue->waiting) / sizeof(queue->waiting[0]);

	if (queue->first == queue->next)
		return -1;
	long left = queue->waiting[queue->first % size].due - stall_now_ms();
	return left > 0 ? (int)left : 0;
}

static bool stall_next(struct stall_queue *queue, uint64_t *what)
{
	unsigned size = sizeof(queue->waiting) / sizeof(queue->waiting[0]);

	if (stall_timeout(queue) != 0)
		return false;
	*what = queue->waiting[queue->first++ % size].what;
	return true;
}

/* Calls that a tracer has to look at, as fast as they come, but for a nap that keeps their number small. */
static void stall_go_on(pid_t parent)
{
	struct timespec nap = {.tv_nsec = STALL_NAP_NS};

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	while (getppid() == parent) {
		if (fchmodat(AT_FDCWD, "other", 0600, 0) != 0)
			_exit(1);
		atomic_fetch_add(stall.progress, 1);
		nanosleep(&nap, NULL);
	}
	_exit(0);
}

/* argv: KIND ROUNDS AT_ONCE DELAY_MS */
static void stall_prepare(int argc, char **argv)
{
	pid_t parent = getpid();

	if (argc != 5)
		exit(64);
	stall.rounds = race_number(argv[2]);
	stall.width = (int)race_number(argv[3]);
	stall.delay_ms = race_number(argv[4]);
	if (stall.width > STALL_MOST)
		exit(64);
	int fd = open("other", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || !getcwd(stall.folder, sizeof(stall.folder)) || mkdir("a", 0755) != 0 || mkdir("b", 0755) != 0)
		race_die("prepare");
	close(fd);
	stall.progress = mmap(NULL, sizeof(*stall.progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (stall.progress == MAP_FAILED)
		race_die("mmap");
	stall.other = fork();
	if (stall.other == 0)
		stall_go_on(parent);
}

static void *stall_make_call(void *given)
{
	struct stall_call *call = given;

	call->tid = gettid();
	int result = call->opens ? openat(AT_FDCWD, call->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)
				 : mkdirat(AT_FDCWD, call->path, 0700);
	call->error = result < 0 ? errno : 0;
	if (result > 0)
		close(result);
	return NULL;
}

static void stall_say(const struct stall_call *call)
{
	char place[STALL_NAME + 2];
	struct stat found;
	int made = -1;

	if (call->error) {
		errno = call->error;
		race_die(call->path);
	}
	for (int side = 0; side < 2; side++) {
		snprintf(place, sizeof(place), "%c/%s", "ab"[side], call -> name);
		if (made < 0 && stat(place, &found) == 0)
			made = side;
	}
	if (made < 0)
		race_die("nothing was made");
	race_begin(call->opens ? "open new" : "mkdir", call->opens ? "openat" : "mkdirat", call->tid, made ? "b" : "a",
		   0);
	race_is("path", "\"%s/%c/%s\"", stall.folder, "ab"[made], call -> name);
	race_is("ino?", "\"%llu\"", (unsigned long long)found.st_ino);
	race_end();
}

/* Up to `width` calls at once; each of their paths is given. What the other process got done meanwhile is said too. */
static void stall_batch(long first, int count)
{
	for (int i = 0; i < count; i++) {
		snprintf(stall.calls[i].name, STALL_NAME, "n%ld", first + i);
		stall.calls[i].opens = (first + i) % 2 == 1;
	}
	long before = atomic_load(stall.progress);
	for (int i = 0; i < count; i++)
		if (pthread_create(&stall.calls[i].thread, NULL, stall_make_call, &stall.calls[i]) != 0)
			race_die("pthread_create");
	stall_sleep_ms(stall.delay_ms);
	printf("{\"progress\":%ld}\n", atomic_load(stall.progress) - before);
	for (int i = 0; i < count; i++)
		pthread_join(stall.calls[i].thread, NULL);
	for (int i = 0; i < count; i++)
		stall_say(&stall.calls[i]);
}

static void stall_end(void)
{
	kill(stall.other, SIGKILL);
	waitpid(stall.other, NULL, 0);
}
