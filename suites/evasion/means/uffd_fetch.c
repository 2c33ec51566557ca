/*
 * Who reads the path first sees one name, and whoever reads it again another: the page is absent, is filled when it is
 * touched (20 ms late), and is taken away again.
 */
#include "ev.h"

#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>

enum { PAGE = 4096, STALL_MS = 20, LIFE_MS = 10 };

static int faults;
static char *page;
static _Alignas(PAGE) char source[PAGE];

static void *serve_page(void *argument)
{
	int fd = *(int *)argument;
	struct uffd_msg message;

	while (read(fd, &message, sizeof(message)) == sizeof(message)) {
		struct uffdio_copy copy = {.dst = (uintptr_t)page, .src = (uintptr_t)source, .len = PAGE};

		strcpy(source, faults++ == 0 ? "decoyX" : "secret");
		pause_ms(STALL_MS);
		ioctl(fd, UFFDIO_COPY, &copy);
		pause_ms(LIFE_MS);
		madvise(page, PAGE, MADV_DONTNEED);
	}
	return NULL;
}

int main(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	pthread_t thread;

	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (fd < 0)
		skip("userfaultfd that sees the kernel's own faults");
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(page != MAP_FAILED && ioctl(fd, UFFDIO_API, &api) == 0);
	struct uffdio_register area = {.range = {(uintptr_t)page, PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
	MUST(ioctl(fd, UFFDIO_REGISTER, &area) == 0);
	MUST(pthread_create(&thread, NULL, serve_page, &fd) == 0);
	int file = open(page, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	MUST(file >= 0);
	did("create %s", size_of("decoyX") == 0 ? "decoyX" : "secret");
	return 0;
}
