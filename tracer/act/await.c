/*
 * Waiting, for a short while, until a socket has something for the call that stands before it.
 */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/clock.h"
#include "handlers.h"
#include "os/procfs.h"

enum {
	/* A task that stands in a notification keeps the machine from being suspended, so not for long. */
	PATIENCE_MS = 1000,
	LOOK_MS = 10,      /* at signals, which it must not be kept from */
	WAITING_MOST = 32, /* of the workers */
};

static bool has_time_limit(int socket)
{
	struct timeval limit;
	socklen_t size = sizeof(limit);

	return getsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, &size) != 0 || limit.tv_sec != 0 ||
	       limit.tv_usec != 0;
}

static enum arrival await(const struct actor *actor, const struct act *act, struct pollfd *socket)
{
	uint64_t end = clock_monotonic_ns() + PATIENCE_MS * 1000000ull;

	while (clock_monotonic_ns() < end) {
		/* An error that is pending is told once, and the caller must be the one: nothing may be asked of it. */
		if (poll(socket, 1, LOOK_MS) > 0)
			return socket->revents & POLLERR ? UNSEEN : ARRIVED;
		if (!actor->backend->still_waiting(actor->backend->self, act->stop) ||
		    procfs_signal_pending(act->target->task))
			break;
	}
	return UNSEEN;
}

enum arrival act_await(const struct actor *actor, const struct act *act, int socket, bool blocks)
{
	static atomic_int waiting;
	struct pollfd look = {.fd = socket, .events = POLLIN};
	enum arrival arrival = UNSEEN;

	if (poll(&look, 1, 0) > 0)
		return look.revents & POLLERR ? UNSEEN : ARRIVED;
	if (!blocks)
		return EMPTY;
	/* Its time runs in the kernel's call. */
	if (has_time_limit(socket))
		return UNSEEN;
	if (atomic_fetch_add(&waiting, 1) < WAITING_MOST)
		arrival = await(actor, act, &look);
	atomic_fetch_sub(&waiting, 1);
	return arrival;
}
