/* A shared mapping: the descriptor is closed, and the file is changed by a store instruction. */
#include "ev.h"

int main(void)
{
	make_file("f", "old text\n");
	int fd = open("f", O_RDWR | O_CLOEXEC);
	MUST(fd >= 0);
	char *area = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(area != MAP_FAILED);
	close(fd);
	for (int i = 0; i < 3; i++)
		area[i] = "new"[i];
	did("store f");
	return 0;
}
