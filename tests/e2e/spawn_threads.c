/*
 * spawn_threads THREADS EACH COMMAND [ARG...]: posix_spawn (a vfork) from many threads at once. Prints how many ended
 * with 0.
 */
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_THREADS = 64 };

static int each;
static char **command;
static atomic_int good;

static void *spawn_each(void *unused)
{
	(void)unused;
	for (int i = 0; i < each; i++) {
		pid_t child;
		int status;

		if (posix_spawnp(&child, command[0], NULL, NULL, command, environ) == 0 &&
		    waitpid(child, &status, 0) == child && status == 0)
			atomic_fetch_add(&good, 1);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[MOST_THREADS];
	long count = argc > 3 ? strtol(argv[1], NULL, 10) : 0;

	if (count < 1 || count > MOST_THREADS)
		return 64;
	each = (int)strtol(argv[2], NULL, 10);
	command = argv + 3;
	for (long i = 0; i < count; i++) {
		if (pthread_create(&threads[i], NULL, spawn_each, NULL) != 0)
			return 1;
	}
	for (long i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	printf("%d\n", atomic_load(&good));
	return 0;
}
