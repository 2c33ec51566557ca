/*
 * Messages: sendto, sendmsg and sendmmsg, each through the same cases. What was sent is received.
 */
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <net/ethernet.h>

#include "row_letter.h"

static void to_inet(const char *row)
{
	static const char large[70000];
	int server = row_server(SOCK_DGRAM, 0);
	struct sockaddr_in address = row_inet(row_port(server));
	struct letter letter = write_letter(socket(AF_INET, SOCK_DGRAM, 0), "over");

	address_to(&letter, &address, sizeof(address));
	letter.flags = MSG_NOSIGNAL | MSG_DONTWAIT;
	letter.flag_names = "[\"MSG_DONTWAIT\",\"MSG_NOSIGNAL\"]";
	begin(row, "net.send", &letter);
	row_address("peer", "inet", "127.0.0.1", row_port(server), "udp");
	row_done();
	row_receive(server, "over");

	/* More than a datagram holds. */
	letter.data = large;
	letter.length = sizeof(large);
	row_must(begin(row, "net.send", &letter) == -1);
	row_address("peer", "inet", "127.0.0.1", row_port(server), "udp");
	row_done();
}

static void to_inet6(const char *row)
{
	struct sockaddr_in6 address = row_inet6(0);
	int server = socket(AF_INET6, SOCK_DGRAM, 0);

	if (server < 0 || bind(server, (struct sockaddr *)&address, sizeof(address)) != 0) {
		row_skip(row, "no IPv6 here");
		return;
	}
	address = row_inet6(row_port(server));
	struct letter letter = write_letter(socket(AF_INET6, SOCK_DGRAM, 0), "over six");
	address_to(&letter, &address, sizeof(address));
	begin(row, "net.send", &letter);
	row_address("peer", "inet6", "::1", row_port(server), "udp");
	row_done();
	row_receive(server, "over six");
}

static long say_unix(const char *row, const char *given, const char *text)
{
	struct sockaddr_un address;
	struct letter letter = write_letter(socket(AF_UNIX, SOCK_DGRAM, 0), text);

	letter.size = row_unix(&address, given);
	memcpy(&letter.address, &address, letter.size);
	long result = begin(row, "ipc.send", &letter);
	if (given[0] == '@')
		row_socket_name("peer", given);
	else
		row_socket_file("peer", given[0] == '/' ? given : row_path(given), given);
	row_text("peer.protocol", "dgram");
	row_done();
	return result;
}

static void to_unix(const char *row)
{
	char given[64];

	snprintf(given, sizeof(given), "%s-server", row);
	int server = row_unix_server(SOCK_DGRAM, given);
	row_must(say_unix(row, given, "over path") >= 0);
	row_receive(server, "over path");
	row_must(say_unix(row, row_path(given), "over whole path") >= 0);
	row_receive(server, "over whole path");
	close(server);
	/* Nobody there, and no such name. */
	row_must(say_unix(row, given, "nobody") == -1);
	row_must(say_unix(row, "absent", "nowhere") == -1);

	const char *name = row_abstract(row);
	server = row_unix_server(SOCK_DGRAM, name);
	row_must(say_unix(row, name, "over name") >= 0);
	row_receive(server, "over name");
	close(server);
	row_must(say_unix(row, name, "nobody") == -1);
}

/* To the peer of a connection that was recorded: nothing more to say. */
static void to_connected(const char *row)
{
	int server = row_server(SOCK_DGRAM, 0);
	struct sockaddr_in address = row_inet(row_port(server));
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	row_must(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	struct letter letter = write_letter(fcntl(fd, F_DUPFD, ROW_HIGH_FD), "on");
	row_must(post(row, &letter) >= 0);
	row_receive(server, "on");
	row_absent(row);
	row_number("args.sockfd", letter.fd);
	row_done();
}

static bool fast_open_allowed(void)
{
	char text[16] = "";
	int fd = open("/proc/sys/net/ipv4/tcp_fastopen", O_RDONLY | O_CLOEXEC);
	bool have = fd >= 0 && read(fd, text, sizeof(text) - 1) > 0;

	close(fd);
	return have && (strtol(text, NULL, 10) & 1);
}

static void fast_open(const char *row)
{
	int server = row_server(SOCK_STREAM, 0);
	struct sockaddr_in address = row_inet(row_port(server));

	for (int refused = 0; refused < 2; refused++) {
		struct letter letter = write_letter(socket(AF_INET, SOCK_STREAM, 0), "fast");
		address_to(&letter, &address, sizeof(address));
		letter.flags = MSG_FASTOPEN;
		letter.flag_names = "[\"MSG_FASTOPEN\"]";
		long result = begin(row, "net.connect", &letter);
		row_address("peer", "inet", "127.0.0.1", ntohs(address.sin_port), "tcp");
		row_done();
		row_must((result == -1) == refused);
		if (refused)
			continue;
		int taken = row_taken(server, letter.fd);
		row_receive(taken, "fast");
		close(taken);
		close(server);
	}
}

static void to_netlink(const char *row)
{
	struct nlmsghdr nothing = {.nlmsg_len = sizeof(nothing), .nlmsg_type = NLMSG_NOOP};
	struct sockaddr_nl address = {.nl_family = AF_NETLINK};
	struct letter letter = write_letter(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), "");

	letter.data = (const char *)&nothing;
	letter.length = sizeof(nothing);
	address_to(&letter, &address, sizeof(address));
	row_must(begin(row, "net.raw", &letter) >= 0);
	row_text("peer.family", "netlink");
	row_done();
	/* A process that is not there. */
	address.nl_pid = 0x7ffffff0;
	address_to(&letter, &address, sizeof(address));
	row_must(begin(row, "net.raw", &letter) == -1);
	row_text("peer.family", "netlink");
	row_done();
}

