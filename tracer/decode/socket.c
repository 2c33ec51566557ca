/*
 * Sockets of the task, and addresses.
 */
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/descriptor.h"
#include "reading.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

static const struct {
	int type, protocol;
	const char *name;
} protocols[] = {
    {SOCK_STREAM, IPPROTO_TCP, "tcp"},      {SOCK_DGRAM, IPPROTO_UDP, "udp"},
    {SOCK_STREAM, IPPROTO_MPTCP, "mptcp"},  {SOCK_STREAM, IPPROTO_SCTP, "sctp"},
    {SOCK_SEQPACKET, IPPROTO_SCTP, "sctp"}, {SOCK_DGRAM, IPPROTO_UDPLITE, "udplite"},
    {SOCK_DGRAM, IPPROTO_ICMP, "icmp"},     {SOCK_DGRAM, IPPROTO_ICMPV6, "icmp6"},
    {SOCK_RAW, IPPROTO_ICMP, "icmp"},       {SOCK_RAW, IPPROTO_ICMPV6, "icmp6"},
    {SOCK_DCCP, IPPROTO_DCCP, "dccp"},
};

struct bytes socket_protocol(int family, int type, int protocol)
{
	if (family == AF_UNIX)
		return type == SOCK_STREAM ? BYTES("stream") : type == SOCK_DGRAM ? BYTES("dgram") : BYTES("seqpacket");
	if (family != AF_INET && family != AF_INET6)
		return BYTES_NONE;
	for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++)
		if (protocols[i].type == type && protocols[i].protocol == protocol)
			return bytes_of(protocols[i].name);
	return type == SOCK_RAW ? BYTES("raw") : BYTES_NONE;
}

