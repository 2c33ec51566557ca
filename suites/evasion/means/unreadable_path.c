/* A path in memory that the program itself may not read: the kernel says EFAULT, and so nothing may be made. */
#include "ev.h"

int main(void)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(page != MAP_FAILED);
	strcpy(page, "f");
	MUST(mprotect(page, 4096, PROT_NONE) == 0);
	int fd = open(page, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	did("open %s", fd >= 0 ? "ok" : error_name(errno));
	did("mkdir %s", mkdir(page, 0755) == 0 ? "ok" : error_name(errno));
	did("present=%d", size_of("f") >= 0);
	return 0;
}
