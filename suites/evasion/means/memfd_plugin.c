/* A library that lies in no folder: a copy in memory, loaded by the name of its descriptor. It writes the file. */
#include "ev2.h"

#include <dlfcn.h>
#include <sys/sendfile.h>

typedef void *opener(const char *, const char *);
typedef int closer(void *);

static int copied(const char *library)
{
	struct stat status;
	int from = open(library, O_RDONLY | O_CLOEXEC);

	if (from < 0)
		return -1;
	int fd = memfd_create("plugin", MFD_CLOEXEC);
	MUST(fd >= 0 && fstat(from, &status) == 0);
	for (off_t left = status.st_size; left > 0;) {
		ssize_t size = sendfile(fd, from, NULL, (size_t)left);
		MUST(size > 0);
		left -= size;
	}
	close(from);
	return fd;
}

int main(void)
{
	static const char *const libraries[] = {"/lib/x86_64-linux-gnu/libz.so.1",
						"/usr/lib/x86_64-linux-gnu/libz.so.1", "/usr/lib64/libz.so.1"};
	struct stat status;
	char name[64];
	int fd = -1;

	for (size_t i = 0; fd < 0 && i < sizeof(libraries) / sizeof(*libraries); i++)
		fd = copied(libraries[i]);
	if (fd < 0)
		skip("libz.so.1");
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	void *plugin = dlopen(name, RTLD_NOW);
	MUST(plugin);
	opener *begin = (opener *)(uintptr_t)dlsym(plugin, "gzopen");
	closer *end = (closer *)(uintptr_t)dlsym(plugin, "gzclose");
	MUST(begin && end);
	void *file = begin("f", "wT");
	MUST(file && end(file) == 0 && size_of("f") == 0 && fstat(fd, &status) == 0);
	did("load plugin~%lu", (unsigned long)status.st_ino);
	did("create f");
	return 0;
}
