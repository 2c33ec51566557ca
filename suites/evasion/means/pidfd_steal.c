/* A descriptor is taken out of another process, where it was opened. */
#include "ev.h"

int main(void)
{
	int ready[2];
	char byte;

	MUST(pipe(ready) == 0);
	pid_t victim = fork();
	MUST(victim >= 0);
	if (victim == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		make_file("f", "");
		int file = open("f", O_WRONLY);
		MUST(file >= 0 && dup2(file, 50) == 50 && write(ready[1], "x", 1) == 1);
		for (;;)
			pause();
	}
	MUST(read(ready[0], &byte, 1) == 1);
	int process = (int)syscall(SYS_pidfd_open, victim, 0);
	int taken = (int)syscall(SYS_pidfd_getfd, process, 50, 0);
	if (taken < 0)
		skip("pidfd_getfd");
	MUST(write(taken, "text\n", 5) == 5);
	kill(victim, SIGKILL);
	join(victim);
	did("receive f victim~%d", victim);
	return 0;
}
