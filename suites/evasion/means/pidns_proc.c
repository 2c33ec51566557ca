/* Process 1 of a namespace of its own, with an empty /proc: no number that it sees means anything outside. */
#include "ev.h"

#include <sched.h>
#include <sys/mount.h>

int main(void)
{
	space(CLONE_NEWNS | CLONE_NEWPID);
	pid_t child = fork();
	MUST(child >= 0);
	if (child == 0) {
		MUST(getpid() == 1);
		MUST(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
		MUST(mount("none", "/proc", "tmpfs", 0, NULL) == 0 && access("/proc/self", F_OK) != 0);
		make_file("f", "text\n");
		_exit(0);
	}
	MUST(join(child) == 0);
	did("create f child~%d", child);
	return 0;
}
