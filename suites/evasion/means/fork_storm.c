/* Many processes, each of less than a millisecond, and each makes one file. */
#include "ev.h"

enum { CHILDREN = 400, AT_ONCE = 16 };

int main(void)
{
	char name[16];

	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();
		MUST(child >= 0);
		if (child == 0) {
			snprintf(name, sizeof(name), "f%03d", i);
			int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
			_exit(fd >= 0 ? 0 : 1);
		}
		if (i >= AT_ONCE)
			MUST(join(-1) == 0);
	}
	for (int i = 0; i < AT_ONCE; i++)
		MUST(join(-1) == 0);
	did("create files=%d", CHILDREN);
	return 0;
}
