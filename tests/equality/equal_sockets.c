/*
 * Sockets that are given an address and connected: names in the file system, ports, who the peer sees, and what is left
 * on the socket afterwards. Internet addresses are in a network namespace of the case's own, where that can be had.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "equal.h"

static int unix_socket(int type)
{
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	NEED(fd >= 0);
	return fd;
}

static long bind_unix(int fd, const char *path, size_t size)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	memcpy(address.sun_path, path, size);
	return bind(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size));
}

static long connect_unix(int fd, const char *path, size_t size)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	memcpy(address.sun_path, path, size);
	return connect(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size));
}

static void say_unix_name(int fd)
{
	struct sockaddr_un address = {0};
	socklen_t size = sizeof(address);

	NEED(getsockname(fd, (struct sockaddr *)&address, &size) == 0);
	/* Of a name without an end the kernel counts one byte more than it writes. */
	size_t length = size - offsetof(struct sockaddr_un, sun_path);
	if (length > sizeof(address.sun_path))
		length = sizeof(address.sun_path);
	say("  name of %zu bytes: %s", length, escaped(address.sun_path, length));
}

static void bind_and_say(const char *label, const char *path, size_t size)
{
	int fd = unix_socket(SOCK_STREAM);

	step(bind_unix(fd, path, size), "bind %s", label);
	say_unix_name(fd);
	close(fd);
}

static void sockets_bind_unix(void)
{
	char absolute[PATH_MAX], name[120];

	umask(027);
	bind_and_say("relative", "relative", 9);
	facts_of("relative");
	bind_and_say("again", "relative", 9);
	bind_and_say("without an end", "unended", 7);
	bind_and_say("an end and more", "short\0more", 10);
	umask(0);
	bind_and_say("umask 0", "open", 5);
	facts_of("open");
	int fd = unix_socket(SOCK_DGRAM);
	NEED(getcwd(absolute, sizeof(absolute) - 16) != NULL);
	strcat(absolute, "/absolute");
	if (strlen(absolute) < 108)
		step(bind_unix(fd, absolute, strlen(absolute) + 1), "bind absolute");
	else
		skip("the folder's path is too long for an address");
	step(bind_unix(fd, "second", 7), "bind twice");
	facts_of("absolute");
	bind_and_say("in absent", "absent/x", 9);
	bind_and_say("with a slash", "slash/", 7);
	bind_and_say("on a dot", ".", 2);
	NEED(symlink("nothing", "dangling") == 0);
	bind_and_say("on a dangling link", "dangling", 9);
	memset(name, 'n', sizeof(name));
	bind_and_say("108 bytes", name, 108);
	make_folder("read-only", 0555);
	bind_and_say("in a folder that is read-only", "read-only/x", 12);
	make_folder("sticky", 01777);
	bind_and_say("in a sticky folder", "sticky/x", 9);
	make_folder("setgid", 02755);
	bind_and_say("in a setgid folder", "setgid/x", 9);
	facts_of("setgid/x");
	snprintf(name, sizeof(name), "_equality-%d", getpid());
	size_t size = strlen(name);
	name[0] = 0;
	fd = unix_socket(SOCK_STREAM);
	step(bind_unix(fd, name, size), "bind abstract");
	step(bind_unix(unix_socket(SOCK_STREAM), name, size), "bind abstract again");
	fd = unix_socket(SOCK_STREAM);
	step(bind_unix(fd, "", 0), "bind automatic");
	struct sockaddr_un wrong = {.sun_family = AF_INET, .sun_path = "x"};
	step(bind(unix_socket(SOCK_STREAM), (struct sockaddr *)&wrong, sizeof(wrong)), "bind of a wrong family");
	step(bind(unix_socket(SOCK_STREAM), NULL, 20), "bind nowhere");
	step(bind(unix_socket(SOCK_STREAM), (struct sockaddr *)&wrong, 1), "bind too short");
	step(bind(unix_socket(SOCK_STREAM), (struct sockaddr *)&wrong, 500), "bind too long");
	step(bind(555, (struct sockaddr *)&wrong, 20), "bind a closed descriptor");
	step(bind(open("/dev/null", O_RDWR), (struct sockaddr *)&wrong, 20), "bind what is no socket");
}

