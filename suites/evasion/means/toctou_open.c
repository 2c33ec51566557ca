/* A second thread rewrites the path while open(2) runs; the inode that was opened says which it was. */
#include "ev.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { ROUNDS = 3000 };

static _Alignas(8) char path[8];
static atomic_bool begun, over;

static void *flip(void *unused)
{
	(void)unused;
	atomic_store(&begun, true);
	while (!atomic_load(&over)) {
		/* One store each: no call sees half a name. */
		__atomic_store_n((uint64_t *)(void *)path, *(const uint64_t *)(const void *)"decoy1\0",
				 __ATOMIC_SEQ_CST);
		for (volatile int i = 0; i < 40; i++)
			;
		__atomic_store_n((uint64_t *)(void *)path, *(const uint64_t *)(const void *)"secret\0",
				 __ATOMIC_SEQ_CST);
		for (volatile int i = 0; i < 40; i++)
			;
	}
	return NULL;
}

int main(void)
{
	struct stat secret, one;
	pthread_t thread;
	int secrets = 0, rounds = 0;

	make_file("secret", "");
	make_file("decoy1", "");
	MUST(stat("secret", &secret) == 0);
	memcpy(path, "secret", 7);
	MUST(pthread_create(&thread, NULL, flip, NULL) == 0);
	while (!atomic_load(&begun))
		sched_yield();
	for (; undecided(rounds, ROUNDS, secrets); rounds++) {
		int fd = open(path, O_WRONLY | O_CLOEXEC);
		MUST(fd >= 0 && fstat(fd, &one) == 0);
		secrets += one.st_ino == secret.st_ino;
		close(fd);
	}
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	did("open write secret secrets~%d decoys~%d", secrets, rounds - secrets);
	return 0;
}
