#include "os/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/procfs.h"

struct member {
	pid_t pid, parent;
	bool dead;
};

static int by_pid(const void *a, const void *b)
{
	const struct member *one = a, *other = b;

	return one->pid < other->pid ? -1 : one->pid > other->pid;
}

/* Everybody on the system, with their parents. */
static struct member *list_processes(size_t *count)
{
	struct member *members = NULL;
	size_t capacity = 0;
	int copy CLEANUP_FD = openat(procfs_root(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = copy < 0 ? NULL : fdopendir(copy);

	*count = 0;
	if (!directory)
		return NULL;
	(void)fd_steal(&copy);
	for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
		struct task_status status;
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		int task CLEANUP_FD = pid > 0 ? procfs_task(pid) : -1;
		if (task < 0 || !procfs_status(task, 0, &status))
			continue;
		if (*count == capacity) {
			capacity = capacity ? capacity * 2 : 256;
			struct member *larger = realloc(members, capacity * sizeof(*larger));
			if (!larger)
				break;
			members = larger;
		}
		/* The dead still say whose child somebody was when he was read. */
		bool dead = status.state == 'Z' || status.state == 'X';
		members[(*count)++] = (struct member){.pid = pid, .parent = status.ppid, .dead = dead};
	}
	closedir(directory);
	return members;
}

static struct member *find(struct member *members, size_t count, pid_t pid)
{
	struct member key = {.pid = pid};

	return count ? bsearch(&key, members, count, sizeof(*members), by_pid) : NULL;
}

static bool is_spared(pid_t pid, const pid_t *spared, int count)
{
	for (int i = 0; i < count; i++)
		if (spared[i] == pid)
			return true;
	return false;
}

/* Follow the parents up to `root`; a chain that changed under us ends somewhere, and the next call sees it anew. */
static bool descends(struct member *members, size_t count, pid_t pid, pid_t root, const pid_t *spared, int spared_count)
{
	for (size_t steps = 0; steps < count + 1; steps++) {
		if (is_spared(pid, spared, spared_count))
			return false;
		const struct member *member = find(members, count, pid);
		if (!member)
			return false;
		if (member->parent == root)
			return true;
		pid = member->parent;
	}
	return false;
}

int tree_kill(pid_t root, const pid_t *spared, int spared_count)
{
	size_t count;
	int found = 0;
	struct member *members = list_processes(&count);

	if (!members)
		return 0;
	qsort(members, count, sizeof(*members), by_pid);
	for (size_t i = 0; i < count; i++) {
		if (members[i].dead || !descends(members, count, members[i].pid, root, spared, spared_count))
			continue;
		found++;
		(void)kill(members[i].pid, SIGKILL);
	}
	free(members);
	return found;
}

void tree_end(const pid_t *spared, int spared_count)
{
	enum { ROUNDS = 400, SURE = 3, PAUSE_MS = 3 };

	for (int rounds = 0, empty = 0; rounds < ROUNDS && empty < SURE; rounds++) {
		/* Whoever was read while a parent of his ended seems to be nobody's: one empty look is no proof. */
		empty = tree_kill(getpid(), spared, spared_count) == 0 ? empty + 1 : 0;
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		(void)poll(NULL, 0, PAUSE_MS);
	}
}

bool tree_reap(pid_t child, int timeout_ms)
{
	pid_t reaped = waitpid(child, NULL, WNOHANG);

	/* Ended already, or somebody else took its end. */
	if (reaped != 0)
		return reaped == child;
	int pidfd CLEANUP_FD = pidfd_open(child, 0);
	struct pollfd end = {pidfd, POLLIN, 0};
	/* Without a descriptor there is nothing to sleep on but the clock. */
	(void)poll(&end, pidfd >= 0, timeout_ms);
	return waitpid(child, NULL, WNOHANG) == child;
}
