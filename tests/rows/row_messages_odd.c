/*
 * Messages that reach somebody in a way that is easily overlooked. Each was received, so each is an effect.
 */
#include "row_letter.h"

/* For a datagram socket of IPv4 the kernel takes AF_UNSPEC for AF_INET. */
static void without_family(const char *row)
{
	int server = row_server(SOCK_DGRAM, 0);
	struct sockaddr_in address = row_inet(row_port(server));
	struct letter letter = write_letter(socket(AF_INET, SOCK_DGRAM, 0), "over");

	address.sin_family = AF_UNSPEC;
	address_to(&letter, &address, sizeof(address));
	row_must(begin(row, "net.send", &letter) >= 0);
	row_address("peer", "inet", "127.0.0.1", row_port(server), "udp");
	row_done();
	row_receive(server, "over");
}

/* sendto(2) refuses an address that is too long; the others cut it. */
static void long_address(const char *row)
{
	int server = row_server(SOCK_DGRAM, 0);
	struct sockaddr_in address = row_inet(row_port(server));
	struct letter letter = write_letter(socket(AF_INET, SOCK_DGRAM, 0), "over");

	address_to(&letter, &address, sizeof(address));
	letter.size = sizeof(struct sockaddr_storage) + 100;
	long result = begin(row, "net.send", &letter);
	row_must((result == -1) == (strcmp(row, "sendto") == 0));
	if (result != -1)
		row_address("peer", "inet", "127.0.0.1", row_port(server), "udp");
	row_done();
	if (result != -1)
		row_receive(server, "over");
}

/* An IPv4 address on a socket of IPv6. */
static void other_family(const char *row)
{
	int server = row_server(SOCK_DGRAM, 0);
	struct sockaddr_in address = row_inet(row_port(server));
	struct letter letter = write_letter(socket(AF_INET6, SOCK_DGRAM, 0), "over");

	if (letter.fd < 0) {
		row_skip(row, "no IPv6 here");
		return;
	}
	address_to(&letter, &address, sizeof(address));
	row_must(begin(row, "net.send", &letter) >= 0);
	row_address("peer", "inet", "127.0.0.1", row_port(server), "udp");
	row_done();
	row_receive(server, "over");
}

static void take_two(int fd, const int *sent)
{
	_Alignas(struct cmsghdr) char control[256];
	char data[16];
	struct iovec part = {data, sizeof(data)};
	struct msghdr message = {
	    .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	struct stat here, there;
	int fds[2];

	row_must(recvmsg(fd, &message, 0) > 0);
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	row_must(head && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof(fds)));
	memcpy(fds, CMSG_DATA(head), sizeof(fds));
	for (int i = 0; i < 2; i++)
		row_must(fstat(sent[i], &here) == 0 && fstat(fds[i], &there) == 0 && here.st_ino == there.st_ino);
}

/* Descriptors under two headers, or behind 66000 bytes for nobody. */
static void pass(const char *row, bool apart, size_t padding)
{
	int pair[2], both[2] = {open("first", O_CREAT | O_RDWR, 0600), open("second", O_CREAT | O_RDWR, 0600)};
	char text[2 * PATH_MAX + 16];

	row_must(both[0] >= 0 && both[1] >= 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	struct letter letter = write_letter(pair[0], "x");
	letter.passed = both;
	letter.passed_count = 2;
	letter.apart = apart;
	letter.padding = padding;
	long result = begin(row, "ipc.pass_fd", &letter);
	if (result == -1 && errno == ENOBUFS) {
		row_skip(row, "net.core.optmem_max allows no long control messages here");
		return;
	}
	row_must(result >= 0);
	snprintf(text, sizeof(text), "[%d,%d]", both[0], both[1]);
	row_json("args.fds", text);
	snprintf(text, sizeof(text), "[\"%s\",\"%s\"]", row_path("first"), row_path("second"));
	row_json("args.fd_paths", text);
	row_done();
	take_two(pair[1], both);
}

static void every_case(const char *row)
{
	without_family(row);
	long_address(row);
	other_family(row);
	if (strcmp(row, "sendto") == 0)
		return;
	pass(row, true, 0);
	pass(row, false, 66000);
}

static void run_sendto(void)
{
	every_case("sendto");
}

static void run_sendmsg(void)
{
	every_case("sendmsg");
}

static void run_sendmmsg(void)
{
	every_case("sendmmsg");
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {
	    {"sendto", run_sendto}, {"sendmsg", run_sendmsg}, {"sendmmsg", run_sendmmsg}, {0}};

	alarm(40);
	return row_main(cases, argc, argv);
}
