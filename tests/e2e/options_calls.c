/* What tests/e2e/options.sh has done by a program: `ring`, a real io_uring, and `dns`, a question and a connection. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int failed(const char *what)
{
	printf("%s %s\n", what, strerrorname_np(errno));
	return 0;
}

/* One empty operation through a ring, so that the ring really is one. */
static int use_ring(void)
{
	struct io_uring_params parameters = {0};
	int ring = (int)syscall(SYS_io_uring_setup, 4, &parameters);

	if (ring < 0)
		return failed("setup");
	char *queue = mmap(NULL, parameters.sq_off.array + parameters.sq_entries * sizeof(unsigned),
			   PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	struct io_uring_sqe *entries = mmap(NULL, parameters.sq_entries * sizeof(*entries), PROT_READ | PROT_WRITE,
					    MAP_SHARED, ring, IORING_OFF_SQES);
	if (queue == MAP_FAILED || entries == MAP_FAILED)
		return failed("map");
	entries[0] = (struct io_uring_sqe){.opcode = IORING_OP_NOP};
	*(unsigned *)(void *)(queue + parameters.sq_off.array) = 0;
	__atomic_store_n((unsigned *)(void *)(queue + parameters.sq_off.tail), 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		return failed("enter");
	puts("ok");
	return 0;
}

/* www.example.org, type A */
static char question[] = "\x12\x34\x01\0\0\1\0\0\0\0\0\0\3www\7example\3org\0\0\1\0\1";

static int ask(const char *how)
{
	struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(53)};
	struct iovec part = {.iov_base = question, .iov_len = sizeof(question) - 1};
	struct mmsghdr message = {
	    .msg_hdr = {.msg_name = &server, .msg_namelen = sizeof(server), .msg_iov = &part, .msg_iovlen = 1}};
	int udp = socket(AF_INET, SOCK_DGRAM, 0), tcp = socket(AF_INET, SOCK_STREAM, 0);

	server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	long sent = -1;
	if (strcmp(how, "sendto") == 0)
		sent = sendto(udp, question, sizeof(question) - 1, 0, (struct sockaddr *)&server, sizeof(server));
	else if (strcmp(how, "sendmsg") == 0)
		sent = sendmsg(udp, &message.msg_hdr, 0);
	else
		sent = sendmmsg(udp, &message, 1, 0);
	printf("%s\n", sent < 0 ? strerrorname_np(errno) : "sent");
	server.sin_port = htons(4433);
	(void)connect(tcp, (struct sockaddr *)&server, sizeof(server));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "ring") == 0)
		return use_ring();
	return argc == 3 ? ask(argv[2]) : 2;
}
