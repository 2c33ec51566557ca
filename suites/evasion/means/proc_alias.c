/* The magic links of /proc as parts of a path: each leads to the folder without naming it. */
#include "ev.h"

int main(void)
{
	char name[PATH_MAX];
	int held = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	MUST(held >= 0);
	make_file("/proc/self/cwd/f", "text\n");
	did("create f");
	snprintf(name, sizeof(name), "/proc/thread-self/root%s/g", ev_env("EV_DIR"));
	make_file(name, "text\n");
	did("create g");
	snprintf(name, sizeof(name), "/dev/fd/%d/h", held);
	make_file(name, "text\n");
	did("create h");
	return 0;
}
