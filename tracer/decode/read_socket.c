/*
 * Arguments of socket calls.
 */
#include <linux/if_alg.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "kernel_constants.h"
#include "reading.h"

enum { MESSAGES_LIMIT = 1024, CONTROL_LIMIT = 1 << 20, PAYLOAD_LIMIT = 512, PASSED_LIMIT = 253 /* SCM_MAX_FD */ };

void read_sockfd(struct reading *reading, size_t index)
{
	int fd = (int)reading_arg(reading, index);

	reading_add_int(reading, reading_name(reading, index), fd);
	bool serves = reading->effect->kind == EFFECT_net_listen || reading->effect->kind == EFFECT_net_accept;
	(void)socket_look(reading, fd, serves, &reading->socket);
	if (serves)
		reading->effect->local = reading->socket.local;
	if (reading->effect->kind == EFFECT_net_bind && reading->socket.shares_port &&
	    (reading->socket.family == AF_INET || reading->socket.family == AF_INET6)) {
		struct effect_value *value = reading_value(reading, "reuseport", VALUE_BOOL);
		value->truth = true;
	}
	reading->out->waits = WAITS_PEER;
	/* Setting up a socket waits for nobody. */
	if (reading->out->handling == HANDLING_verify || reading->out->handling == HANDLING_bind ||
	    reading->out->handling == HANDLING_accept)
		reading->out->waits = WAITS_NEVER;
}

void read_socktype(struct reading *reading, size_t index)
{
	uint64_t type = reading_arg(reading, index);
	const char *name = flags_enum_name(FLAGSET_socket_type, type & 0xf);

	if (name)
		reading_add_text(reading, reading_name(reading, index), name);
	else
		reading_add_uint(reading, reading_name(reading, index), type & 0xf);
	if (type & SOCK_NONBLOCK)
		reading_add_flag(reading, "SOCK_NONBLOCK");
	if (type & SOCK_CLOEXEC)
		reading_add_flag(reading, "SOCK_CLOEXEC");
}

/* Returns what was read, in the arena; absent when nothing was. */
static struct bytes read_address(struct reading *reading, uint64_t address, uint64_t size, struct effect_peer *peer)
{
	struct sockaddr_storage storage = {0};

	if (address == 0)
		return BYTES_NONE;
	/* Longer ones are refused, in a struct msghdr cut. */
	if (size > sizeof(storage)) {
		reading_add_uint(reading, "addrlen", size);
		size = sizeof(storage);
	}
	if (!reading_memory(reading, address, &storage, (size_t)size))
		return BYTES_NONE;
	(void)socket_address(reading, &storage, (size_t)size, peer);
	if (peer->present && reading->socket.known)
		peer->protocol =
		    socket_protocol(reading->socket.family, reading->socket.type, reading->socket.protocol);
	return arena_copy(reading_arena(reading), (struct bytes){(const char *)&storage, (size_t)size});
}

void read_sockaddr(struct reading *reading, size_t index)
{
	bool own = reading->effect->kind == EFFECT_net_bind;

	/* A unix socket comes into being at its name: after the call it can be looked at. */
	if (own)
		reading->socket_request = &reading->out->request;
	reading->out->address =
	    read_address(reading, reading_arg(reading, index), (uint32_t)reading_arg(reading, index + 1),
			 own ? &reading->effect->local : &reading->effect->peer);
}

void read_buffer(struct reading *reading, size_t index)
{
	uint64_t size = reading_arg(reading, index + 1);

	/* Datagrams may be questions to a name server; of others nothing is kept. */
	if (!reading->socket.known || reading->socket.type != SOCK_DGRAM || size == 0)
		return;
	reading->payload =
	    reading_bytes(reading, reading_arg(reading, index), size < PAYLOAD_LIMIT ? size : PAYLOAD_LIMIT);
}

