#include "os/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <pthread.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

/* A pidfd through which the thread's own table is reached: without CLONE_FILES it is another one than its process's. */
static int open_table(pid_t tid, pid_t pid)
{
	int pidfd = pidfd_open(tid, PIDFD_THREAD);

	/* Kernels before 6.9 have no pidfds of threads. */
	if (pidfd >= 0 || errno != EINVAL)
		return pidfd;
	if (tid != pid && syscall(SYS_kcmp, tid, pid, KCMP_FILES, 0, 0) != 0) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return pidfd_open(pid, 0);
}

int descriptor_copy(pid_t tid, pid_t pid, int fd)
{
	int pidfd CLEANUP_FD = open_table(tid, pid);

	return pidfd < 0 ? -1 : pidfd_getfd(pidfd, fd, 0);
}

/* Sockets on which O_NONBLOCK is ours. The lock is held over fcntl(2) alone, which waits for nobody. */
enum { UNBLOCKED_LIMIT = 64 };
static struct {
	pthread_mutex_t lock;
	uint64_t cookies[UNBLOCKED_LIMIT];
	unsigned users[UNBLOCKED_LIMIT];
} unblocked_now = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The entry of this socket, or a free one; UNBLOCKED_LIMIT when all are taken. */
static size_t find_entry(uint64_t cookie)
{
	size_t vacant = UNBLOCKED_LIMIT;

	for (size_t i = 0; i < UNBLOCKED_LIMIT; i++) {
		if (unblocked_now.users[i] == 0)
			vacant = i;
		else if (unblocked_now.cookies[i] == cookie)
			return i;
	}
	return vacant;
}

static bool share_or_set(int socket, size_t entry, struct unblocked *unblocked)
{
	if (entry < UNBLOCKED_LIMIT && unblocked_now.users[entry] > 0) {
		unblocked->ours = true;
		unblocked_now.users[entry]++;
		return true;
	}
	int flags = fcntl(socket, F_GETFL);
	if (flags < 0)
		return false;
	if (flags & O_NONBLOCK)
		return true;
	if (entry == UNBLOCKED_LIMIT || fcntl(socket, F_SETFL, flags | O_NONBLOCK) != 0)
		return false;
	unblocked->ours = true;
	unblocked_now.cookies[entry] = unblocked->cookie;
	unblocked_now.users[entry] = 1;
	return true;
}

bool unblock_begin(int socket, struct unblocked *unblocked)
{
	socklen_t size = sizeof(unblocked->cookie);

	unblocked->ours = false;
	if (getsockopt(socket, SOL_SOCKET, SO_COOKIE, &unblocked->cookie, &size) != 0)
		return false;
	pthread_mutex_lock(&unblocked_now.lock);
	bool done = share_or_set(socket, find_entry(unblocked->cookie), unblocked);
	pthread_mutex_unlock(&unblocked_now.lock);
	return done;
}

void unblock_end(int socket, const struct unblocked *unblocked)
{
	if (!unblocked->ours)
		return;
	pthread_mutex_lock(&unblocked_now.lock);
	if (--unblocked_now.users[find_entry(unblocked->cookie)] == 0) {
		int flags = fcntl(socket, F_GETFL);
		if (flags >= 0)
			(void)fcntl(socket, F_SETFL, flags & ~O_NONBLOCK);
	}
	pthread_mutex_unlock(&unblocked_now.lock);
}
