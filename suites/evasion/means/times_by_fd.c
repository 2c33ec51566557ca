/* The times of a file are set through a descriptor that may only read: no path is named, nothing opened to write. */
#include "ev.h"

int main(void)
{
	struct timespec times[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
	struct stat status;

	make_file("f", "text\n");
	int fd = open("f", O_RDONLY | O_CLOEXEC);
	MUST(fd >= 0 && futimens(fd, times) == 0);
	MUST(fstat(fd, &status) == 0 && status.st_mtim.tv_sec == 1000000);
	did("utime f");
	return 0;
}
