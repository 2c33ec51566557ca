/* An interpreter of one's own for programs of others. It is never registered: the file is opened and closed. */
#include "ev2.h"

#define FOLDER "/proc/sys/fs/binfmt_misc"

int main(void)
{
	private_mounts();
	if (access(FOLDER "/register", F_OK) != 0 && mount("binfmt_misc", FOLDER, "binfmt_misc", 0, NULL) != 0)
		skip("binfmt_misc");
	tried("write", open(FOLDER "/register", O_WRONLY | O_CLOEXEC));
	return 0;
}
