/* io_uring: socket, connect and send, with none of the system calls of these names. */
#include "ring.h"

int main(void)
{
	struct ring ring;
	int port;
	int listener = serve(SOCK_STREAM, &port);
	struct sockaddr_in address = loopback(port);

	if (!ring_begin(&ring, false))
		return arrived(listener, SOCK_STREAM, 0) == 0 ? 0 : 1;
	struct io_uring_sqe make = {.opcode = IORING_OP_SOCKET, .fd = AF_INET, .off = SOCK_STREAM};
	int fd = ring_do(&ring, &make);
	if (fd < 0)
		skip("sockets by io_uring");
	struct io_uring_sqe link = {
	    .opcode = IORING_OP_CONNECT, .fd = fd, .addr = (uint64_t)(uintptr_t)&address, .off = sizeof(address)};
	struct io_uring_sqe give = {.opcode = IORING_OP_SEND, .fd = fd, .addr = ring_text("text"), .len = 4};
	MUST(ring_do(&ring, &link) == 0);
	MUST(ring_do(&ring, &give) == 4);
	MUST(arrived(listener, SOCK_STREAM, 2000) == 1);
	did("connect tcp port~%d", port);
	return 0;
}
