/* A thread that is not the first executes: it gets the process's number, and nobody reports the end of the first. */
#include "ev.h"

#include <pthread.h>

static void *run(void *unused)
{
	(void)unused;
	execl("/bin/sh", "sh", "-c", "echo text >f; echo did create f", NULL);
	die("execl");
}

int main(void)
{
	pthread_t thread;

	did("exec sh process~%d", getpid());
	MUST(pthread_create(&thread, NULL, run, NULL) == 0);
	for (;;)
		pause();
}
