/*
 * connect, by family.
 */
#include <linux/netlink.h>
#include <linux/vm_sockets.h>

#include "row_net.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#ifndef VMADDR_CID_LOCAL
#define VMADDR_CID_LOCAL 1
#endif

static int say_inet(int type, int protocol, const char *protocol_name, uint16_t port)
{
	struct sockaddr_in address = row_inet(port);
	int fd = socket(AF_INET, type, protocol);
	long result = syscall(SYS_connect, fd, &address, sizeof(address));

	row_expect("connect", "net.connect", result);
	row_number("args.sockfd", fd);
	row_address("peer", "inet", "127.0.0.1", port, protocol_name);
	row_done();
	return fd;
}

static void connect_inet(void)
{
	int server = row_server(SOCK_STREAM, 0);

	int client = say_inet(SOCK_STREAM, 0, "tcp", row_port(server));
	close(row_taken(server, client));
	say_inet(SOCK_DGRAM, 0, "udp", row_port(row_server(SOCK_DGRAM, 0)));
	/* Refused. */
	say_inet(SOCK_STREAM, 0, "tcp", row_free_port(SOCK_STREAM));
	/* Connected already. */
	client = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in address = row_inet(row_port(server));
	row_must(connect(client, (struct sockaddr *)&address, sizeof(address)) == 0);
	long result = syscall(SYS_connect, client, &address, sizeof(address));
	row_expect("connect", "net.connect", result);
	row_number("args.sockfd", client);
	row_address("peer", "inet", "127.0.0.1", ntohs(address.sin_port), "tcp");
	row_done();
}

/* The call returns at once; the connection is made all the same, as the other end says. */
static void connect_without_waiting(void)
{
	int server = row_server(SOCK_STREAM, 0);
	struct sockaddr_in address = row_inet(row_port(server));
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	long result = syscall(SYS_connect, fd, &address, sizeof(address));

	row_must(result == -1 && errno == EINPROGRESS);
	row_expect("connect", "net.connect", 0);
	row_number("args.sockfd", fd);
	row_address("peer", "inet", "127.0.0.1", row_port(server), "tcp");
	row_done();
	close(row_taken(server, fd));
}

static void connect_mptcp(void)
{
	int probe = socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP);

	if (probe < 0) {
		row_skip("connect", "no multipath TCP here");
		return;
	}
	close(probe);
	int server = row_server(SOCK_STREAM, IPPROTO_MPTCP);
	int client = say_inet(SOCK_STREAM, IPPROTO_MPTCP, "mptcp", row_port(server));
	close(row_taken(server, client));
}

static void connect_inet6(void)
{
	struct sockaddr_in6 address = row_inet6(0);
	socklen_t size = sizeof(address);
	int server = socket(AF_INET6, SOCK_STREAM, 0);

	if (server < 0 || bind(server, (struct sockaddr *)&address, size) != 0) {
		row_skip("connect", "no IPv6 here");
		return;
	}
	row_must(listen(server, 4) == 0 && getsockname(server, (struct sockaddr *)&address, &size) == 0);
	for (int refused = 0; refused < 2; refused++) {
		int fd = socket(AF_INET6, SOCK_STREAM, 0);
		long result = syscall(SYS_connect, fd, &address, sizeof(address));
		row_expect("connect", "net.connect", result);
		row_number("args.sockfd", fd);
		row_address("peer", "inet6", "::1", ntohs(address.sin6_port), "tcp");
		row_done();
		if (!refused) {
			close(row_taken(server, fd));
			close(server);
		}
	}
}

/* `path` is NULL when `given` is an abstract name. */
static int say_unix(int type, const char *protocol, const char *given, const char *path)
{
	struct sockaddr_un address;
	socklen_t size = row_unix(&address, given);
	int fd = socket(AF_UNIX, type, 0);

	long result = syscall(SYS_connect, fd, &address, size);
	row_expect("connect", "ipc.connect", result);
	row_number("args.sockfd", fd);
	if (!path)
		row_socket_name("peer", given);
	else
		row_socket_file("peer", path, given);
	row_text("peer.protocol", protocol);
	row_done();
	return fd;
}

