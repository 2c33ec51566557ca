/*
 * Names that look alike and are others, and, where there can be a folder that does not tell a from A, names that look
 * different and are the same.
 */
#include "ev2.h"

#include <linux/fs.h>

#define COMPOSED "caf\xc3\xa9"
#define DECOMPOSED "cafe\xcc\x81"

static bool folding(const char *folder)
{
	int flags = 0;

	if (mount("evasion", folder, "tmpfs", 0, "casefold") != 0)
		return false;
	int fd = open(folder, O_RDONLY | O_CLOEXEC);
	MUST(fd >= 0 && mkdir("mnt/d", 0755) == 0);
	close(fd);
	fd = open("mnt/d", O_RDONLY | O_CLOEXEC);
	MUST(fd >= 0 && ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0);
	flags |= FS_CASEFOLD_FL;
	return ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0;
}

int main(void)
{
	struct stat one, two;
	int folded = 0;

	make_file(COMPOSED, "text\n");
	make_file(DECOMPOSED, "text\n");
	MUST(stat(COMPOSED, &one) == 0 && stat(DECOMPOSED, &two) == 0 && one.st_ino != two.st_ino);
	did("create composed~%lu decomposed~%lu", (unsigned long)one.st_ino, (unsigned long)two.st_ino);
	MUST(mkdir("mnt", 0755) == 0);
	private_mounts();
	if (folding("mnt")) {
		make_file("mnt/d/A", "text\n");
		put_text("mnt/d/a", "more\n");
		MUST(stat("mnt/d/A", &one) == 0);
		did("write mnt/d/A upper~%lu", (unsigned long)one.st_ino);
		folded = 1;
	}
	did("look folded=%d", folded);
	return 0;
}
