#include <stdint.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "handlers.h"
#include "os/descriptor.h"

bool act_stands_in(const struct actor *actor, const struct act *act)
{
	return actor->results == RESULTS_perform && act->target->plain && act->decoded->address.data;
}

int act_take_socket(const struct actor *actor, const struct act *act)
{
	int socket CLEANUP_FD = descriptor_copy(act->target->tid, act->target->pid, (int)act->stop->args[0]);

	if (socket < 0 || !actor->backend->still_waiting(actor->backend->self, act->stop))
		return -1;
	return fd_steal(&socket);
}

int act_socket_option(int socket, int name)
{
	int value = -1;
	socklen_t size = sizeof(value);

	return getsockopt(socket, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

const struct sockaddr *act_address(const struct act *act, socklen_t *size)
{
	*size = (socklen_t)act->stop->args[2];
	return (const struct sockaddr *)(const void *)act->decoded->address.data;
}
