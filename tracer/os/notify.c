#include "os/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

/* Linux 6.6. */
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

/* For good: who is no longer there cannot come back, and filters are only inherited. */
static bool nobody_is_left(const struct notify *notify)
{
	struct pollfd listener = {.fd = notify->listener};

	return poll(&listener, 1, 0) > 0 && (listener.revents & POLLHUP);
}

static enum receive_state notify_receive(void *self, struct stop *stop, struct err *err)
{
	const struct notify *notify = self;
	struct seccomp_notif request = {0};

	if (ioctl(notify->listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) {
		/* ENOENT: the caller was killed before we looked, or (newer kernels) nobody is left. */
		if (errno == ENOENT && nobody_is_left(notify))
			return RECEIVE_ENDED;
		if (errno == EINTR || errno == EAGAIN || errno == ENOENT)
			return RECEIVE_AGAIN;
		err_set(err, errno, "receiving a system call from the kernel");
		err_hint(err, "a security module may forbid ioctl on seccomp listeners; see `assure doctor`");
		return RECEIVE_FAILED;
	}
	*stop = (struct stop){
	    .cookie = request.id,
	    .tid = (pid_t)request.pid,
	    .arch = request.data.arch,
	    .number = request.data.nr,
	    .received_ns = clock_monotonic_ns(),
	};
	for (size_t i = 0; i < 6; i++)
		stop->args[i] = request.data.args[i];
	return RECEIVE_STOP;
}

static bool notify_answer(void *self, const struct stop *stop, enum stop_answer answer, int64_t value)
{
	const struct notify *notify = self;
	struct seccomp_notif_resp response = {.id = stop->cookie};

	switch (answer) {
	case ANSWER_CONTINUE:
		response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		break;
	case ANSWER_ERROR:
		response.error = (int32_t)-value;
		break;
	case ANSWER_VALUE:
		response.val = value;
		break;
	}
	while (ioctl(notify->listener, SECCOMP_IOCTL_NOTIF_SEND, &response) != 0)
		if (errno != EINTR)
			return false;
	return true;
}

static bool notify_still_waiting(void *self, const struct stop *stop)
{
	const struct notify *notify = self;
	uint64_t cookie = stop->cookie;

	return ioctl(notify->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &cookie) == 0;
}

static bool notify_pending(void *self)
{
	const struct notify *notify = self;
	struct pollfd listener = {.fd = notify->listener, .events = POLLIN};

	return poll(&listener, 1, 0) > 0 && (listener.revents & POLLIN);
}

static int notify_give(void *self, const struct stop *stop, int fd, bool close_on_exec)
{
	const struct notify *notify = self;
	struct seccomp_notif_addfd request = {
	    .id = stop->cookie,
	    .srcfd = (uint32_t)fd,
	    .newfd_flags = close_on_exec ? O_CLOEXEC : 0,
	};

	for (;;) {
		int number = ioctl(notify->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &request);
		if (number >= 0)
			return number;
		if (errno != EINTR)
			return -errno;
	}
}

void notify_backend(struct notify *notify, struct backend *backend)
{
	*backend = (struct backend){
	    .receive = notify_receive,
	    .answer = notify_answer,
	    .still_waiting = notify_still_waiting,
	    .pending = notify_pending,
	    .give = notify_give,
	    .self = notify,
	};
}

void notify_prepare(const struct notify *notify)
{
	/* The caller sleeps until it is answered: the kernel may hand it our CPU then, instead of waking another one. */
	(void)ioctl(notify->listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
}

bool notify_check_sizes(struct err *err)
{
	struct seccomp_notif_sizes sizes;

	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) != 0)
		return err_set(err, errno, "asking the kernel about seccomp notifications");
	/* A kernel with larger structures would write past ours. */
	if (sizes.seccomp_notif > sizeof(struct seccomp_notif) ||
	    sizes.seccomp_notif_resp > sizeof(struct seccomp_notif_resp) ||
	    sizes.seccomp_data != sizeof(struct seccomp_data))
		return err_set(err, 0, "seccomp notifications of this kernel have another layout (%u and %u bytes)",
			       sizes.seccomp_notif, sizes.seccomp_notif_resp);
	return true;
}
