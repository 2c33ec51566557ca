/*
 * Peers of our own for the rows of sockets: all on the loopback interface or in unix sockets. What they see decides.
 */
#pragma once

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "row_child.h"

/* Far above what is in use, so that a number means one socket in the whole run. */
enum { ROW_HIGH_FD = 200 };

__attribute__((unused)) static struct sockaddr_in row_inet(uint16_t port)
{
	return (struct sockaddr_in){
	    .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

__attribute__((unused)) static struct sockaddr_in6 row_inet6(uint16_t port)
{
	return (struct sockaddr_in6){
	    .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
}

/* '@' in front makes it abstract. */
__attribute__((unused)) static socklen_t row_unix(struct sockaddr_un *address, const char *name)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	size_t length = strlen(name);
	row_must(length < sizeof(address->sun_path));
	memcpy(address->sun_path, name, length);
	if (name[0] != '@')
		return sizeof(*address);
	address->sun_path[0] = 0;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

/* A name that nobody else in this network namespace has. */
__attribute__((unused)) static const char *row_abstract(const char *name)
{
	static char text[64];

	snprintf(text, sizeof(text), "@row-%d-%s", getpid(), name);
	return text;
}

__attribute__((unused)) static uint16_t row_port(int fd)
{
	struct sockaddr_in6 address = {0};
	socklen_t size = sizeof(address);

	/* The port is at the same place in both families. */
	row_must(getsockname(fd, (struct sockaddr *)&address, &size) == 0);
	return ntohs(address.sin6_port);
}

/* A socket bound to a free port of the loopback interface; listening when it is a stream. */
__attribute__((unused)) static int row_server(int type, int protocol)
{
	struct sockaddr_in address = row_inet(0);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, protocol);

	row_must(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	row_must(type != SOCK_STREAM || listen(fd, 8) == 0);
	return fd;
}

__attribute__((unused)) static int row_unix_server(int type, const char *name)
{
	struct sockaddr_un address;
	socklen_t size = row_unix(&address, name);
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	row_must(fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0);
	row_must(type == SOCK_DGRAM || listen(fd, 8) == 0);
	return fd;
}

/* A port where nobody is: one that was free a moment ago. */
__attribute__((unused)) static uint16_t row_free_port(int type)
{
	int fd = row_server(type, 0);
	uint16_t port = row_port(fd);

	close(fd);
	return port;
}

/* The other end of a connection that `client` made: whom the accepting side names as its peer. */
__attribute__((unused)) static int row_taken(int server, int client)
{
	struct sockaddr_in6 seen = {0}, own;
	socklen_t seen_size = sizeof(seen), own_size = sizeof(own);
	int fd = accept(server, (struct sockaddr *)&seen, &seen_size);

	memset(&own, 0, sizeof(own));
	row_must(fd >= 0 && getsockname(client, (struct sockaddr *)&own, &own_size) == 0);
	row_must(seen.sin6_family == own.sin6_family);
	row_must(own.sin6_family == AF_UNIX || seen.sin6_port == own.sin6_port);
	return fd;
}

__attribute__((unused)) static void row_receive(int fd, const char *text)
{
	char buffer[512];
	ssize_t size = recv(fd, buffer, sizeof(buffer), 0);

	row_must(size == (ssize_t)strlen(text) && memcmp(buffer, text, strlen(text)) == 0);
}

/* "peer.family" and so on. */
__attribute__((unused)) static void row_address(const char *key, const char *family, const char *address, int port,
						const char *protocol)
{
	row_put(",\"%s.family\":\"%s\",\"%s.address\":\"%s\",\"%s.port\":%d", key, family, key, address, key, port);
	if (protocol)
		row_put(",\"%s.protocol\":\"%s\"", key, protocol);
}

/* A unix socket in the file system, as top-level object and as peer or own address. */
__attribute__((unused)) static void row_socket_file(const char *key, const char *path, const char *given)
{
	struct stat status;

	row_put(",\"%s.family\":\"unix\",\"%s.path\":", key, key);
	row_quote(path);
	row_text("path", path);
	if (strcmp(path, given) != 0)
		row_text("as_given", given);
	if (stat(path, &status) == 0)
		row_inode("", &status);
}

__attribute__((unused)) static void row_socket_name(const char *key, const char *name)
{
	row_put(",\"%s.family\":\"unix\",\"%s.path\":", key, key);
	row_quote(name);
}

/* Switch on the loopback interface of a network namespace of our own. */
__attribute__((unused)) static bool row_loopback_up(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	bool done = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
	close(fd);
	return done;
}
