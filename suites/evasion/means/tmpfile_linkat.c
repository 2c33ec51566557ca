/* A file is made without a name and gets one later; another one lies where `/` and `..` mean a folder. */
#include "ev2.h"

#include <linux/openat2.h>

int main(void)
{
	struct open_how how = {.flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, .mode = 0644};
	struct stat made;
	char name[64];

	int fd = open(".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);
	if (fd < 0)
		skip("O_TMPFILE");
	MUST(write(fd, "text\n", 5) == 5);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	MUST(linkat(AT_FDCWD, name, AT_FDCWD, "f", AT_SYMLINK_FOLLOW) == 0);
	MUST(stat("f", &made) == 0);
	did("link f ino~%lu", (unsigned long)made.st_ino);

	MUST(mkdir("jail", 0755) == 0 && mkdir("jail/d", 0755) == 0 && symlink("/d", "jail/link") == 0);
	int folder = open("jail", O_PATH | O_DIRECTORY | O_CLOEXEC);
	how.resolve = RESOLVE_IN_ROOT;
	MUST(folder >= 0 && syscall(SYS_openat2, folder, "/../../link/g", &how, sizeof(how)) >= 0);
	MUST(size_of("jail/d/g") == 0);
	did("create jail/d/g");
	how.resolve = RESOLVE_BENEATH;
	MUST(syscall(SYS_openat2, folder, "../h", &how, sizeof(how)) < 0 && errno == EXDEV);
	MUST(size_of("h") < 0);
	did("fail h");
	return 0;
}
