/*
 * A block device is written to, and so a file that nobody opens. The device is a loop device of our own whose file lies
 * in our folder; where there can be none, the one that this folder lies on is opened for writing, and closed.
 */
#include "ev2.h"

#include <linux/loop.h>

enum { SIZE = 1 << 20, TRIES = 8 };

/* A loop device for a file, which it forgets when it is closed. */
static int attached(int backing, char *name, size_t size)
{
	struct loop_config config = {.fd = (uint32_t)backing, .info.lo_flags = LO_FLAGS_AUTOCLEAR};
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

	for (int i = 0; control >= 0 && i < TRIES; i++) {
		snprintf(name, size, "/dev/loop%d", ioctl(control, LOOP_CTL_GET_FREE));
		int fd = open(name, O_WRONLY | O_CLOEXEC);
		if (fd >= 0 && ioctl(fd, LOOP_CONFIGURE, &config) == 0)
			return fd;
		close(fd);
	}
	return -1;
}

int main(void)
{
	struct stat status;
	char name[64], link[64], word[8] = "";

	make_file("img", "");
	MUST(truncate("img", SIZE) == 0);
	int backing = open("img", O_RDWR | O_CLOEXEC);
	int fd = attached(backing, name, sizeof(name));
	if (fd >= 0) {
		MUST(pwrite(fd, "secret", 6, 4096) == 6 && fsync(fd) == 0);
		MUST(pread(backing, word, 6, 4096) == 6 && strcmp(word, "secret") == 0);
	} else {
		MUST(stat(".", &status) == 0);
		snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(status.st_dev), minor(status.st_dev));
		char *real = realpath(link, NULL);
		if (!real)
			skip(link);
		snprintf(name, sizeof(name), "/dev/%.32s", strrchr(real, '/') + 1);
		free(real);
		fd = open(name, O_WRONLY | O_CLOEXEC);
	}
	tried("write", fd);
	MUST(stat(name, &status) == 0 && S_ISBLK(status.st_mode));
	did("look device~%s rdev~%u:%u", name, major(status.st_rdev), minor(status.st_rdev));
	return 0;
}
