/* An overlay: what is written to the lower file is written in the upper folder. */
#include "ev.h"

#include <sched.h>
#include <sys/mount.h>

int main(void)
{
	static const char *const folders[] = {"low", "up", "work", "mnt"};

	for (size_t i = 0; i < 4; i++)
		MUST(mkdir(folders[i], 0755) == 0);
	make_file("low/f", "lower\n");
	space(CLONE_NEWNS);
	MUST(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	if (mount("overlay", "mnt", "overlay", 0, "lowerdir=low,upperdir=up,workdir=work") != 0)
		skip("overlay");
	put_text("mnt/f", "upper\n");
	MUST(umount("mnt") == 0 && size_of("up/f") == 6);
	MUST(rmdir("work/work") == 0);
	did("mount overlay mnt");
	did("write up/f");
	return 0;
}
