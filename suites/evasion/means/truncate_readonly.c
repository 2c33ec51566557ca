/* An open that asks to read, and empties the file; and one whose access mode is neither reading nor writing. */
#include "ev.h"

int main(void)
{
	make_file("f", "text\n");
	int fd = (int)syscall(SYS_open, "f", O_RDONLY | O_TRUNC);
	MUST(fd >= 0 && size_of("f") == 0);
	did("truncate f");
	fd = (int)syscall(SYS_openat, AT_FDCWD, "g", O_RDONLY | O_CREAT | O_EXCL, 0644);
	MUST(fd >= 0 && fchmod(fd, 0600) == 0);
	did("create g");
	did("chmod g");
	return 0;
}
