/* Sockets of families that are not the usual ones. Many kernels have few of them; asking is the attempt. */
#include "ev2.h"

static void ask(const char *name, int family, int type, int protocol)
{
	int fd = socket(family, type | SOCK_CLOEXEC, protocol);

	tried(name, fd);
	if (fd >= 0)
		close(fd);
}

int main(void)
{
	enum { ISO_TP = 6, XDP = 44, MCTP = 45 };

	ask("alg", AF_ALG, SOCK_SEQPACKET, 0);
	ask("xdp", XDP, SOCK_RAW, 0);
	ask("tipc", AF_TIPC, SOCK_RDM, 0);
	ask("rds", AF_RDS, SOCK_SEQPACKET, 0);
	ask("can", AF_CAN, SOCK_DGRAM, ISO_TP);
	ask("bluetooth", AF_BLUETOOTH, SOCK_SEQPACKET, 0);
	ask("mctp", MCTP, SOCK_DGRAM, 0);
	return 0;
}
