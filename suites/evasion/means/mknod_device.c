/* Device nodes of our own, in our folder: one that is used is another name of /dev/null. */
#include "ev2.h"

enum { BLOCK_MAJOR = 254, MEMORY_MAJOR = 1, NULL_MINOR = 3 };

int main(void)
{
	int result = mknod("disk", S_IFBLK | 0600, makedev(BLOCK_MAJOR, 0));

	tried("block", result);
	result = mknod("d", S_IFCHR | 0600, makedev(MEMORY_MAJOR, NULL_MINOR));
	tried("character", result);
	int fd = result == 0 ? open("d", O_WRONLY | O_CLOEXEC) : -1;
	if (result == 0)
		tried("write", fd >= 0 && write(fd, "text\n", 5) == 5 ? 0 : -1);
	/* A folder may lie on a file system without devices. */
	did("look opens=%d", result == 0);
	return 0;
}