/* Numbers of passed descriptors, and what they are. */
static void add_passed(struct reading *reading, const int *fds, size_t count)
{
	struct arena *arena = reading_arena(reading);
	int64_t *numbers = arena_alloc(arena, count * sizeof(*numbers) + 1);
	struct bytes *paths = arena_alloc(arena, count * sizeof(*paths) + 1);

	if (!numbers || !paths) {
		reading->out->unreadable++;
		return;
	}
	for (size_t i = 0; i < count; i++) {
		struct effect_object object;
		struct path_facts facts;
		path_of_descriptor(reading->decoder->cache, reading->target, fds[i], arena, &object, &facts);
		numbers[i] = fds[i];
		paths[i] = object.path.data ? object.path : BYTES("");
	}
	struct effect_value *value = reading_value(reading, "fds", VALUE_INT_LIST);
	value->numbers.items = numbers;
	value->numbers.count = count;
	value = reading_value(reading, "fd_paths", VALUE_LIST);
	value->list.items = paths;
	value->list.count = count;
}

static void read_control(struct reading *reading, uint64_t address, uint64_t size)
{
	if (address == 0 || size < sizeof(struct cmsghdr))
		return;
	/* The kernel's own limit (net.core.optmem_max) is far below; beyond ours something may go unseen. */
	if (size > CONTROL_LIMIT) {
		size = CONTROL_LIMIT;
		reading->out->unreadable++;
	}
	struct arena *arena = reading_arena(reading);
	size_t before = arena->used;
	int fds[PASSED_LIMIT];
	size_t passed = 0;
	struct bytes control = reading_bytes(reading, address, (size_t)size);
	if (!control.data)
		return;
	struct msghdr message = {.msg_control = (void *)(uintptr_t)control.data, .msg_controllen = control.size};
	for (struct cmsghdr *entry = CMSG_FIRSTHDR(&message); entry; entry = CMSG_NXTHDR(&message, entry)) {
		size_t room = control.size - (size_t)((const char *)entry - control.data);
		/* The length is the agent's word. */
		if (entry->cmsg_len < CMSG_LEN(0) || entry->cmsg_len > room)
			break;
		if (entry->cmsg_level != SOL_SOCKET || entry->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (entry->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		if (count > PASSED_LIMIT - passed)
			count = PASSED_LIMIT - passed;
		memcpy(fds + passed, CMSG_DATA(entry), count * sizeof(int));
		passed += count;
		reading->effect->kind = EFFECT_ipc_pass_fd;
	}
	/* Control data that nobody reads must not use up what later messages need. */
	arena->used = before;
	if (reading->effect->kind == EFFECT_ipc_pass_fd)
		add_passed(reading, fds, passed);
}

/* The start of a datagram, gathered from its pieces. */
static void read_payload(struct reading *reading, const struct msghdr *message)
{
	enum { PIECES_LIMIT = 8 };
	struct iovec pieces[PIECES_LIMIT];
	size_t count = message->msg_iovlen < PIECES_LIMIT ? message->msg_iovlen : PIECES_LIMIT;
	char *data = arena_alloc(reading_arena(reading), PAYLOAD_LIMIT);
	size_t used = 0;

	reading->payload = BYTES_NONE;
	if (!data || !reading->socket.known || reading->socket.type != SOCK_DGRAM || count == 0)
		return;
	if (!reading_memory(reading, (uint64_t)(uintptr_t)message->msg_iov, pieces, count * sizeof(pieces[0])))
		return;
	for (size_t i = 0; i < count && used < PAYLOAD_LIMIT; i++) {
		size_t size = pieces[i].iov_len < PAYLOAD_LIMIT - used ? pieces[i].iov_len : PAYLOAD_LIMIT - used;
		if (size > 0 && !reading_memory(reading, (uint64_t)(uintptr_t)pieces[i].iov_base, data + used, size))
			return;
		used += size;
	}
	reading->payload = (struct bytes){data, used};
}

static bool is_name_server(const struct effect_peer *peer)
{
	return peer->present && peer->port == 53;
}

/* One message into the current effect; false when it has none: it goes to a peer that was recorded at the connect. */
static bool read_message(struct reading *reading, const struct msghdr *message)
{
	struct effect *effect = reading->effect;

	(void)read_address(reading, (uint64_t)(uintptr_t)message->msg_name, message->msg_namelen, &effect->peer);
	read_control(reading, (uint64_t)(uintptr_t)message->msg_control, message->msg_controllen);
	bool passes = effect->kind == EFFECT_ipc_pass_fd;
	bool named = effect->peer.present;
	if (!named && reading->socket.connected && (passes || is_name_server(&reading->socket.peer)))
		effect->peer = reading->socket.peer;
	if (is_name_server(&effect->peer)) {
		read_payload(reading, message);
		if (reading->payload.data && reading_dns(reading, reading->payload))
			return true;
	}
	if (named && !passes)
		special_sockaddr(reading);
	else if (named)
		effect->object = effect->peer.object;
	if (reading->socket.known && reading->socket.family == AF_NETLINK)
		effect->kind = EFFECT_net_raw;
	return named || passes || effect->kind == EFFECT_net_raw;
}

void read_msghdr(struct reading *reading, size_t index)
{
	struct msghdr message;

	if (!reading_memory(reading, reading_arg(reading, index), &message, sizeof(message)))
		return;
	if (!read_message(reading, &message))
		reading->out->count = 0;
}

/*
 * The first message, also of recvmmsg(2): a struct mmsghdr begins with a struct msghdr, and what comes after it cannot be
 * looked at without taking it.
 */
void read_msghdr_in(struct reading *reading, size_t index)
{
	enum { PIECES_LIMIT = 1024 /* UIO_MAXIOV */ };
	struct msghdr message = {0};
	struct iovec pieces[16];
	size_t size = 0;

	if (!reading->socket.known || reading->socket.family != AF_UNIX) {
		reading->out->count = 0;
		return;
	}
	if (reading->socket.connected)
		reading->effect->peer = reading->socket.peer;
	if (!reading_memory(reading, reading_arg(reading, index), &message, sizeof(message)))
		return;
	if (message.msg_control == NULL || message.msg_controllen < CMSG_LEN(sizeof(int))) {
		reading->out->count = 0;
		return;
	}
	size_t count = message.msg_iovlen < PIECES_LIMIT ? message.msg_iovlen : PIECES_LIMIT;
	for (size_t at = 0; at < count;) {
		size_t some = count - at < 16 ? count - at : 16;
		if (!reading_memory(reading, (uint64_t)(uintptr_t)message.msg_iov + at * sizeof(pieces[0]), pieces,
				    some * sizeof(pieces[0])))
			return;
		for (size_t i = 0; i < some; i++)
			size = pieces[i].iov_len > SIZE_MAX - size ? SIZE_MAX : size + pieces[i].iov_len;
		at += some;
	}
	reading->out->receive_size = size;
	reading->out->receive_room = message.msg_controllen;
}

void read_mmsghdr(struct reading *reading, size_t index)
{
	uint64_t count = (uint32_t)reading_arg(reading, index + 1);

	if (count > MESSAGES_LIMIT)
		count = MESSAGES_LIMIT;
	if (count == 0) {
		reading->out->count = 0;
		return;
	}
	size_t room = reading_effects(reading, (size_t)count);
	size_t kept = 0;
	for (size_t i = 0; i < room; i++) {
		struct mmsghdr message;
		struct effect untouched = reading->out->effects[kept];
		reading->effect = &reading->out->effects[kept];
		if (!reading_memory(reading, reading_arg(reading, index) + i * sizeof(message), &message,
				    sizeof(message)))
			break;
		reading_add_uint(reading, "message", i);
		if (read_message(reading, &message.msg_hdr))
			kept++;
		else
			reading->out->effects[kept] = untouched;
	}
	reading->out->count = kept;
	reading->effect = reading->out->effects;
}