static void packet(const char *row)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET,
				      .sll_protocol = htons(ETH_P_IP),
				      .sll_halen = ETH_ALEN,
				      .sll_ifindex = (int)if_nametoindex("lo")};
	struct letter letter = write_letter(socket(AF_PACKET, SOCK_DGRAM, 0), "no real packet");

	address_to(&letter, &address, sizeof(address));
	row_must(begin(row, "net.raw", &letter) >= 0);
	row_text("peer.family", "AF_PACKET");
	row_done();
	address.sll_ifindex = 12345;
	address_to(&letter, &address, sizeof(address));
	row_must(begin(row, "net.raw", &letter) == -1);
	row_text("peer.family", "AF_PACKET");
	row_done();
}

/* A question for a name server (RFC 1035): header, "example.test", the type, class IN. */
static const char question_a[] = "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07"
				 "example\x04test\x00\x00\x01\x00\x01";
static const char question_txt[] = "\x12\x35\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06"
				   "secret\x03"
				   "www\x07"
				   "example\x04test\x00\x00\x10\x00\x01";

static void take_question(int server, const char *question, size_t length)
{
	char buffer[512];

	row_must(recv(server, buffer, sizeof(buffer), 0) == (ssize_t)length && memcmp(buffer, question, length) == 0);
}

