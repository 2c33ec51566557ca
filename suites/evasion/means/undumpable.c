/* Another user, a false name, and memory that nobody may look into. */
#include "ev.h"

#include <grp.h>

enum { OTHER = 65534 };

int main(void)
{
	MUST(mkdir("d", 0777) == 0 && chmod("d", 0777) == 0);
	if (geteuid() == 0)
		MUST(setgroups(0, NULL) == 0 && setgid(OTHER) == 0 && setuid(OTHER) == 0);
	MUST(prctl(PR_SET_DUMPABLE, 0) == 0 && prctl(PR_SET_NAME, "kworker/0:1") == 0);
	make_file("d/f", "text\n");
	did("create d/f");
	return 0;
}
