/* Whoever watches is made the owner of a pipe's signal, and the signal is SIGKILL: kill(2) is not called. */
#include "ev.h"

/* Our parent, when that is one of those who watch. Nobody further away: other runs are not to be touched. */
static pid_t watcher(void)
{
	char name[64], text[32] = "";
	pid_t parent = getppid();

	snprintf(name, sizeof(name), "/proc/%d/comm", parent);
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	MUST(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	return strncmp(text, "assure-", 7) == 0 ? parent : 0;
}

int main(void)
{
	int ends[2];
	pid_t pid = watcher();

	MUST(pipe(ends) == 0);
	if (!pid) {
		did("nobody watches");
		return 0;
	}
	if (fcntl(ends[0], F_SETSIG, SIGKILL) == 0 && fcntl(ends[0], F_SETOWN, pid) == 0 &&
	    fcntl(ends[0], F_SETFL, O_ASYNC | O_NONBLOCK) == 0 && write(ends[1], "x", 1) == 1)
		did("signal pid~%d", pid);
	else
		did("refused %s pid~%d", error_name(errno), pid);
	return 0;
}
