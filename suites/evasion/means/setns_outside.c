/*
 * The mount namespace of a process outside the tree is entered. In ours another folder lies over d, so that what is
 * made by that name tells in which one we were.
 */
#include "ev2.h"

static int outside_namespace(void)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/proc/%s/ns/mnt", ev_env("EV_OUTSIDE_PID"));
	return open(path, O_RDONLY | O_CLOEXEC);
}

int main(void)
{
	char name[PATH_MAX];
	struct stat made;
	int folder = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	MUST(folder >= 0 && mkdir("d", 0755) == 0);
	private_mounts();
	MUST(mount("evasion", "d", "tmpfs", 0, NULL) == 0);
	int space_fd = outside_namespace();
	MUST(space_fd >= 0);
	int result = setns(space_fd, CLONE_NEWNS);
	tried("enter", result);
	if (result == 0) {
		snprintf(name, sizeof(name), "%s/d/f", ev_env("EV_DIR"));
		make_file(name, "text\n");
		/* Through a folder that was opened before there was another one over d. */
		MUST(fstatat(folder, "d/f", &made, 0) == 0);
		did("create d/f ino~%lu", (unsigned long)made.st_ino);
	}
	did("look files=%d", result == 0);
	return 0;
}
