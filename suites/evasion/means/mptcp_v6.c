/* A multipath TCP socket, and TCP to the IPv4 address that is written as an IPv6 one: both are 127.0.0.1. */
#include "ev.h"

int main(void)
{
	struct sockaddr_in6 mapped = {.sin6_family = AF_INET6};
	int port;
	int listener = serve(SOCK_STREAM, &port);
	struct sockaddr_in address = loopback(port);

	int multipath = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 262 /* IPPROTO_MPTCP */);
	if (multipath < 0)
		skip("MPTCP");
	MUST(connect(multipath, (struct sockaddr *)&address, sizeof(address)) == 0);
	int six = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (six < 0)
		skip("IPv6");
	mapped.sin6_port = htons((uint16_t)port);
	MUST(inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr) == 1);
	MUST(connect(six, (struct sockaddr *)&mapped, sizeof(mapped)) == 0);
	MUST(arrived(listener, SOCK_STREAM, 200) == 2);
	did("connect tcp port~%d times=2", port);
	return 0;
}