static void connect_unix(void)
{
	int server = row_unix_server(SOCK_STREAM, "server");
	int client = say_unix(SOCK_STREAM, "stream", row_path("server"), row_path("server"));

	close(row_taken(server, client));
	client = say_unix(SOCK_STREAM, "stream", "server", row_path("server"));
	close(row_taken(server, client));
	row_must(symlink("server", "link") == 0);
	client = say_unix(SOCK_STREAM, "stream", "link", row_path("server"));
	close(row_taken(server, client));

	row_must(row_unix_server(SOCK_DGRAM, "datagrams") >= 0);
	say_unix(SOCK_DGRAM, "dgram", "datagrams", row_path("datagrams"));
	row_must(row_unix_server(SOCK_SEQPACKET, "packets") >= 0);
	say_unix(SOCK_SEQPACKET, "seqpacket", "packets", row_path("packets"));

	/* Nobody there, no such name, and the wrong kind of socket. */
	close(server);
	say_unix(SOCK_STREAM, "stream", "server", row_path("server"));
	say_unix(SOCK_STREAM, "stream", "absent", row_path("absent"));
	say_unix(SOCK_STREAM, "stream", "datagrams", row_path("datagrams"));
}

static void connect_abstract(void)
{
	const char *name = row_abstract("connect");
	int server = row_unix_server(SOCK_STREAM, name);
	int client = say_unix(SOCK_STREAM, "stream", name, NULL);

	close(row_taken(server, client));
	close(server);
	say_unix(SOCK_STREAM, "stream", name, NULL);
}

/* As docker's: the daemon would act for whoever connects, so it is named. */
static void connect_delegate(void)
{
	struct sockaddr_un address;
	socklen_t size = row_unix(&address, "docker.sock");
	int server = row_unix_server(SOCK_STREAM, "docker.sock");
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	long result = syscall(SYS_connect, fd, &address, size);
	row_expect("connect", "ipc.connect", result);
	row_number("args.sockfd", fd);
	row_socket_file("peer", row_path("docker.sock"), "docker.sock");
	row_text("delegated", "docker");
	row_done();
	close(row_taken(server, fd));
}

/* Dissolves a connection; nobody is reached. */
static void connect_to_nobody(void)
{
	struct sockaddr_in address = row_inet(row_port(row_server(SOCK_DGRAM, 0)));
	struct sockaddr nobody = {.sa_family = AF_UNSPEC};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	row_must(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	int high = fcntl(fd, F_DUPFD, ROW_HIGH_FD);
	row_must(syscall(SYS_connect, high, &nobody, sizeof(nobody)) == 0);
	socklen_t size = sizeof(address);
	row_must(getpeername(high, (struct sockaddr *)&address, &size) == -1 && errno == ENOTCONN);
	row_absent("connect");
	row_number("args.sockfd", high);
	row_done();
}

static void connect_netlink(void)
{
	struct sockaddr_nl address = {.nl_family = AF_NETLINK};
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	long result = syscall(SYS_connect, fd, &address, sizeof(address));

	row_expect("connect", "net.raw", result);
	row_number("args.sockfd", fd);
	row_text("peer.family", "netlink");
	row_done();
}

/* Flags that no kernel knows: refused before anything is sent, to whichever machine lies beyond. */
static void connect_vsock(void)
{
	struct sockaddr_vm address = {.svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_LOCAL, .svm_port = 54321};
	int fd = socket(AF_VSOCK, SOCK_STREAM, 0);

	if (fd < 0) {
		row_skip("connect", "no AF_VSOCK here");
		return;
	}
	memset((char *)&address + offsetof(struct sockaddr_vm, svm_cid) + sizeof(address.svm_cid), 0xfe, 4);
	long result = syscall(SYS_connect, fd, &address, sizeof(address));
	row_must(result == -1 && errno == EINVAL);
	row_expect("connect", "net.connect", result);
	row_number("args.sockfd", fd);
	row_address("peer", "vsock", "1", 54321, NULL);
	row_done();
}

static void run_connect(void)
{
	connect_inet();
	connect_without_waiting();
	connect_mptcp();
	connect_inet6();
	connect_unix();
	connect_abstract();
	connect_delegate();
	connect_to_nobody();
	connect_netlink();
	connect_vsock();
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {{"connect", run_connect}, {0}};

	alarm(40);
	return row_main(cases, argc, argv);
}
