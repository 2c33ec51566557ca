/*
 * Paths lie in pages that are never filled: whoever reads one waits for good. The calls that have them hang, and
 * nothing else may: a process beside them makes its files meanwhile. There are more of them than can be waited for.
 */
#include "ev2.h"

#include <linux/userfaultfd.h>

enum { PAGE = 4096, FILES = 200, STALLED = 300, REST_MS = 500 };

static void stall(int ready)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (fd < 0)
		_exit(EV_SKIP);
	MUST(page != MAP_FAILED && ioctl(fd, UFFDIO_API, &api) == 0);
	struct uffdio_register area = {.range = {(uintptr_t)page, PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
	MUST(ioctl(fd, UFFDIO_REGISTER, &area) == 0);
	MUST(write(ready, "x", 1) == 1);
	open(page, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	_exit(1);
}

int main(void)
{
	pid_t stalled[STALLED];
	char name[32], byte;
	int ends = 0, ready[2];

	MUST(pipe(ready) == 0);
	for (int i = 0; i < STALLED; i++) {
		MUST((stalled[i] = fork()) >= 0);
		if (stalled[i] == 0)
			stall(ready[1]);
	}
	close(ready[1]);
	for (int i = 0; i < STALLED && read(ready[0], &byte, 1) == 1; i++)
		;
	pause_ms(REST_MS);
	MUST(mkdir("d", 0755) == 0);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "d/f%d", i);
		make_file(name, "");
	}
	for (int i = 0; i < STALLED; i++) {
		kill(stalled[i], SIGKILL);
		int status = join(stalled[i]);
		if (status == EV_SKIP) {
			errno = EPERM;
			skip("userfaultfd that sees the kernel's own faults");
		}
		ends += status == 256 + SIGKILL;
	}
	did("stall stalled=%d first~%d", ends, stalled[0]);
	did("create files=%d", FILES);
	return 0;
}
