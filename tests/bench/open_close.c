/*
 * Single calls, many times: `open_close write|read|mkdir|rename N`, in the working directory.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool open_and_close(int flags)
{
	int fd = open("file", flags | O_CLOEXEC, 0644);

	return fd >= 0 && close(fd) == 0;
}

static bool open_for_write(void)
{
	return open_and_close(O_WRONLY | O_CREAT);
}

static bool open_for_read(void)
{
	return open_and_close(O_RDONLY);
}

static bool make_and_remove(void)
{
	return mkdir("folder", 0755) == 0 && rmdir("folder") == 0;
}

static bool rename_twice(void)
{
	return rename("file", "other") == 0 && rename("other", "file") == 0;
}

static const struct {
	const char *name;
	bool (*once)(void);
} works[] = {{"write", open_for_write}, {"read", open_for_read}, {"mkdir", make_and_remove}, {"rename", rename_twice}};

int main(int argc, char **argv)
{
	long count = argc == 3 ? strtol(argv[2], NULL, 10) : 0;

	if (count <= 0 || !open_for_write()) {
		fputs("usage: open_close write|read|mkdir|rename N\n", stderr);
		return 64;
	}
	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++) {
		if (strcmp(argv[1], works[i].name) != 0)
			continue;
		while (count-- > 0) {
			if (!works[i].once()) {
				perror(argv[1]);
				return 1;
			}
		}
		return 0;
	}
	return 64;
}
