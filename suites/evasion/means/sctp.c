/* A connection by SCTP. */
#include "ev.h"

int main(void)
{
	struct sockaddr_in address = loopback(0);
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_SCTP);

	if (listener < 0)
		skip("SCTP");
	MUST(bind(listener, (struct sockaddr *)&address, size) == 0 && listen(listener, 8) == 0);
	MUST(getsockname(listener, (struct sockaddr *)&address, &size) == 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_SCTP);
	MUST(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	did("connect sctp port~%d", ntohs(address.sin_port));
	return 0;
}
