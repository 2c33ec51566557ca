/* A chain of folders longer than PATH_MAX: no absolute name fits, and getcwd says so. */
#include "ev.h"

enum { DEPTH = 32, LENGTH = 250 };

int main(void)
{
	char name[LENGTH + 1], place[PATH_MAX];
	struct stat made;

	memset(name, 'd', LENGTH);
	name[LENGTH] = 0;
	for (int i = 0; i < DEPTH; i++)
		MUST(mkdir(name, 0755) == 0 && chdir(name) == 0);
	MUST(syscall(SYS_getcwd, place, sizeof(place)) < 0 && errno == ENAMETOOLONG);
	make_file("f", "text\n");
	MUST(stat("f", &made) == 0);
	did("create f depth=%d length=%d ino~%lu", DEPTH, LENGTH, (unsigned long)made.st_ino);
	return 0;
}
