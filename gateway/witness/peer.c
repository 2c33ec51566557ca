/*
 * Who hung up, and who has only said all that he has to say? To us both look the same: the other end sends no more. On
 * loopback the other end is a socket of this kernel, which says whether somebody still holds it.
 */
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "passage.h"

struct question {
	struct nlmsghdr header;
	struct inet_diag_req_v2 request;
};

/* The socket whose own address is `own`, connected to `other`. */
static bool ask(const struct sockaddr_storage *own, const struct sockaddr_storage *other, struct question *question)
{
	struct inet_diag_sockid *id = &question->request.id;

	*question = (struct question){
	    .header = {.nlmsg_len = sizeof(*question), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
	    .request = {.sdiag_family = (uint8_t)own->ss_family,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_states = UINT32_MAX},
	};
	id->idiag_cookie[0] = id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	if (own->ss_family == AF_INET && other->ss_family == AF_INET) {
		const struct sockaddr_in *from = (const struct sockaddr_in *)own,
					 *to = (const struct sockaddr_in *)other;
		id->idiag_sport = from->sin_port;
		id->idiag_dport = to->sin_port;
		memcpy(id->idiag_src, &from->sin_addr, sizeof(from->sin_addr));
		memcpy(id->idiag_dst, &to->sin_addr, sizeof(to->sin_addr));
		return true;
	}
	if (own->ss_family == AF_INET6 && other->ss_family == AF_INET6) {
		const struct sockaddr_in6 *from = (const struct sockaddr_in6 *)own,
					  *to = (const struct sockaddr_in6 *)other;
		id->idiag_sport = from->sin6_port;
		id->idiag_dport = to->sin6_port;
		memcpy(id->idiag_src, &from->sin6_addr, sizeof(from->sin6_addr));
		memcpy(id->idiag_dst, &to->sin6_addr, sizeof(to->sin6_addr));
		return true;
	}
	return false;
}

bool peer_is_gone(const struct sockaddr_storage *local, const struct sockaddr_storage *peer)
{
	union {
		struct nlmsghdr header;
		char bytes[8192];
	} answer;
	struct question question;

	if (!ask(peer, local, &question))
		return false;
	CLEANUP_FD int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (fd < 0 || send(fd, &question, sizeof(question), 0) != (ssize_t)sizeof(question))
		return false;
	ssize_t size = recv(fd, &answer, sizeof(answer), 0);
	if (size < (ssize_t)sizeof(answer.header) || answer.header.nlmsg_len > (size_t)size)
		return false;
	if (answer.header.nlmsg_type == NLMSG_ERROR) {
		const struct nlmsgerr *error = NLMSG_DATA(&answer.header);
		return answer.header.nlmsg_len >= NLMSG_LENGTH(sizeof(*error)) && error->error == -ENOENT;
	}
	const struct inet_diag_msg *message = NLMSG_DATA(&answer.header);
	/* Nobody's socket has no inode. */
	return answer.header.nlmsg_type == SOCK_DIAG_BY_FAMILY &&
	       answer.header.nlmsg_len >= NLMSG_LENGTH(sizeof(*message)) && message->idiag_inode == 0;
}
