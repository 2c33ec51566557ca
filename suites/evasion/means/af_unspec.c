/* A socket is connected, dissolved and connected to somebody else: UDP to two, and TCP twice to the same. */
#include "ev.h"

static void reconnect(int type, int first, int second)
{
	struct sockaddr_in one = loopback(first), other = loopback(second), peer = {0};
	struct sockaddr none = {.sa_family = AF_UNSPEC};
	socklen_t size = sizeof(peer);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	MUST(fd >= 0 && connect(fd, (struct sockaddr *)&one, sizeof(one)) == 0);
	MUST(connect(fd, &none, sizeof(none)) == 0);
	MUST(connect(fd, (struct sockaddr *)&other, sizeof(other)) == 0);
	MUST(getpeername(fd, (struct sockaddr *)&peer, &size) == 0 && ntohs(peer.sin_port) == second);
	close(fd);
}

int main(void)
{
	int ports[3];
	int listener = serve(SOCK_STREAM, &ports[2]);

	serve(SOCK_DGRAM, &ports[0]);
	serve(SOCK_DGRAM, &ports[1]);
	reconnect(SOCK_DGRAM, ports[0], ports[1]);
	reconnect(SOCK_STREAM, ports[2], ports[2]);
	MUST(arrived(listener, SOCK_STREAM, 200) == 2);
	did("connect udp first~%d second~%d", ports[0], ports[1]);
	did("connect tcp third~%d times=2", ports[2]);
	return 0;
}