static void serve(int listener, pid_t wanted)
{
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);
	int fd = accept(listener, NULL, NULL);

	NEED(fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0);
	say("  peer is the one who connected: %d uid %u gid %u", peer.pid == wanted, peer.uid, peer.gid);
	close(fd);
}

static void connect_and_end(void)
{
	int fd = unix_socket(SOCK_STREAM);

	step(connect_unix(fd, "listener", 9), "child connects");
	if (getuid() == 0) {
		NEED(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
		step(connect_unix(unix_socket(SOCK_STREAM), "private", 8), "nobody connects where it may not");
		step(connect_unix(unix_socket(SOCK_STREAM), "listener", 9), "nobody connects");
	}
}

static void sockets_peer(void)
{
	int listener = unix_socket(SOCK_STREAM), private = unix_socket(SOCK_STREAM);
	int client = unix_socket(SOCK_STREAM | SOCK_NONBLOCK), packets = unix_socket(SOCK_DGRAM);

	umask(0);
	NEED(bind_unix(listener, "listener", 9) == 0 && listen(listener, 8) == 0);
	umask(077);
	NEED(bind_unix(private, "private", 8) == 0 && listen(private, 1) == 0);
	step(connect_unix(client, "listener", 9), "connect");
	facts(client);
	serve(listener, getpid());
	step(connect_unix(client, "listener", 9), "connect again");
	pid_t pid = start_child(connect_and_end);
	join_child("child", pid);
	serve(listener, pid);
	if (getuid() == 0)
		serve(listener, pid);
	step(connect_unix(unix_socket(SOCK_STREAM), "absent", 7), "connect to nothing");
	step(connect_unix(unix_socket(SOCK_DGRAM), "listener", 9), "connect of another type");
	make_file("file", 0644, "");
	step(connect_unix(unix_socket(SOCK_STREAM), "file", 5), "connect to a file");
	close(listener);
	step(connect_unix(unix_socket(SOCK_STREAM), "listener", 9), "connect to what is closed");
	step(connect_unix(packets, "absent", 7), "packets to nothing");
	struct sockaddr none = {.sa_family = AF_UNSPEC};
	step(connect(packets, &none, sizeof(none)), "disconnect");
	step(connect(client, &none, sizeof(none)), "disconnect a stream");
}

static struct sockaddr_in loopback(unsigned port)
{
	return (struct sockaddr_in){
	    .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int internet_socket(int type)
{
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	NEED(fd >= 0);
	return fd;
}

static long bind_port(int fd, unsigned port)
{
	struct sockaddr_in address = loopback(port);

	return bind(fd, (struct sockaddr *)&address, sizeof(address));
}

static long connect_port(int fd, unsigned port)
{
	struct sockaddr_in address = loopback(port);

	return connect(fd, (struct sockaddr *)&address, sizeof(address));
}

static unsigned port_of(int fd)
{
	struct sockaddr_in address = {0};
	socklen_t size = sizeof(address);

	NEED(getsockname(fd, (struct sockaddr *)&address, &size) == 0);
	return ntohs(address.sin_port);
}

static int listener_on_any(int backlog)
{
	int fd = internet_socket(SOCK_STREAM);

	NEED(bind_port(fd, 0) == 0 && listen(fd, backlog) == 0);
	return fd;
}

static void say_socket(int fd)
{
	int error = -1;
	socklen_t size = sizeof(error);
	struct pollfd waiting = {.fd = fd, .events = POLLIN | POLLOUT};
	struct sockaddr_in peer;
	socklen_t peer_size = sizeof(peer);

	int ready = poll(&waiting, 1, 1000);
	say("  poll %d events %x", ready, (unsigned)waiting.revents);
	NEED(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0);
	say("  error %s", error ? name_of_error(error) : "none");
	step(getpeername(fd, (struct sockaddr *)&peer, &peer_size), "  peer");
	say("  getfl 0%o getfd %d", (unsigned)fcntl(fd, F_GETFL), fcntl(fd, F_GETFD));
}

static void sockets_ports(void)
{
	struct sockaddr_in wrong = loopback(0);
	int fd = internet_socket(SOCK_STREAM), other = internet_socket(SOCK_STREAM),
	    packets = internet_socket(SOCK_DGRAM);

	step(bind_port(fd, 0), "any port");
	say("given: %d", port_of(fd) > 0);
	step(bind_port(fd, 0), "twice");
	step(bind_port(other, port_of(fd)), "in use");
	step(listen(fd, 1), "listen");
	step(bind_port(other, port_of(fd)), "in use by a listener");
	step(bind_port(packets, 0), "packets");
	step(bind_port(internet_socket(SOCK_DGRAM), port_of(packets)), "packets in use");
	/* any process of the machine may have this one: in a namespace of ours nobody has */
	if (getuid() != 0 || unshare(CLONE_NEWNET) == 0)
		step(bind_port(internet_socket(SOCK_STREAM), 81), "privileged");
	wrong.sin_addr.s_addr = htonl(0x01020304);
	step(bind(internet_socket(SOCK_STREAM), (struct sockaddr *)&wrong, sizeof(wrong)), "not our address");
	wrong.sin_family = AF_INET6;
	step(bind(internet_socket(SOCK_STREAM), (struct sockaddr *)&wrong, sizeof(wrong)), "wrong family");
	step(bind(internet_socket(SOCK_STREAM), (struct sockaddr *)&wrong, 4), "short");
}

static void sockets_connect(void)
{
	int listener = listener_on_any(8), fd = internet_socket(SOCK_STREAM);
	unsigned port = port_of(listener);

	step(connect_port(fd, port), "waiting");
	say_socket(fd);
	step(connect_port(fd, port), "again");
	fd = internet_socket(SOCK_STREAM | SOCK_NONBLOCK);
	step(connect_port(fd, port), "not waiting");
	say_socket(fd);
	step(connect_port(fd, port), "once it is connected");
	step(connect_port(fd, port), "and again");
	fd = internet_socket(SOCK_STREAM);
	NEED(fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC) == 0);
	step(connect_port(fd, port), "not waiting, by fcntl");
	say_socket(fd);
	step(connect_port(listener, port), "of a listener");
	int closed_fd = listener_on_any(1);
	unsigned closed_port = port_of(closed_fd);
	NEED(close(closed_fd) == 0);
	fd = internet_socket(SOCK_STREAM);
	step(connect_port(fd, closed_port), "to nobody");
	say_socket(fd);
	step(connect_port(fd, port), "with the same socket to somebody");
	say_socket(fd);
	fd = internet_socket(SOCK_STREAM | SOCK_NONBLOCK);
	step(connect_port(fd, closed_port), "to nobody, not waiting");
	say_socket(fd);
	struct sockaddr none = {.sa_family = AF_UNSPEC};
	step(connect(fd, &none, sizeof(none)), "AF_UNSPEC");
	step(connect_port(fd, port), "afterwards");
	say_socket(fd);
	step(connect(internet_socket(SOCK_STREAM), NULL, 16), "nowhere");
	step(connect(internet_socket(SOCK_STREAM), (void *)8, 16), "bad address");
	step(connect(internet_socket(SOCK_STREAM), &none, 1), "short");
	step(connect_port(555, port), "closed descriptor");
	step(connect_port(open("/dev/null", O_RDWR), port), "no socket");
	struct sockaddr_in all = loopback(port);
	all.sin_addr.s_addr = INADDR_BROADCAST;
	step(connect(internet_socket(SOCK_STREAM), (struct sockaddr *)&all, sizeof(all)), "broadcast");
}

static void sockets_connect_packets(void)
{
	struct sockaddr none = {.sa_family = AF_UNSPEC};
	int server = internet_socket(SOCK_DGRAM), fd = internet_socket(SOCK_DGRAM);

	NEED(bind_port(server, 0) == 0);
	step(connect_port(fd, port_of(server)), "connect");
	say_socket(fd);
	step(send(fd, "x", 1, 0), "send");
	step(connect(fd, &none, sizeof(none)), "disconnect");
	step(send(fd, "x", 1, 0), "send without a peer");
	struct sockaddr_in all = loopback(9);
	all.sin_addr.s_addr = INADDR_BROADCAST;
	step(connect(fd, (struct sockaddr *)&all, sizeof(all)), "broadcast");
	int six = socket(AF_INET6, SOCK_STREAM, 0);
	struct sockaddr_in6 address = {
	    .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT, .sin6_port = htons(9)};
	if (six < 0)
		skip("no IPv6 here");
	else
		step(connect(six, (struct sockaddr *)&address, 10), "short address of IPv6");
}

static void ring_once(int number)
{
	(void)number;
}

/* A listener whose queue is full leaves a connect waiting. */
static void sockets_connect_full(void)
{
	struct sigaction action = {.sa_handler = ring_once};
	struct itimerval timer = {{0, 0}, {0, 150000}};
	int listener = listener_on_any(0), fds[4];

	for (int i = 0; i < 4; i++) {
		fds[i] = internet_socket(SOCK_STREAM | SOCK_NONBLOCK);
		connect_port(fds[i], port_of(listener));
	}
	step(connect_port(fds[3], port_of(listener)), "under way already");
	int fd = internet_socket(SOCK_STREAM);
	NEED(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &timer, NULL) == 0);
	step(connect_port(fd, port_of(listener)), "interrupted");
	say("  getfl 0%o", (unsigned)fcntl(fd, F_GETFL));
	struct timeval limit = {0, 150000};
	fd = internet_socket(SOCK_STREAM);
	NEED(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) == 0);
	step(connect_port(fd, port_of(listener)), "given up");
	step(connect_port(fd, port_of(listener)), "given up again");
}

