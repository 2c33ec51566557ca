// Something to debug: threads that count, a child, a signal, an abort, a call of the file system.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int total;

static void step(int n)
{
	total += n;
	total += 1;
}

static void *work(void *n)
{
	step((int)(long)n);
	return NULL;
}

static void child(void)
{
	_exit(3);
}

static void on_signal(int number)
{
	(void)number;
	(void)!write(1, "got it\n", 7);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "1";
	if (!strcmp(what, "abort"))
		abort();
	if (!strcmp(what, "signal")) {
		signal(SIGUSR1, on_signal);
		raise(SIGUSR1);
	} else if (!strcmp(what, "fork")) {
		if (fork() == 0)
			child();
		wait(NULL);
	} else if (!strcmp(what, "exec")) {
		execl("/bin/true", "true", NULL);
	} else if (!strcmp(what, "mkdir")) {
		mkdir("made", 0700);
	} else if (!strcmp(what, "wait")) {
		sleep(10);
	} else {
		int count = atoi(what);
		for (long n = 1; n <= count; n++) {
			pthread_t thread;
			pthread_create(&thread, NULL, work, (void *)n);
			pthread_join(thread, NULL);
		}
	}
	return 0;
}
