/*
 * What the programs share that connect. What they print must be the same whoever watches: results, flags and errors as
 * the caller sees them. Ports, which differ, go to descriptor 3 by name.
 */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PORTS_FD = 3 };

#define MUST(condition) ((condition) ? (void)0 : broken(#condition, __LINE__))

__attribute__((unused, noreturn)) static void broken(const char *what, int line)
{
	fprintf(stderr, "line %d: not so: %s (%s)\n", line, what, strerror(errno));
	_exit(2);
}

__attribute__((unused)) static long say(const char *what, long result)
{
	printf("%s: %s\n", what, result == -1 ? strerrorname_np(errno) : result == 0 ? "ok" : "more than 0");
	return result;
}

__attribute__((unused)) static void tell_port(const char *name, int port)
{
	MUST(dprintf(PORTS_FD, "%s %d\n", name, port) > 0);
}

__attribute__((unused)) static struct sockaddr_in address_of(int port)
{
	return (struct sockaddr_in){
	    .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* Not through the C library, which may look at the arguments first. */
__attribute__((unused)) static long connect_to(int fd, const void *address, long size)
{
	return syscall(SYS_connect, fd, address, size);
}

__attribute__((unused)) static long connect_port(int fd, int port)
{
	struct sockaddr_in address = address_of(port);

	return connect_to(fd, &address, sizeof(address));
}

__attribute__((unused)) static int port_of(int fd)
{
	struct sockaddr_in6 address = {0};
	socklen_t size = sizeof(address);

	MUST(getsockname(fd, (struct sockaddr *)&address, &size) == 0);
	return ntohs(address.sin6_port);
}

__attribute__((unused)) static int peer_port(int fd)
{
	struct sockaddr_in6 address = {0};
	socklen_t size = sizeof(address);

	return getpeername(fd, (struct sockaddr *)&address, &size) == 0 ? ntohs(address.sin6_port) : 0;
}

__attribute__((unused)) static int new_socket(int type)
{
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	MUST(fd >= 0);
	return fd;
}

__attribute__((unused)) static int bound(int type, int backlog)
{
	struct sockaddr_in address = address_of(0);
	int fd = new_socket(type);

	MUST(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	MUST(type != SOCK_STREAM || listen(fd, backlog) == 0);
	return fd;
}

/* A port that nobody listens at, kept for ourselves. */
__attribute__((unused)) static int closed_port(void)
{
	struct sockaddr_in address = address_of(0);
	int fd = new_socket(SOCK_STREAM);

	MUST(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	return port_of(fd);
}

__attribute__((unused)) static void say_state(const char *what, int fd)
{
	int error = -1, flags = fcntl(fd, F_GETFL);
	socklen_t size = sizeof(error);

	MUST(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0);
	printf("%s: flags %#x, error %s, %s\n", what, (unsigned)flags, error ? strerrorname_np(error) : "none",
	       peer_port(fd) ? "connected" : "not connected");
}

__attribute__((unused)) static void wait_writable(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLOUT};

	MUST(poll(&ready, 1, 5000) == 1);
}