static void accept_later(int listener)
{
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid != 0)
		return;
	pause_ms(200);
	for (int i = 0; i < 4; i++)
		NEED(accept(listener, NULL, NULL) >= 0);
	_exit(0);
}

static void sockets_connect_restarted(void)
{
	struct sigaction action = {.sa_handler = ring_once, .sa_flags = SA_RESTART};
	struct itimerval timer = {{0, 30000}, {0, 30000}};
	int listener = listener_on_any(0), fds[2];

	for (int i = 0; i < 2; i++) {
		fds[i] = internet_socket(SOCK_STREAM | SOCK_NONBLOCK);
		connect_port(fds[i], port_of(listener));
	}
	accept_later(listener);
	NEED(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &timer, NULL) == 0);
	int fd = internet_socket(SOCK_STREAM);
	step(connect_port(fd, port_of(listener)), "restarted until it is accepted");
	setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
	say_socket(fd);
}

/* The loopback of a namespace of its own, where every port is free. */
static void sockets_own_network(void)
{
	if (unshare(CLONE_NEWNET | (getuid() == 0 ? 0 : CLONE_NEWUSER)) != 0) {
		skip("no network namespace: %s", name_of_error(errno));
		return;
	}
	step(connect_port(internet_socket(SOCK_STREAM), 80), "loopback is down");
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	step(ioctl(internet_socket(SOCK_DGRAM), SIOCSIFFLAGS, &request), "up");
	int listener = internet_socket(SOCK_STREAM);
	step(bind_port(listener, 80), "privileged port");
	step(bind_port(listener, 8080), "another one");
	step(listen(listener, 4), "listen");
	step(connect_port(internet_socket(SOCK_STREAM), 80), "connect");
	step(connect_port(internet_socket(SOCK_STREAM), 8080), "connect to the other");
	struct sockaddr_in far = loopback(80);
	far.sin_addr.s_addr = htonl(0x01020304);
	step(connect(internet_socket(SOCK_STREAM), (struct sockaddr *)&far, sizeof(far)), "no way there");
}

static const struct equal_case cases[] = {
    {"sockets_bind_unix", false, sockets_bind_unix},
    {"sockets_peer", false, sockets_peer},
    {"sockets_ports", false, sockets_ports},
    {"sockets_connect", false, sockets_connect},
    {"sockets_connect_packets", false, sockets_connect_packets},
    {"sockets_connect_full", false, sockets_connect_full},
    {"sockets_connect_restarted", false, sockets_connect_restarted},
    {"sockets_own_network", false, sockets_own_network},
    {NULL},
};

int main(int argc, char **argv)
{
	return equal_main(cases, argc, argv);
}
