/*
 * race_sockets sockaddr ROUNDS: connect and bind, while a thread changes the address.
 *
 *   connect        the port is of one of two listeners, and the one that has the connection says which it was
 *   connect closed nobody listens at one of the two ports
 *   connect udp    the address's last byte changes, and getpeername says what it was
 *   bind           the address's last byte changes, and getsockname says what it was
 *   bind unix      the path's first byte changes, and the name that is there says what it was
 */
#include "race.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { SIDES = 2, CALLS = 5, BACKLOG = 16, TEXT = 128 };

/* What the flipping thread writes into; the other members are the caller's. */
static union {
	struct sockaddr_in inet;
	struct sockaddr_un local;
} address __attribute__((aligned(64)));

enum flipped { PORT, CLOSED_PORT, LAST_BYTE, FIRST_OF_PATH };

static _Atomic enum flipped flipped;
static int listeners[SIDES];
static in_port_t ports[SIDES], closed_port;
static char folder[PATH_MAX];
static pid_t tid;
static struct race_area *area;

static void flip(struct race_area *unused, unsigned random)
{
	bool second = random & 1;

	(void)unused;
	switch (atomic_load(&flipped)) {
	case PORT:
		*(volatile in_port_t *)&address.inet.sin_port = ports[second];
		break;
	case CLOSED_PORT:
		*(volatile in_port_t *)&address.inet.sin_port = second ? closed_port : ports[0];
		break;
	case LAST_BYTE:
		((volatile unsigned char *)&address.inet.sin_addr)[3] = second ? 2 : 1;
		break;
	case FIRST_OF_PATH:
		*(volatile char *)address.local.sun_path = second ? 'b' : 'a';
		break;
	}
}

/* From now on the thread writes to this place only. What is there is its first choice: 0 stands for none yet. */
static void race_for(enum flipped what, sa_family_t family, in_port_t port)
{
	atomic_store(&flipped, what);
	/* A store to the former place may have been under way: it is over when the next one is. */
	race_let_flip(area);
	race_let_flip(area);
	memset(&address, 0, sizeof(address));
	address.inet.sin_family = family;
	if (family == AF_INET) {
		address.inet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		address.inet.sin_port = port;
	}
}

static int new_socket(int family, int type)
{
	int fd = socket(family, type | SOCK_CLOEXEC, 0);

	if (fd < 0)
		race_die("socket");
	return fd;
}

static int new_listener(in_port_t *port)
{
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(own);
	int fd = new_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK);

	if (bind(fd, (struct sockaddr *)&own, sizeof(own)) != 0 || listen(fd, BACKLOG) != 0 ||
	    getsockname(fd, (struct sockaddr *)&own, &size) != 0)
		race_die("listener");
	*port = own.sin_port;
	return fd;
}

/* The connection ends at once, and its port does not have to rest. */
static void close_hard(int fd)
{
	struct linger none = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	close(fd);
}

/* The listener that has a connection of ours: it tells by our port. */
static int accepted_by(int fd)
{
	struct sockaddr_in own = {0}, peer = {0};
	socklen_t size = sizeof(own);

	if (getsockname(fd, (struct sockaddr *)&own, &size) != 0)
		race_die("getsockname");
	for (int i = 0; i < SIDES; i++) {
		size = sizeof(peer);
		int other = accept4(listeners[i], (struct sockaddr *)&peer, &size, SOCK_CLOEXEC);
		if (other < 0)
			continue;
		close_hard(other);
		if (peer.sin_port != own.sin_port)
			race_die("a stranger's connection");
		return i;
	}
	race_die("accepted by nobody");
}

static void say_peer(const char *call, const char *outcome, int error, in_port_t port, unsigned last)
{
	race_begin(call, "connect", tid, outcome, error);
	race_is("peer.port", "%u", ntohs(port));
	race_is("peer.address", "\"127.0.0.%u\"", last);
	race_end();
}

static void call_connect(long number)
{
	int fd = new_socket(AF_INET, SOCK_STREAM);

	(void)number;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address.inet)) != 0)
		race_die("connect");
	int side = accepted_by(fd);
	close_hard(fd);
	say_peer("connect", side ? "b" : "a", 0, ports[side], 1);
}

static void call_connect_closed(long number)
{
	int fd = new_socket(AF_INET, SOCK_STREAM);
	bool good = connect(fd, (struct sockaddr *)&address, sizeof(address.inet)) == 0;

	(void)number;
	if (!good && errno != ECONNREFUSED)
		race_die("connect closed");
	if (good && accepted_by(fd) != 0)
		race_die("accepted by the wrong one");
	close_hard(fd);
	say_peer("connect closed", good ? "open" : "closed", good ? 0 : ECONNREFUSED, good ? ports[0] : closed_port, 1);
}

