/*
 * bind(2). Numbers and abstract names are taken on the agent's own socket, with our copy of the address. A name in the
 * file system comes into being as the agent's working directory, umask and rights will have it: there the kernel acts, and
 * the socket tells afterwards which name it got.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/fd.h"
#include "handlers.h"

enum { NAME_AT = offsetof(struct sockaddr_un, sun_path) };

static bool is_file_name(const void *address, size_t size)
{
	return size > NAME_AT && ((const char *)address)[NAME_AT] != 0;
}

static bool may_perform(const struct actor *actor, const struct act *act, int socket)
{
	struct bytes address = act->decoded->address;

	if (socket < 0 || !act_stands_in(actor, act))
		return false;
	switch (act_socket_option(socket, SO_DOMAIN)) {
	case AF_INET:
	case AF_INET6:
		return true;
	case AF_UNIX:
		return !is_file_name(address.data, address.size);
	default:
		return false;
	}
}

/* What the socket says that it is bound to; false when it is to nothing. */
static bool own_address(int socket, struct sockaddr_storage *address, size_t *size)
{
	socklen_t length = sizeof(*address);

	memset(address, 0, sizeof(*address));
	if (getsockname(socket, (struct sockaddr *)address, &length) != 0 || length > sizeof(*address))
		return false;
	*size = length;
	return true;
}

static void record_port(struct act *act, int socket)
{
	struct sockaddr_storage address;
	struct sockaddr_in in;
	size_t size;

	/* What raw sockets have there is no port. */
	if (act->decoded->effects->local.port != 0 || act_socket_option(socket, SO_TYPE) == SOCK_RAW ||
	    !own_address(socket, &address, &size) || size < sizeof(in))
		return;
	/* In both families the port stands at the same place. */
	memcpy(&in, &address, sizeof(in));
	struct effect_value *value = act_add_value(act, "bound_port", VALUE_INT);
	if (value)
		value->number = ntohs(in.sin_port);
}

/* A name in the file system: where it leads for the task, which still stands where it stood in the call. */
static void record_file(struct act *act, struct bytes name)
{
	struct effect *effect = act->decoded->effects;
	struct path_request request = {.base = PATH_BASE_CWD, .path = name};
	struct path_facts facts;

	path_resolve(act->decoder->cache, act->target, &request, &act->decoder->arena, &effect->object, &facts);
	effect->kind = EFFECT_node_create;
	effect->local.object = effect->object;
	effect->local.path = effect->object.path.data ? effect->object.path : name;
}

static void record_abstract(struct act *act, struct bytes name)
{
	struct effect *effect = act->decoded->effects;

	effect->kind = EFFECT_net_bind;
	effect->object = effect->local.object = (struct effect_object){0};
	((char *)(uintptr_t)name.data)[0] = '@';
	effect->local.path = name;
}

/* The name that a Unix socket has now, when it is not the one that was read before: given by the kernel, or changed. */
static void record_name(struct act *act, int socket)
{
	struct bytes asked = act->decoded->address;
	struct sockaddr_storage address;
	size_t size;

	if (act_socket_option(socket, SO_DOMAIN) != AF_UNIX || !own_address(socket, &address, &size) || size <= NAME_AT)
		return;
	const char *name = (const char *)&address + NAME_AT;
	struct bytes bound = {name, size - NAME_AT};
	struct bytes before = {asked.data ? asked.data + NAME_AT : NULL,
			       asked.size > NAME_AT ? asked.size - NAME_AT : 0};
	bool file = is_file_name(&address, size);
	/* Names of files end at their first NUL, or with the address. */
	if (file) {
		bound.size = strnlen(bound.data, bound.size);
		before.size = before.size > 0 ? strnlen(before.data, before.size) : 0;
	}
	if (bytes_equal(bound, before))
		return;
	bound = arena_copy(&act->decoder->arena, bound);
	if (!bound.data)
		return;
	act->decoded->effects->local.present = true;
	act->decoded->effects->local.family = BYTES("unix");
	if (file)
		record_file(act, bound);
	else
		record_abstract(act, bound);
}

void act_bind(const struct actor *actor, struct act *act)
{
	int socket CLEANUP_FD = act_take_socket(actor, act);
	const struct effect_result *result = &act->decoded->effects->result;

	if (!may_perform(actor, act, socket)) {
		act_verify(actor, act);
		if (socket >= 0 && result->state == RESULT_OK)
			record_name(act, socket);
		return;
	}
	socklen_t size;
	const struct sockaddr *address = act_address(act, &size);
	act_performed(act, bind(socket, address, size) == 0 ? 0 : errno);
	if (result->state != RESULT_OK)
		return;
	act_check_delivery(actor, act);
	if (act_socket_option(socket, SO_DOMAIN) == AF_UNIX)
		record_name(act, socket);
	else
		record_port(act, socket);
}
