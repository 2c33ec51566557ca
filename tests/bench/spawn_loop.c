/*
 * Start `true` N times, one after the other.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char program[] = "true";
	char *const arguments[] = {program, NULL};
	long count = argc == 2 ? strtol(argv[1], NULL, 10) : 0;

	if (count <= 0) {
		fputs("usage: spawn_loop N\n", stderr);
		return 64;
	}
	while (count-- > 0) {
		pid_t child;
		int status;
		if (posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) != 0 ||
		    waitpid(child, &status, 0) != child || status != 0) {
			fputs("spawn_loop: a child failed\n", stderr);
			return 1;
		}
	}
	return 0;
}
