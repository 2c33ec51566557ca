/* Files are made in a storm of signals whose handler restarts the call: each must be made exactly once. */
#include "ev.h"

#include <sys/time.h>

enum { FILES = 4000 };

static volatile int signals;

static void count(int number)
{
	(void)number;
	signals = signals + 1;
}

int main(void)
{
	struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
	struct itimerval often = {.it_interval = {.tv_usec = 300}, .it_value = {.tv_usec = 300}}, never = {0};
	char name[16];

	MUST(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "f%04d", i);
		int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		MUST(fd >= 0);
		close(fd);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	did("create files=%d signals~%d", FILES, signals);
	return 0;
}
