/*
 * The control of witness.py: bytes from one loopback port to another and back, and nothing else. plain_relay PORT
 *
 * Prints the port that it serves, ends with its standard input.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECE = 64 << 10, EVENTS = 64 };

struct end {
	int fd;
	struct end *other;
};

static struct sockaddr_in loopback(unsigned port)
{
	return (struct sockaddr_in){
	    .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void connect_ends(int epoll, int fd, unsigned port)
{
	struct sockaddr_in address = loopback(port);
	struct end *ends = calloc(2, sizeof(*ends));
	int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (!ends || connect(other, (struct sockaddr *)&address, sizeof(address)) != 0)
		exit(1);
	ends[0] = (struct end){fd, &ends[1]};
	ends[1] = (struct end){other, &ends[0]};
	for (int i = 0; i < 2; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = &ends[i]};
		setsockopt(ends[i].fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		epoll_ctl(epoll, EPOLL_CTL_ADD, ends[i].fd, &event);
	}
}

static void pass_on(const struct end *end)
{
	static char piece[PIECE];
	ssize_t size = read(end->fd, piece, sizeof(piece));

	for (ssize_t done = 0; done < size;) {
		ssize_t wrote = write(end->other->fd, piece + done, (size_t)(size - done));
		if (wrote <= 0)
			break;
		done += wrote;
	}
	if (size <= 0) {
		shutdown(end->other->fd, SHUT_WR);
		close(end->fd);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = loopback(0);
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event events[EVENTS], listening = {.events = EPOLLIN, .data.ptr = &listener},
					   input = {.events = EPOLLIN};
	char byte;

	if (argc != 2 || bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, SOMAXCONN) != 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &size) != 0)
		return 2;
	epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &listening);
	epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &input);
	dprintf(1, "%u\n", ntohs(address.sin_port));
	for (;;) {
		int count = epoll_wait(epoll, events, EVENTS, -1);
		for (int i = 0; i < count; i++) {
			if (!events[i].data.ptr && read(0, &byte, 1) <= 0)
				return 0;
			if (events[i].data.ptr == &listener)
				connect_ends(epoll, accept4(listener, NULL, NULL, SOCK_CLOEXEC),
					     (unsigned)strtoul(argv[1], NULL, 10));
			else if (events[i].data.ptr)
				pass_on(events[i].data.ptr);
		}
	}
}
