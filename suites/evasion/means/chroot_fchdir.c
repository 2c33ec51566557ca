/* A folder held from before, entered after chroot: the working directory is outside the root. */
#include "ev.h"

int main(void)
{
	MUST(mkdir("jail", 0755) == 0);
	space(0x20000 /* CLONE_NEWNS */);
	int held = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	MUST(held >= 0 && chroot("jail") == 0 && chdir("/") == 0 && fchdir(held) == 0);
	make_file("f", "text\n");
	int up = open("../", O_PATH | O_DIRECTORY | O_CLOEXEC);
	MUST(up >= 0 && fchdir(up) == 0 && chroot(".") == 0);
	did("chroot jail");
	did("create f");
	return 0;
}
