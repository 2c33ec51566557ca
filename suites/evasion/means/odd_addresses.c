/* Addresses that mean another one, or many: 0.0.0.0 and :: are this machine; a group, a broadcast, an interface. */
#include "ev2.h"

#include <linux/ipv6.h>

static int connected(const struct sockaddr *address, socklen_t size)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	MUST(fd >= 0 && connect(fd, address, size) == 0);
	return fd;
}

static void datagram(const struct sockaddr *address, socklen_t size)
{
	int on = 1, fd = socket(address->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	MUST(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on)) == 0);
	MUST(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3) == 0);
	MUST(sendto(fd, "text", 4, 0, address, size) == 4);
	close(fd);
}

/* The loopback interface has no such address by itself. */
static struct in6_addr link_local(void)
{
	struct in6_ifreq request = {.ifr6_prefixlen = 64, .ifr6_ifindex = (int)if_nametoindex("lo")};
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	MUST(inet_pton(AF_INET6, "fe80::1", &request.ifr6_addr) == 1);
	MUST(fd >= 0 && ioctl(fd, SIOCSIFADDR, &request) == 0);
	close(fd);
	return request.ifr6_addr;
}

static void whole_family_6(int port)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	int listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (listener < 0 || bind(listener, (struct sockaddr *)&six, sizeof(six)) != 0)
		skip("IPv6");
	MUST(listen(listener, 4) == 0);
	connected((struct sockaddr *)&six, sizeof(six));
	did("connect any6");
	six.sin6_addr = link_local();
	six.sin6_scope_id = if_nametoindex("lo");
	datagram((struct sockaddr *)&six, sizeof(six));
	did("send fe80::1 scope=%u", six.sin6_scope_id);
}

int main(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET}, peer = {0};
	socklen_t size = sizeof(peer);
	int port;

	space(CLONE_NEWNET);
	raise_loopback();
	serve(SOCK_STREAM, &port);
	any.sin_port = htons((uint16_t)port);
	int fd = connected((struct sockaddr *)&any, sizeof(any));
	MUST(getpeername(fd, (struct sockaddr *)&peer, &size) == 0 && peer.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
	did("connect 0.0.0.0 port~%d", port);
	any.sin_addr.s_addr = htonl(0xef010203);
	datagram((struct sockaddr *)&any, sizeof(any));
	did("send 239.1.2.3");
	any.sin_addr.s_addr = htonl(0x7fffffff);
	datagram((struct sockaddr *)&any, sizeof(any));
	did("send 127.255.255.255");
	whole_family_6(port == 5000 ? 5001 : 5000);
	return 0;
}