static int option(int fd, int name)
{
	int value = -1;
	socklen_t size = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

static void look_at_address(struct reading *reading, const struct socket_about *about, int status,
			    const struct sockaddr_storage *address, socklen_t size, struct effect_peer *out)
{
	if (status != 0 || size > sizeof(*address))
		return;
	(void)socket_address(reading, address, size, out);
	out->protocol = socket_protocol(about->family, about->type, about->protocol);
}

bool socket_look(struct reading *reading, int fd, bool own_address, struct socket_about *about)
{
	int copy CLEANUP_FD = descriptor_copy(reading->target->tid, reading->target->pid, fd);

	*about = (struct socket_about){0};
	if (copy < 0)
		return false;
	about->family = option(copy, SO_DOMAIN);
	if (about->family < 0)
		return false;
	about->known = true;
	/* Only Unix sockets bring descriptors, and programs that receive a lot do it on others. */
	if (reading->row->handling == HANDLING_receive && about->family != AF_UNIX)
		return true;
	about->type = option(copy, SO_TYPE);
	about->protocol = option(copy, SO_PROTOCOL);
	about->shares_port = option(copy, SO_REUSEPORT) == 1;
	struct sockaddr_storage address;
	memset(&address, 0, sizeof(address));
	socklen_t size = sizeof(address);
	int status = getpeername(copy, (struct sockaddr *)&address, &size);
	about->connected = status == 0;
	look_at_address(reading, about, status, &address, size, &about->peer);
	if (own_address) {
		size = sizeof(address);
		status = getsockname(copy, (struct sockaddr *)&address, &size);
		look_at_address(reading, about, status, &address, size, &about->local);
	}
	return true;
}

static bool internet_address(struct reading *reading, int family, const void *data, size_t size,
			     struct effect_peer *peer)
{
	char text[INET6_ADDRSTRLEN];
	struct arena *arena = reading_arena(reading);

	if (family == AF_INET) {
		struct sockaddr_in in;
		if (size < sizeof(in))
			return false;
		memcpy(&in, data, sizeof(in));
		peer->family = BYTES("inet");
		peer->address = arena_copy(arena, bytes_of(inet_ntop(AF_INET, &in.sin_addr, text, sizeof(text))));
		peer->port = ntohs(in.sin_port);
		return true;
	}
	/* Old programs pass the structure without its last field (SIN6_LEN_RFC2133). */
	struct sockaddr_in6 in6 = {0};
	if (size < offsetof(struct sockaddr_in6, sin6_scope_id))
		return false;
	memcpy(&in6, data, size < sizeof(in6) ? size : sizeof(in6));
	peer->family = BYTES("inet6");
	peer->address = arena_copy(arena, bytes_of(inet_ntop(AF_INET6, &in6.sin6_addr, text, sizeof(text))));
	if (in6.sin6_scope_id != 0)
		peer->address = arena_format(arena, "%s%%%u", text, in6.sin6_scope_id);
	peer->port = ntohs(in6.sin6_port);
	return true;
}

static bool unix_address(struct reading *reading, const void *data, size_t size, struct effect_peer *peer)
{
	const char *path = (const char *)data + offsetof(struct sockaddr_un, sun_path);
	size_t length = size - offsetof(struct sockaddr_un, sun_path);
	struct arena *arena = reading_arena(reading);

	peer->family = BYTES("unix");
	if (size <= offsetof(struct sockaddr_un, sun_path))
		return true; /* unnamed, or bind to a name that the kernel picks */
	if (path[0] == 0) {
		struct bytes name = arena_copy(arena, (struct bytes){path, length});
		if (name.data)
			((char *)(uintptr_t)name.data)[0] = '@';
		peer->path = name;
		return true;
	}
	peer->path = arena_copy(arena, (struct bytes){path, strnlen(path, length)});
	/* bind(2) makes a name, where a link is in the way; connect(2) follows. */
	bool follow = reading->socket_request == NULL;
	struct path_request request = {.base = PATH_BASE_CWD, .path = peer->path, .follow = follow};
	struct path_facts facts;
	if (peer->path.data) {
		if (reading->socket_request)
			*reading->socket_request = request;
		path_resolve(reading->decoder->cache, reading->target, &request, arena, &peer->object, &facts);
		if (peer->object.path.data)
			peer->path = peer->object.path;
	}
	return true;
}

static bool other_address(struct reading *reading, int family, const void *data, size_t size, struct effect_peer *peer)
{
	struct arena *arena = reading_arena(reading);

	if (family == AF_VSOCK && size >= sizeof(struct sockaddr_vm)) {
		struct sockaddr_vm vm;
		memcpy(&vm, data, sizeof(vm));
		peer->family = BYTES("vsock");
		peer->address = arena_format(arena, "%u", vm.svm_cid);
		peer->port = vm.svm_port > INT32_MAX ? -1 : (int)vm.svm_port;
		return true;
	}
	if (family == AF_NETLINK && size >= sizeof(struct sockaddr_nl)) {
		struct sockaddr_nl netlink;
		memcpy(&netlink, data, sizeof(netlink));
		peer->family = BYTES("netlink");
		peer->address = arena_format(arena, "%u", netlink.nl_pid);
		return true;
	}
	/* Which link a frame goes out on; other addresses of this family differ by what the link is. */
	if (family == AF_PACKET && size >= offsetof(struct sockaddr_ll, sll_hatype)) {
		struct sockaddr_ll link = {0};
		memcpy(&link, data, offsetof(struct sockaddr_ll, sll_hatype));
		reading_add_int(reading, "sll_ifindex", link.sll_ifindex);
		reading_add_hex(reading, "sll_protocol", ntohs(link.sll_protocol));
	}
	const char *name = flags_enum_name(FLAGSET_family, (uint64_t)family);
	peer->family = name ? bytes_of(name) : arena_format(arena, "%d", family);
	return true;
}

bool socket_address(struct reading *reading, const void *data, size_t size, struct effect_peer *peer)
{
	sa_family_t family;

	*peer = (struct effect_peer){.port = -1};
	if (size < sizeof(family))
		return false;
	memcpy(&family, data, sizeof(family));
	peer->present = true;
	if (family == AF_UNSPEC) {
		peer->family = BYTES("unspec");
		/* But for connect(2), IPv4 sockets take it for an address of their own family. */
		bool internet = reading->socket.known && reading->socket.family == AF_INET;
		if (!internet || reading->effect->kind == EFFECT_net_connect)
			return true;
		family = AF_INET;
	}
	if (family == AF_INET || family == AF_INET6)
		return internet_address(reading, family, data, size, peer);
	if (family == AF_UNIX)
		return unix_address(reading, data, size, peer);
	return other_address(reading, family, data, size, peer);
}

void decode_peer(struct decoder *decoder, const struct target *target, struct decoded *decoded, int socket)
{
	struct reading reading = {
	    .decoder = decoder, .target = target, .row = decoded->row, .out = decoded, .effect = decoded->effects};
	const struct socket_about about = {.family = option(socket, SO_DOMAIN),
					   .type = option(socket, SO_TYPE),
					   .protocol = option(socket, SO_PROTOCOL)};
	struct sockaddr_storage address;
	memset(&address, 0, sizeof(address));
	socklen_t size = sizeof(address);
	int status = getpeername(socket, (struct sockaddr *)&address, &size);

	look_at_address(&reading, &about, status, &address, size, &decoded->effects->peer);
}
