/*
 * connect(2) on the agent's own socket, with our copy of the address: where it leads is what was recorded, whatever other
 * threads write to the agent's memory. The kernel's rules about repeated connects do the rest; nothing here waits.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/fd.h"
#include "handlers.h"
#include "os/descriptor.h"

enum socket_kind { KIND_OTHER, KIND_TCP, KIND_UDP };

/* SO_PEERCRED of Unix sockets has to be the agent's; of the rest, what they do in connect(2) is not known well enough. */
static enum socket_kind kind_of(int socket)
{
	int family = act_socket_option(socket, SO_DOMAIN);
	int type = act_socket_option(socket, SO_TYPE);
	int protocol = act_socket_option(socket, SO_PROTOCOL);

	if (family != AF_INET && family != AF_INET6)
		return KIND_OTHER;
	if (type == SOCK_STREAM && protocol == IPPROTO_TCP)
		return KIND_TCP;
	return type == SOCK_DGRAM && protocol == IPPROTO_UDP ? KIND_UDP : KIND_OTHER;
}

static int start(const struct act *act, int socket)
{
	socklen_t size;
	const struct sockaddr *address = act_address(act, &size);

	return connect(socket, address, size) == 0 ? 0 : errno;
}

/* A second call would say EALREADY when the time is over, where the first says EINPROGRESS. */
static bool has_time_limit(int socket)
{
	struct timeval limit;
	socklen_t size = sizeof(limit);

	return getsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, &size) != 0 || limit.tv_sec != 0 ||
	       limit.tv_usec != 0;
}

/* Asked without taking the error for which there is no connection: that is the agent's to ask for (SO_ERROR). */
static bool is_established(int socket)
{
	struct tcp_info info = {0};
	socklen_t size = sizeof(info);

	/* The peer may have ended it already. */
	return getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
	       (info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_CLOSE_WAIT);
}

/* On a socket that does not block: the call is over, the connection need not be. */
static void answer_started(struct act *act, int socket)
{
	bool established = is_established(socket);

	act_performed(act, EINPROGRESS);
	for (size_t i = 0; i < act->decoded->count; i++) {
		struct effect_result *result = &act->decoded->effects[i].result;
		result->state = established ? RESULT_OK : RESULT_UNKNOWN;
		result->error = 0;
	}
	struct effect_value *value = act_add_value(act, "returned", VALUE_TEXT);
	if (value)
		value->text = "EINPROGRESS";
}

/*
 * On a socket that blocks: what the agent's call would return, or EALREADY when it would have to wait. `started`: the
 * connection on its way is of our making.
 */
static int connect_at_once(const struct act *act, int socket, bool *started)
{
	int error = start(act, socket);

	*started = error == EINPROGRESS;
	if (!*started)
		return error;
	/* As the agent's call would: says that the connection stands, or takes the error for which it does not. */
	error = start(act, socket);
	if (error == EINPROGRESS)
		return EALREADY;
	/* Another thread of the agent was told first. */
	return error == EISCONN ? 0 : error;
}

/* The agent's own call waits for the connection that is under way, and does not look at its address any more. */
static void let_wait(const struct actor *actor, struct act *act, bool started)
{
	act_let_go(actor, act);
	if (started)
		act_set_how(act, HOW_performed);
}

static void connect_tcp(const struct actor *actor, struct act *act, int socket)
{
	struct unblocked unblocked;
	bool started = false, limited;
	int error = EALREADY;

	if (!unblock_begin(socket, &unblocked)) {
		act_let_go(actor, act);
		return;
	}
	limited = unblocked.ours && has_time_limit(socket);
	if (!unblocked.ours)
		error = start(act, socket);
	else if (!limited)
		error = connect_at_once(act, socket, &started);
	unblock_end(socket, &unblocked);

	if (unblocked.ours && (limited || error == EALREADY))
		let_wait(actor, act, started);
	else if (error == EINPROGRESS)
		answer_started(act, socket);
	else
		act_performed(act, error);
}

void act_connect(const struct actor *actor, struct act *act)
{
	int socket CLEANUP_FD = act_stands_in(actor, act) ? act_take_socket(actor, act) : -1;
	enum socket_kind kind = socket < 0 ? KIND_OTHER : kind_of(socket);

	switch (kind) {
	case KIND_TCP:
		connect_tcp(actor, act, socket);
		break;
	case KIND_UDP:
		act_performed(act, start(act, socket));
		break;
	case KIND_OTHER:
		act_let_go(actor, act);
		return;
	}
	if (act->pending == PENDING_VALUE)
		act_check_delivery(actor, act);
	/* What was looked at before need not have been the same descriptor. */
	for (size_t i = 0; i < act->decoded->count; i++)
		act->decoded->effects[i].peer.protocol = kind == KIND_TCP ? BYTES("tcp") : BYTES("udp");
}
