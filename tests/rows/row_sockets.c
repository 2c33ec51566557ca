/*
 * Sockets: made, bound, connected, listened on, accepted from.
 */
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <net/ethernet.h>

#include "row_net.h"

static int say_socket(int family, int type, int protocol, const char *family_name, const char *type_name)
{
	long result = syscall(SYS_socket, family, type, protocol);

	row_expect("socket", "net.raw", result);
	row_text("args.domain", family_name);
	row_text("args.type", type_name);
	row_number("args.protocol", protocol);
	if (type & SOCK_CLOEXEC)
		row_json("flags", type & SOCK_NONBLOCK ? "[\"SOCK_NONBLOCK\",\"SOCK_CLOEXEC\"]" : "[\"SOCK_CLOEXEC\"]");
	row_value(result);
	row_done();
	return (int)result;
}

static void raw_in_child(void)
{
	say_socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0, "AF_PACKET", "SOCK_RAW");
	say_socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_ALL), "AF_PACKET", "SOCK_DGRAM");
	say_socket(AF_INET, SOCK_RAW, IPPROTO_ICMP, "AF_INET", "SOCK_RAW");
	say_socket(AF_INET, SOCK_PACKET, htons(ETH_P_ALL), "AF_INET", "SOCK_PACKET");
	say_socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_RAW, "AF_INET6", "SOCK_RAW");
}

static void say_plain_socket(int family, const char *name)
{
	int fd = (int)syscall(SYS_socket, family, SOCK_STREAM, 0);

	row_must(fd >= 0 || errno == EAFNOSUPPORT);
	row_absent("socket");
	row_text("args.domain", name);
	row_text("args.type", "SOCK_STREAM");
	row_done();
}

static void run_socket(void)
{
	say_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE, "AF_NETLINK", "SOCK_RAW");
	say_socket(AF_NETLINK, SOCK_RAW, 31, "AF_NETLINK", "SOCK_RAW");
	say_socket(AF_NETLINK, SOCK_STREAM, 0, "AF_NETLINK", "SOCK_STREAM");
	say_socket(AF_VSOCK, SOCK_STREAM, 0, "AF_VSOCK", "SOCK_STREAM");
	say_socket(AF_VSOCK, SOCK_SEQPACKET | SOCK_CLOEXEC, 99, "AF_VSOCK", "SOCK_SEQPACKET");
	say_socket(AF_X25, SOCK_SEQPACKET, 0, "AF_X25", "SOCK_SEQPACKET");
	if (geteuid() != 0) {
		say_socket(AF_PACKET, SOCK_RAW, 0, "AF_PACKET", "SOCK_RAW");
		say_socket(AF_INET, SOCK_RAW, IPPROTO_ICMP, "AF_INET", "SOCK_RAW");
	}
	say_plain_socket(AF_UNIX, "AF_UNIX");
	say_plain_socket(AF_INET, "AF_INET");
	say_plain_socket(AF_INET6, "AF_INET6");
	row_in_child("socket", CLONE_NEWNET, raw_in_child);
}

static void say_bind_inet(int type, const char *protocol, uint16_t port)
{
	struct sockaddr_in address = row_inet(port);
	int fd = socket(AF_INET, type, 0);
	long result = syscall(SYS_bind, fd, &address, sizeof(address));

	row_expect("bind", "net.bind", result);
	row_number("args.sockfd", fd);
	row_address("local", "inet", "127.0.0.1", port, protocol);
	row_done();
	row_must(result != 0 || row_port(fd) == port);
}

static void bind_inet6(void)
{
	struct sockaddr_in6 address = row_inet6(row_free_port(SOCK_DGRAM));
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);

	if (fd < 0) {
		row_skip("bind", "no IPv6 here");
		return;
	}
	long result = syscall(SYS_bind, fd, &address, sizeof(address));
	row_expect("bind", "net.bind", result);
	row_number("args.sockfd", fd);
	row_address("local", "inet6", "::1", ntohs(address.sin6_port), "udp");
	row_done();
}

/* `path` is NULL when `given` is an abstract name. */
static void say_bind_unix(const char *given, const char *path)
{
	struct sockaddr_un address;
	socklen_t size = row_unix(&address, given);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	long result = syscall(SYS_bind, fd, &address, size);
	row_expect("bind", path ? "node.create" : "net.bind", result);
	row_number("args.sockfd", fd);
	if (!path)
		row_socket_name("local", given);
	else
		row_socket_file("local", path, given);
	row_text("local.protocol", "stream");
	row_done();
}

