/* One call, three destinations, and a socket that is never connected. */
#include "ev.h"

int main(void)
{
	struct mmsghdr messages[3] = {0};
	struct sockaddr_in addresses[3];
	struct iovec text = {.iov_base = (char[]){"text"}, .iov_len = 4};
	int fds[3], ports[3];
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	for (int i = 0; i < 3; i++) {
		fds[i] = serve(SOCK_DGRAM, &ports[i]);
		addresses[i] = loopback(ports[i]);
		messages[i].msg_hdr = (struct msghdr){
		    .msg_name = &addresses[i], .msg_namelen = sizeof(addresses[i]), .msg_iov = &text, .msg_iovlen = 1};
	}
	MUST(fd >= 0 && sendmmsg(fd, messages, 3, 0) == 3);
	for (int i = 0; i < 3; i++)
		MUST(arrived(fds[i], SOCK_DGRAM, 200) == 1);
	did("send udp first~%d second~%d third~%d", ports[0], ports[1], ports[2]);
	return 0;
}
