/* What belongs to a process outside the tree, by its folder in /proc: its root, a descriptor of it, its memory. */
#include "ev2.h"

static int open_of_outside(const char *what, int flags)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/proc/%s/%s", ev_env("EV_OUTSIDE_PID"), what);
	return open(path, flags | O_CLOEXEC, 0644);
}

int main(void)
{
	char below[PATH_MAX];
	struct stat made, null;

	snprintf(below, sizeof(below), "root%s/f", ev_env("EV_DIR"));
	int fd = open_of_outside(below, O_WRONLY | O_CREAT | O_EXCL);
	if (fd < 0)
		skip("the root of a process outside");
	MUST(fstat(fd, &made) == 0);
	did("create f ino~%lu", (unsigned long)made.st_ino);
	fd = open_of_outside("fd/0", O_WRONLY);
	MUST(fd >= 0 && fstat(fd, &made) == 0 && stat("/dev/null", &null) == 0 && made.st_rdev == null.st_rdev);
	did("write /dev/null");
	tried("memory", open_of_outside("mem", O_RDWR));
	return 0;
}
