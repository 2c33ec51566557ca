/* A program with the set-user-id bit has to change who acts. */
#include "ev.h"

enum { OTHER = 65534 };

static void copy_self(const char *name)
{
	static char bytes[1 << 20];
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int to = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	ssize_t size;

	MUST(from >= 0 && to >= 0);
	while ((size = read(from, bytes, sizeof(bytes))) > 0)
		MUST(write(to, bytes, (size_t)size) == size);
	close(from);
	close(to);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		did("exec suid euid=%u", geteuid());
		return geteuid() == OTHER ? 0 : 1;
	}
	copy_self("suid");
	MUST(chown("suid", OTHER, OTHER) == 0 && chmod("suid", 04755) == 0);
	execl("./suid", argv[0], "child", NULL);
	die("execl");
}
