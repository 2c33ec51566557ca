/*
 * Options that change whom a socket speaks to or for. By repair a connection stands without a packet; of two sockets
 * that share a port, the second takes what was meant for the first. In a network of our own.
 */
#include "ev2.h"

#include <netinet/tcp.h>

enum { FOREIGN_PORT = 4242 };

static int shared(int port)
{
	struct sockaddr_in address = loopback(port);
	int on = 1, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	MUST(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) == 0);
	MUST(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	return fd;
}

static int one(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	MUST(fd >= 0);
	return fd;
}

int main(void)
{
	struct sockaddr_in foreign = loopback(FOREIGN_PORT), peer = {0};
	socklen_t size = sizeof(peer);
	int on = 1;

	foreign.sin_addr.s_addr = htonl(0x7f090909);
	space(CLONE_NEWNET);
	raise_loopback();
	MUST(setsockopt(one(), SOL_SOCKET, SO_BINDTODEVICE, "lo", 3) == 0);
	did("option SO_BINDTODEVICE");
	MUST(setsockopt(one(), SOL_IP, IP_TRANSPARENT, &on, sizeof(on)) == 0);
	did("option IP_TRANSPARENT");
	int repaired = one();
	MUST(setsockopt(repaired, SOL_TCP, TCP_REPAIR, &on, sizeof(on)) == 0);
	MUST(connect(repaired, (struct sockaddr *)&foreign, sizeof(foreign)) == 0);
	MUST(getpeername(repaired, (struct sockaddr *)&peer, &size) == 0 && peer.sin_port == htons(FOREIGN_PORT));
	did("connect 127.9.9.9 by TCP_REPAIR");
	shared(FOREIGN_PORT);
	shared(FOREIGN_PORT);
	did("bind shared=2 port=%d", FOREIGN_PORT);
	return 0;
}
