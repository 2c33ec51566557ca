/* Names that start at a folder which was renamed or removed meanwhile. */
#include "ev.h"

static void create_at(int folder, const char *name)
{
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	MUST(fd >= 0);
	close(fd);
}

int main(void)
{
	MUST(mkdir("a", 0755) == 0 && mkdir("x", 0755) == 0 && mkdir("n", 0755) == 0 && mkdir("n/x", 0755) == 0);
	int held = open("a", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int below = open("n/x", O_PATH | O_DIRECTORY | O_CLOEXEC);
	MUST(held >= 0 && below >= 0);
	MUST(rename("a", "b") == 0);
	create_at(held, "f");
	did("create b/f");
	MUST(rmdir("n/x") == 0);
	create_at(below, "../h");
	did("create n/h");
	MUST(chdir("x") == 0 && rmdir("../x") == 0);
	create_at(AT_FDCWD, "../g");
	did("create g");
	return 0;
}
