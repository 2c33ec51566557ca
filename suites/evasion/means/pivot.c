/* Another root, in a mount namespace of the program's own. */
#include "ev.h"

#include <sched.h>
#include <sys/mount.h>

int main(void)
{
	MUST(mkdir("nr", 0755) == 0 && mkdir("nr/old", 0755) == 0);
	space(CLONE_NEWNS);
	MUST(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	MUST(mount("nr", "nr", NULL, MS_BIND, NULL) == 0);
	MUST(syscall(SYS_pivot_root, "nr", "nr/old") == 0 && chdir("/") == 0);
	make_file("/g", "text\n");
	did("pivot_root nr");
	did("create nr/g");
	return 0;
}
