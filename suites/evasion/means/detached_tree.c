/* A copy of a mount that hangs nowhere: what is made in it has a name in no namespace, but is in the folder. */
#include "ev.h"

#ifndef SYS_open_tree
#define SYS_open_tree 428
#endif
enum { TREE_CLONE = 1 };

int main(void)
{
	struct stat made;

	MUST(mkdir("secret", 0755) == 0);
	space(0x20000 /* CLONE_NEWNS */);
	int tree = (int)syscall(SYS_open_tree, AT_FDCWD, "secret", TREE_CLONE | O_CLOEXEC);
	if (tree < 0)
		skip("open_tree");
	int fd = openat(tree, "f", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	MUST(fd >= 0 && stat("secret/f", &made) == 0);
	did("open_tree secret");
	did("create secret/f ino~%lu", (unsigned long)made.st_ino);
	return 0;
}