static void call_connect_datagram(long number)
{
	struct sockaddr_in peer = {0};
	socklen_t size = sizeof(peer);
	int fd = new_socket(AF_INET, SOCK_DGRAM);

	(void)number;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address.inet)) != 0 ||
	    getpeername(fd, (struct sockaddr *)&peer, &size) != 0)
		race_die("connect udp");
	close(fd);
	unsigned last = ntohl(peer.sin_addr.s_addr) & 0xff;
	say_peer("connect udp", last == 1 ? "a" : "b", 0, peer.sin_port, last);
}

static void call_bind(long number)
{
	struct sockaddr_in own = {0};
	socklen_t size = sizeof(own);
	int fd = new_socket(AF_INET, SOCK_STREAM);

	(void)number;
	if (bind(fd, (struct sockaddr *)&address, sizeof(address.inet)) != 0 ||
	    getsockname(fd, (struct sockaddr *)&own, &size) != 0)
		race_die("bind");
	close(fd);
	unsigned last = ntohl(own.sin_addr.s_addr) & 0xff;
	race_begin("bind", "bind", tid, last == 1 ? "a" : "b", 0);
	race_is("local.address", "\"127.0.0.%u\"", last);
	race_end();
}

static void call_bind_unix(long number)
{
	struct stat found;
	char first[TEXT], second[TEXT];
	int fd = new_socket(AF_UNIX, SOCK_STREAM);

	snprintf(first, sizeof(first), "/u%ld", number);
	memcpy(address.local.sun_path + 1, first, strlen(first) + 1);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address.local)) != 0)
		race_die("bind unix");
	close(fd);
	snprintf(first, sizeof(first), "a/u%ld", number);
	snprintf(second, sizeof(second), "b/u%ld", number);
	const char *made = stat(first, &found) == 0 ? first : stat(second, &found) == 0 ? second : NULL;
	if (!made)
		race_die("no socket");
	race_begin("bind unix", "bind", tid, made == first ? "a" : "b", 0);
	race_is("local.path", "[\"%s\",\"%s/%s\"]", made, folder, made);
	race_is("local.object.path?", "\"%s/%s\"", folder, made);
	race_is("local.object.ino?", "\"%llu\"", (unsigned long long)found.st_ino);
	race_end();
}

static void *make_calls(void *given)
{
	static const struct {
		void (*make)(long number);
		enum flipped flipped;
		sa_family_t family;
		in_port_t port;
	} calls[CALLS] = {
	    {call_connect, PORT, AF_INET, 0},
	    {call_connect_closed, CLOSED_PORT, AF_INET, 0},
	    {call_connect_datagram, LAST_BYTE, AF_INET, 9},
	    {call_bind, LAST_BYTE, AF_INET, 0},
	    {call_bind_unix, FIRST_OF_PATH, AF_UNIX, 0},
	};
	long each = *(const long *)given;

	tid = gettid();
	for (int i = 0; i < CALLS; i++) {
		race_for(calls[i].flipped, calls[i].family, htons(calls[i].port));
		for (long number = 0; number < each; number++) {
			race_pace(area, number);
			calls[i].make(number);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t caller;

	if (argc != 3)
		return 64;
	long each = (race_number(argv[2]) + CALLS - 1) / CALLS;
	if (!getcwd(folder, sizeof(folder)) || mkdir("a", 0755) != 0 || mkdir("b", 0755) != 0)
		race_die("folders");
	for (int i = 0; i < SIDES; i++)
		listeners[i] = new_listener(&ports[i]);
	/* Bound and not listening: refused, and nobody else's. */
	int idle = new_socket(AF_INET, SOCK_STREAM);
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(own);
	if (bind(idle, (struct sockaddr *)&own, sizeof(own)) != 0 ||
	    getsockname(idle, (struct sockaddr *)&own, &size) != 0)
		race_die("idle");
	closed_port = own.sin_port;
	area = race_map(RACE_THREAD);
	struct race_flipping flipping = {.by = RACE_THREAD, .flip = flip, .area = area};
	race_start(&flipping);
	if (pthread_create(&caller, NULL, make_calls, &each) != 0)
		race_die("pthread_create");
	pthread_join(caller, NULL);
	race_stop(&flipping);
	return 0;
}
