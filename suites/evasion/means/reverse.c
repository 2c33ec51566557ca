/* A connection is not made but awaited: somebody outside connects in. */
#include "ev2.h"

int main(void)
{
	struct sockaddr_in peer = {0};
	socklen_t size = sizeof(peer);
	char order[64], answer[64] = "";
	int port = 0, listener = serve(SOCK_STREAM, &port), daemon = outside();

	snprintf(order, sizeof(order), "connect %d", port);
	ask_with(daemon, order, -1, answer, sizeof(answer));
	MUST(strcmp(answer, "done") == 0);
	int fd = accept4(listener, (struct sockaddr *)&peer, &size, SOCK_CLOEXEC);
	MUST(fd >= 0);
	did("accept port~%d peer_port~%d", port, ntohs(peer.sin_port));
	return 0;
}
