/* A descriptor that can do nothing is opened, and then once more by its name in /proc, to write. */
#include "ev2.h"

static void reopen(const char *folder, int fd)
{
	char name[64];

	snprintf(name, sizeof(name), "%s/%d", folder, fd);
	int file = open(name, O_WRONLY | O_CLOEXEC);
	MUST(file >= 0 && write(file, "more\n", 5) == 5);
	close(file);
}

int main(void)
{
	struct stat made;

	make_file("f", "text\n");
	MUST(stat("f", &made) == 0);
	int fd = open("f", O_PATH | O_CLOEXEC);
	MUST(fd >= 0 && rename("f", "g") == 0);
	reopen("/proc/self/fd", fd);
	reopen("/proc/thread-self/fd", fd);
	reopen("/dev/fd", fd);
	did("write g ino~%lu times=%d", (unsigned long)made.st_ino, 3);
	return 0;
}
