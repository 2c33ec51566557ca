/*
 * Those who watch are left without means: their limits are lowered, they are made the first to be ended when memory is
 * short, and their cpu is taken. Then our own table of descriptors is filled: a file that is not delivered may not be
 * made either.
 */
#include "ev2.h"

#include <sys/resource.h>

enum { MOST = 8, FEW = 64 };

static void aim(int number, pid_t pid)
{
	static const struct rlimit nothing = {3, 3};
	char path[64];
	struct {
		int policy, priority;
	} idle = {.policy = 5 /* SCHED_IDLE */};

	if (prlimit(pid, RLIMIT_NOFILE, &nothing, NULL) == 0)
		did("limit pid~%d", pid);
	if (syscall(SYS_sched_setscheduler, pid, idle.policy, &idle.priority) == 0)
		did("idle pid~%d", pid);
	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
	if (open(path, O_WRONLY | O_CLOEXEC) >= 0)
		did("open %s", path);
	did("aim watcher%d~%d", number, pid);
}

int main(void)
{
	struct rlimit few = {FEW, FEW};
	pid_t found[MOST];
	int count = watchers(found, MOST), last = -1, fd;

	for (int i = 0; i < count; i++)
		aim(i + 1, found[i]);
	MUST(setrlimit(RLIMIT_NOFILE, &few) == 0);
	while ((fd = dup(STDOUT_FILENO)) >= 0)
		last = fd;
	MUST(errno == EMFILE && last == FEW - 1);
	MUST(open("g", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644) < 0 && errno == EMFILE && size_of("g") < 0);
	did("fail g");
	close(last);
	make_file("f", "text\n");
	did("create f watchers~%d", count);
	return 0;
}
