/* Runs a 32-bit program (elf32_code), all of whose calls are those of another table. */
#include "ev.h"

int main(int argc, char **argv)
{
	char path[PATH_MAX];

	MUST(argc > 1);
	snprintf(path, sizeof(path), "%s_code", argv[0]);
	if (access(path, X_OK) != 0)
		skip("32-bit program");
	pid_t child = fork();
	MUST(child >= 0);
	if (child == 0) {
		execl(path, path, argv[1], NULL);
		_exit(errno == ENOEXEC ? EV_SKIP : 99);
	}
	int status = join(child);
	if (status == EV_SKIP) {
		errno = ENOEXEC;
		skip("32-bit program");
	}
	if (status == 0) {
		did("create f");
		did("connect tcp");
		return size_of("f") == 0 ? 0 : 1;
	}
	did("refused ended=%d", status);
	return size_of("f") == -1 ? 0 : 1;
}
