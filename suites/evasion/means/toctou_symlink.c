/* Another process exchanges two symbolic links, each time at once, under the opener. */
#include "ev.h"

enum { ROUNDS = 1500 };

int main(void)
{
	struct stat secret, one;
	int secrets = 0, rounds = 0;

	make_file("secret", "");
	make_file("decoy", "");
	MUST(stat("secret", &secret) == 0);
	MUST(symlink("secret", "link") == 0 && symlink("decoy", "other") == 0);
	pid_t swapper = fork();
	MUST(swapper >= 0);
	if (swapper == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (renameat2(AT_FDCWD, "link", AT_FDCWD, "other", RENAME_EXCHANGE) == 0)
			;
		_exit(1);
	}
	for (; undecided(rounds, ROUNDS, secrets); rounds++) {
		int fd = open("link", O_WRONLY | O_CLOEXEC);
		MUST(fd >= 0 && fstat(fd, &one) == 0);
		secrets += one.st_ino == secret.st_ino;
		close(fd);
	}
	kill(swapper, SIGKILL);
	MUST(join(swapper) == 256 + SIGKILL);
	MUST(unlink("link") == 0 && unlink("other") == 0);
	did("open write secret secrets~%d decoys~%d", secrets, rounds - secrets);
	return 0;
}
