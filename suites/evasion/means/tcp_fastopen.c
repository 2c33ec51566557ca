/* A TCP connection without connect(2). */
#include "ev.h"

int main(void)
{
	int port;
	int listener = serve(SOCK_STREAM, &port);
	struct sockaddr_in address = loopback(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	MUST(fd >= 0);
	if (sendto(fd, "text", 4, MSG_FASTOPEN, (struct sockaddr *)&address, sizeof(address)) != 4)
		skip("MSG_FASTOPEN");
	MUST(arrived(listener, SOCK_STREAM, 1000) == 1);
	did("connect tcp port~%d", port);
	return 0;
}