/* For bind(2) the internet's any-address: old programs leave the family out. */
static void bind_unspecified(void)
{
	struct sockaddr_in address = {.sin_family = AF_UNSPEC};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	long result = syscall(SYS_bind, fd, &address, sizeof(address));

	row_expect("bind", "net.bind", result);
	row_number("args.sockfd", fd);
	row_text("local.family", "inet");
	row_done();
}

static void bind_netlink(void)
{
	struct sockaddr_nl address = {.nl_family = AF_NETLINK};
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	long result = syscall(SYS_bind, fd, &address, sizeof(address));

	row_expect("bind", "net.raw", result);
	row_number("args.sockfd", fd);
	row_text("local.family", "netlink");
	row_done();
}

static void bind_packet_in_child(void)
{
	struct sockaddr_ll address = {
	    .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)if_nametoindex("lo")};
	int fd = socket(AF_PACKET, SOCK_RAW, 0);
	long result = syscall(SYS_bind, fd, &address, sizeof(address));

	row_expect("bind", "net.raw", result);
	row_number("args.sockfd", fd);
	row_text("local.family", "AF_PACKET");
	row_done();
}

static void run_bind(void)
{
	int busy = row_server(SOCK_STREAM, 0);

	say_bind_inet(SOCK_STREAM, "tcp", row_free_port(SOCK_STREAM));
	say_bind_inet(SOCK_DGRAM, "udp", row_free_port(SOCK_DGRAM));
	say_bind_inet(SOCK_STREAM, "tcp", row_port(busy));
	bind_inet6();
	bind_unspecified();
	say_bind_unix("bound", row_path("bound"));
	/* The name is taken now. */
	say_bind_unix(row_path("bound"), row_path("bound"));
	say_bind_unix("absent/bound", row_path("absent/bound"));
	const char *name = row_abstract("bind");
	say_bind_unix(name, NULL);
	say_bind_unix(name, NULL);
	bind_netlink();
	row_in_child("bind", CLONE_NEWNET, bind_packet_in_child);
}

static void say_listen(int fd, int backlog, uint16_t port)
{
	long result = syscall(SYS_listen, fd, backlog);

	row_expect("listen", "net.listen", result);
	row_number("args.sockfd", fd);
	row_number("args.backlog", backlog);
	if (port)
		row_address("local", "inet", "127.0.0.1", port, "tcp");
	row_done();
}

static void run_listen(void)
{
	struct sockaddr_in address = row_inet(0);
	int stream = socket(AF_INET, SOCK_STREAM, 0);

	row_must(bind(stream, (struct sockaddr *)&address, sizeof(address)) == 0);
	say_listen(stream, 7, row_port(stream));
	int client = socket(AF_INET, SOCK_STREAM, 0);
	address = row_inet(row_port(stream));
	row_must(connect(client, (struct sockaddr *)&address, sizeof(address)) == 0);
	close(row_taken(stream, client));
	say_listen(socket(AF_INET, SOCK_DGRAM, 0), 3, 0);
	say_listen(socket(AF_UNIX, SOCK_STREAM, 0), 4, 0);
}

static int client_of(int server)
{
	struct sockaddr_in address = row_inet(row_port(server));
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	row_must(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	return fd;
}

/* Whom it took is not said: the call is let go, so that nobody knows before it is over. */
static long say_accept(bool with_flags, int server)
{
	const char *row = with_flags ? "accept4" : "accept";
	long result = with_flags ? syscall(SYS_accept4, server, NULL, NULL, SOCK_CLOEXEC)
				 : syscall(SYS_accept, server, NULL, NULL);

	row_expect(row, "net.accept", result);
	row_number("args.sockfd", server);
	if (with_flags)
		row_hex("args.flags", SOCK_CLOEXEC);
	row_done();
	return result;
}

static void accept_both(bool with_flags)
{
	int server = row_server(SOCK_STREAM, 0);
	int client = client_of(server);
	long taken = say_accept(with_flags, server);

	row_must(taken >= 0 && send(client, "over", 4, 0) == 4);
	row_receive((int)taken, "over");
	int idle = row_server(SOCK_STREAM, 0);
	row_must(fcntl(idle, F_SETFL, O_NONBLOCK) == 0);
	row_must(say_accept(with_flags, idle) == -1);
	/* Not listening. */
	row_must(say_accept(with_flags, socket(AF_UNIX, SOCK_STREAM, 0)) == -1);
}

static void run_accept(void)
{
	accept_both(false);
}

static void run_accept4(void)
{
	accept_both(true);
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {
	    {"socket", run_socket}, {"bind", run_bind},       {"listen", run_listen},
	    {"accept", run_accept}, {"accept4", run_accept4}, {0},
	};

	alarm(40);
	return row_main(cases, argc, argv);
}
