/* A folder gets a second name in a mount namespace of the program's own, and is written through that. */
#include "ev.h"

#include <sched.h>
#include <sys/mount.h>

int main(void)
{
	struct stat made;

	MUST(mkdir("secret", 0755) == 0 && mkdir("alias", 0755) == 0);
	space(CLONE_NEWNS);
	MUST(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	MUST(mount("secret", "alias", NULL, MS_BIND, NULL) == 0);
	make_file("alias/f", "text\n");
	MUST(stat("secret/f", &made) == 0);
	did("bind secret alias");
	did("create secret/f ino~%lu", (unsigned long)made.st_ino);
	return 0;
}
