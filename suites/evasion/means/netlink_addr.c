/* An address is given to an interface by a netlink message, in a network namespace of the program's own. */
#include "ev.h"

#include <linux/rtnetlink.h>
#include <sched.h>

int main(void)
{
	struct {
		struct nlmsghdr head;
		struct ifaddrmsg address;
		struct rtattr attribute;
		struct in_addr local;
	} request = {
	    .head = {.nlmsg_len = sizeof(request),
		     .nlmsg_type = RTM_NEWADDR,
		     .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL},
	    .address = {.ifa_family = AF_INET, .ifa_prefixlen = 24, .ifa_index = 1},
	    .attribute = {.rta_len = RTA_LENGTH(sizeof(struct in_addr)), .rta_type = IFA_LOCAL},
	};
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char rest[512];
	} answer;

	inet_pton(AF_INET, "192.0.2.7", &request.local);
	space(CLONE_NEWNET);
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	MUST(fd >= 0);
	/* A netlink socket that was never connected sends to the kernel: no address is named. */
	MUST(write(fd, &request, sizeof(request)) == sizeof(request));
	MUST(read(fd, &answer, sizeof(answer)) > 0 && answer.head.nlmsg_type == NLMSG_ERROR);
	errno = -answer.error.error;
	MUST(errno == 0);
	did("unshare net");
	did("newaddr 192.0.2.7");
	return 0;
}