static void ask(const char *row)
{
	struct sockaddr_in address = row_inet(53);
	int server = socket(AF_INET, SOCK_DGRAM, 0), fd = socket(AF_INET, SOCK_DGRAM, 0);

	row_must(bind(server, (struct sockaddr *)&address, sizeof(address)) == 0);
	struct letter letter = {.fd = fd, .data = question_a, .length = sizeof(question_a) - 1};
	address_to(&letter, &address, sizeof(address));
	begin(row, "net.send", &letter);
	row_address("peer", "inet", "127.0.0.1", 53, "udp");
	row_json("args.dns_questions", "[\"example.test A\"]");
	row_done();
	take_question(server, question_a, sizeof(question_a) - 1);

	/* Over a connection: sendto without an address does not stop, the others tell the question. */
	if (strcmp(row, "sendto") != 0) {
		row_must(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
		letter = (struct letter){.fd = fd, .data = question_txt, .length = sizeof(question_txt) - 1};
		begin(row, "net.send", &letter);
		row_address("peer", "inet", "127.0.0.1", 53, "udp");
		row_json("args.dns_questions", "[\"secret.www.example.test TXT\"]");
		row_done();
		take_question(server, question_txt, sizeof(question_txt) - 1);
	}
	close(server);
}

static const char *row_in_network;

static void network_in_child(void)
{
	if (!row_loopback_up()) {
		row_skip(row_in_network, "no loopback interface of its own here: no packets, no name server");
		return;
	}
	packet(row_in_network);
	ask(row_in_network);
}

static void every_case(const char *row)
{
	to_inet(row);
	to_inet6(row);
	to_unix(row);
	to_connected(row);
	if (fast_open_allowed())
		fast_open(row);
	else
		row_skip(row, "TCP fast open is switched off here");
	to_netlink(row);
	row_in_network = row;
	row_in_child(row, CLONE_NEWNET, network_in_child);
}

static void begin_pass(const char *row, struct letter *letter, const char *path)
{
	char text[PATH_MAX + 32];

	begin(row, "ipc.pass_fd", letter);
	if (letter->passed_count == 1)
		snprintf(text, sizeof(text), "[%d]", letter->passed[0]);
	else
		snprintf(text, sizeof(text), "[%d,%d]", letter->passed[0], letter->passed[1]);
	row_json("args.fds", text);
	snprintf(text, sizeof(text), letter->passed_count == 1 ? "[\"%s\"]" : "[\"%s\",\"/\"]", path);
	row_json("args.fd_paths", text);
	row_text("peer.family", "unix");
}

/* The first descriptor that arrived is the file that was passed. */
static void take_passed(int fd, int file, size_t count)
{
	static _Alignas(struct cmsghdr) char control[CONTROL];
	char data[16];
	struct iovec part = {data, sizeof(data)};
	struct msghdr message = {
	    .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	struct stat sent, seen;
	int first;

	row_must(recvmsg(fd, &message, 0) > 0);
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	row_must(head && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(count * sizeof(int)));
	memcpy(&first, CMSG_DATA(head), sizeof(first));
	row_must(fstat(file, &sent) == 0 && fstat(first, &seen) == 0);
	row_must(sent.st_ino == seen.st_ino && sent.st_dev == seen.st_dev);
}

static void pass_descriptors(const char *row)
{
	int pair[2], both[2] = {open("passed", O_CREAT | O_RDWR, 0600), open("/", O_RDONLY | O_DIRECTORY)};

	row_must(both[0] >= 0 && both[1] >= 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	struct letter letter = write_letter(pair[0], "x");
	letter.passed = both;
	letter.passed_count = 2;
	begin_pass(row, &letter, row_path("passed"));
	row_done();
	take_passed(pair[1], both[0], 2);

	close(pair[1]);
	letter.passed_count = 1;
	letter.flags = MSG_NOSIGNAL;
	letter.flag_names = "[\"MSG_NOSIGNAL\"]";
	begin_pass(row, &letter, row_path("passed"));
	row_done();

	char given[64];
	struct sockaddr_un address;
	snprintf(given, sizeof(given), "%s-taker", row);
	int server = row_unix_server(SOCK_DGRAM, given);
	letter.fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	letter.size = row_unix(&address, given);
	memcpy(&letter.address, &address, letter.size);
	begin_pass(row, &letter, row_path("passed"));
	row_text("peer.path", row_path(given));
	row_text("path", row_path(given));
	row_done();
	take_passed(server, both[0], 1);
}

/* A netlink socket's messages need no address. */
static void netlink_without_address(const char *row)
{
	struct nlmsghdr nothing = {.nlmsg_len = sizeof(nothing), .nlmsg_type = NLMSG_NOOP};
	struct letter letter = {.fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)};

	letter.data = (const char *)&nothing;
	letter.length = sizeof(nothing);
	row_must(begin(row, "net.raw", &letter) >= 0);
	row_done();
}

/* Three messages: to one, to the socket's own peer, to another. Each with an address is an effect. */
static void several(void)
{
	int servers[3] = {row_server(SOCK_DGRAM, 0), row_server(SOCK_DGRAM, 0), row_server(SOCK_DGRAM, 0)};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct mmsghdr messages[3] = {0};
	struct iovec parts[3];
	struct letter letters[3];
	static char control[CONTROL];

	for (int i = 0; i < 3; i++) {
		struct sockaddr_in address = row_inet(row_port(servers[i]));
		letters[i] = write_letter(fd, i == 0 ? "first" : i == 1 ? "second" : "third");
		if (i == 1)
			row_must(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
		else
			address_to(&letters[i], &address, sizeof(address));
		fill(&messages[i].msg_hdr, &parts[i], &letters[i], control);
	}
	long result = syscall(SYS_sendmmsg, fd, messages, 3, MSG_NOSIGNAL);
	row_must(result == 3);
	for (int i = 0; i < 3; i += 2) {
		row_expect("sendmmsg", "net.send", result);
		row_number("args.sockfd", fd);
		row_number("args.message", i);
		row_number("args.vlen", 3);
		row_json("flags", "[\"MSG_NOSIGNAL\"]");
		row_address("peer", "inet", "127.0.0.1", row_port(servers[i]), "udp");
		row_done();
	}
	for (int i = 0; i < 3; i++)
		row_receive(servers[i], letters[i].data);
	row_absent("sendmmsg");
	row_number("args.sockfd", fd);
	row_number("args.message", 1);
	row_done();
}

static void run_sendto(void)
{
	every_case("sendto");
}

static void run_sendmsg(void)
{
	every_case("sendmsg");
	pass_descriptors("sendmsg");
	netlink_without_address("sendmsg");
}

static void run_sendmmsg(void)
{
	every_case("sendmmsg");
	pass_descriptors("sendmmsg");
	netlink_without_address("sendmmsg");
	several();
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {
	    {"sendto", run_sendto}, {"sendmsg", run_sendmsg}, {"sendmmsg", run_sendmmsg}, {0}};

	alarm(40);
	return row_main(cases, argc, argv);
}
