/*
 * connect_calls NAME...: connections on the loopback interface.
 */
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/un.h>

#include "connect_calls.h"

enum { PAGE = 4096, ROUNDS = 200, SHARED_FD = 60 };

static void blocking(void)
{
	int server = bound(SOCK_STREAM, 8), closed = closed_port();
	int fd = new_socket(SOCK_STREAM);

	tell_port("blocking", port_of(server));
	tell_port("blocking-refused", closed);
	say("to a listener", connect_port(fd, port_of(server)));
	say_state("afterwards", fd);
	int taken = accept(server, NULL, NULL);
	char text[4] = "";
	MUST(write(fd, "hi", 3) == 3 && read(taken, text, 3) == 3);
	say("again", connect_port(fd, port_of(server)));
	say("a listener itself", connect_port(server, port_of(server)));
	fd = new_socket(SOCK_STREAM);
	MUST(fcntl(fd, F_SETFL, O_ASYNC) == 0);
	say("to a closed port", connect_port(fd, closed));
	say_state("afterwards", fd);
	say("the same socket to a listener", connect_port(fd, port_of(server)));
	say_state("afterwards", fd);
	fd = new_socket(SOCK_STREAM);
	struct sockaddr_in nowhere = address_of(1);
	nowhere.sin_addr.s_addr = htonl(INADDR_BROADCAST);
	say("to everybody", connect_to(fd, &nowhere, sizeof(nowhere)));
	int on = 1;
	fd = new_socket(SOCK_STREAM);
	MUST(setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof(on)) == 0);
	say("fast open", connect_port(fd, port_of(server)));
	say("its first data", send(fd, "x", 1, 0) - 1);
}

static void without_waiting(void)
{
	int server = bound(SOCK_STREAM, 8), closed = closed_port();
	int fd = new_socket(SOCK_STREAM | SOCK_NONBLOCK);

	tell_port("nonblocking", port_of(server));
	tell_port("nonblocking-refused", closed);
	say("to a listener", connect_port(fd, port_of(server)));
	wait_writable(fd);
	say_state("afterwards", fd);
	say("again", connect_port(fd, port_of(server)));
	say("and again", connect_port(fd, port_of(server)));
	fd = new_socket(SOCK_STREAM | SOCK_NONBLOCK);
	say("to a closed port", connect_port(fd, closed));
	wait_writable(fd);
	say_state("its error is there", fd);
	say_state("once", fd);
	fd = new_socket(SOCK_STREAM | SOCK_NONBLOCK);
	say("to a closed port", connect_port(fd, closed));
	say("which the next call says", connect_port(fd, closed));
	say_state("afterwards", fd);
}

static void six(void)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int server = socket(AF_INET6, SOCK_STREAM, 0), fd = socket(AF_INET6, SOCK_STREAM, 0);
	int other = socket(AF_INET6, SOCK_STREAM, 0), late = socket(AF_INET6, SOCK_STREAM, 0);

	if (server < 0 || bind(server, (struct sockaddr *)&address, sizeof(address)) != 0) {
		puts("no IPv6");
		return;
	}
	MUST(listen(server, 4) == 0);
	address.sin6_port = htons((uint16_t)port_of(server));
	tell_port("six", port_of(server));
	say("to a listener", connect_to(fd, &address, sizeof(address)));
	say_state("afterwards", fd);
	say("as old programs do", connect_to(other, &address, offsetof(struct sockaddr_in6, sin6_scope_id)));
	say("IPv4 on it", connect_port(late, port_of(server)));
	close(server);
	say("to nobody", connect_to(late, &address, sizeof(address)));
}

static void datagrams(void)
{
	int server = bound(SOCK_DGRAM, 0), fd = new_socket(SOCK_DGRAM);
	struct sockaddr nobody = {.sa_family = AF_UNSPEC};
	struct sockaddr_in everybody = address_of(9);

	tell_port("udp", port_of(server));
	say("connected", connect_port(fd, port_of(server)));
	printf("to the right one: %d\n", peer_port(fd) == port_of(server));
	say("dissolved", connect_to(fd, &nobody, sizeof(nobody)));
	say_state("afterwards", fd);
	everybody.sin_addr.s_addr = htonl(INADDR_BROADCAST);
	say("to everybody", connect_to(fd, &everybody, sizeof(everybody)));
	/* Of streams as well. */
	server = bound(SOCK_STREAM, 4);
	fd = new_socket(SOCK_STREAM);
	tell_port("dissolved", port_of(server));
	MUST(connect_port(fd, port_of(server)) == 0);
	say("a stream dissolved", connect_to(fd, &nobody, sizeof(nobody)));
	say_state("afterwards", fd);
	say("and made again", connect_port(fd, port_of(server)));
}

static void lengths(void)
{
	static const long sizes[] = {0, 1, 2, 8, 15, 16, 17, 28, 127, 128, 129, 1L << 20, -1, 0x100000010L};
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM};
	union {
		struct sockaddr_in in;
		char room[PAGE];
	} address = {.in = address_of(closed_port())};
	char what[64];

	for (size_t t = 0; t < 2; t++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			snprintf(what, sizeof(what), "type %d, %ld bytes", types[t], sizes[i]);
			say(what, connect_to(new_socket(types[t]), &address, sizes[i]));
			snprintf(what, sizeof(what), "type %d, %ld bytes, bound", types[t], sizes[i]);
			struct sockaddr_in any = address_of(0);
			union {
				struct sockaddr_in in;
				char room[PAGE];
			} own = {.in = any};
			say(what, syscall(SYS_bind, new_socket(types[t]), &own, sizes[i]));
		}
	for (int family = 0; family < 48; family++) {
		snprintf(what, sizeof(what), "family %d", family);
		address.in.sin_family = (sa_family_t)family;
		say(what, connect_to(new_socket(SOCK_STREAM), &address, sizeof(struct sockaddr_in6)));
		say(what, connect_to(new_socket(SOCK_DGRAM), &address, sizeof(struct sockaddr_in6)));
	}
}

static void pointers(void)
{
	struct sockaddr_in address = address_of(closed_port());
	char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ends[2];

	MUST(pages != MAP_FAILED && munmap(pages + PAGE, PAGE) == 0 && pipe(ends) == 0);
	char *tail = memcpy(pages + PAGE - sizeof(address), &address, sizeof(address));
	say("no address", connect_to(new_socket(SOCK_STREAM), NULL, sizeof(address)));
	say("no address of no length", connect_to(new_socket(SOCK_STREAM), NULL, 0));
	say("a bad one", connect_to(new_socket(SOCK_STREAM), (void *)1, sizeof(address)));
	say("a bad one, too long", connect_to(new_socket(SOCK_STREAM), (void *)1, 500));
	say("at the end of memory", connect_to(new_socket(SOCK_STREAM), tail, sizeof(address)));
	say("beyond it", connect_to(new_socket(SOCK_STREAM), tail, sizeof(address) + 1));
	say("too long beyond it", connect_to(new_socket(SOCK_STREAM), tail, 129));
	say("no descriptor", connect_to(1000, &address, sizeof(address)));
	say("-1", connect_to(-1, &address, sizeof(address)));
	say("no socket", connect_to(ends[0], &address, sizeof(address)));
	int path = open("/", O_PATH | O_CLOEXEC);
	say("a path", connect_to(path, &address, sizeof(address)));
	say("bad address bound", syscall(SYS_bind, new_socket(SOCK_STREAM), 1, sizeof(address)));
	say("no descriptor bound", syscall(SYS_bind, 1000, &address, sizeof(address)));
	say("no socket bound", syscall(SYS_bind, ends[0], &address, sizeof(address)));
}

/* Who is at the other end of a Unix socket is the caller, not whoever makes the call for it. */
static void credentials(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "credentials"};
	int server = socket(AF_UNIX, SOCK_STREAM, 0), fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct ucred who;
	socklen_t size = sizeof(who);

	say("bound", bind(server, (struct sockaddr *)&address, sizeof(address)));
	MUST(listen(server, 1) == 0);
	say("connected", connect_to(fd, &address, sizeof(address)));
	MUST(getsockopt(accept(server, NULL, NULL), SOL_SOCKET, SO_PEERCRED, &who, &size) == 0);
	printf("it is us: %d\n", who.pid == getpid() && who.uid == geteuid() && who.gid == getegid());
}

/* A thread with descriptors of its own: the same number is another socket there. */
static void *in_own_table(void *argument)
{
	MUST(unshare(CLONE_FILES) == 0 && dup2(new_socket(SOCK_STREAM), SHARED_FD) == SHARED_FD);
	say("in the thread", connect_port(SHARED_FD, *(int *)argument));
	printf("its own socket: %d\n", peer_port(SHARED_FD) == *(int *)argument);
	return NULL;
}

static void own_table(void)
{
	int port = port_of(bound(SOCK_STREAM, 4));
	pthread_t thread;

	MUST(dup2(new_socket(SOCK_STREAM), SHARED_FD) == SHARED_FD);
	MUST(pthread_create(&thread, NULL, in_own_table, &port) == 0 && pthread_join(thread, NULL) == 0);
	say_state("the other socket", SHARED_FD);
}

/* Where the connections led and what was bound, while a second thread changes the address. */
static struct sockaddr_in changing;
static atomic_bool done;

static void *change(void *argument)
{
	const int *ports = argument;

	for (unsigned i = 0; !atomic_load(&done); i++)
		*(volatile in_port_t *)&changing.sin_port = htons((uint16_t)ports[i % 2]);
	return NULL;
}

static void race(void)
{
	int servers[] = {bound(SOCK_STREAM, ROUNDS), bound(SOCK_STREAM, ROUNDS)};
	int ports[] = {port_of(servers[0]), port_of(servers[1])};
	pthread_t thread;

	changing = address_of(ports[0]);
	MUST(pthread_create(&thread, NULL, change, ports) == 0);
	for (int i = 0; i < ROUNDS; i++) {
		int fd = new_socket(SOCK_STREAM);
		MUST(connect_to(fd, &changing, sizeof(changing)) == 0);
		tell_port("connected", peer_port(fd));
		close(fd);
	}
	close(servers[0]);
	close(servers[1]);
	for (int i = 0; i < ROUNDS; i++) {
		int fd = new_socket(SOCK_DGRAM);
		MUST(syscall(SYS_bind, fd, &changing, sizeof(changing)) == 0);
		tell_port("bound", port_of(fd));
		close(fd);
	}
	atomic_store(&done, true);
	MUST(pthread_join(thread, NULL) == 0);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {{"blocking", blocking},
		     {"without_waiting", without_waiting},
		     {"six", six},
		     {"datagrams", datagrams},
		     {"lengths", lengths},
		     {"pointers", pointers},
		     {"credentials", credentials},
		     {"own_table", own_table},
		     {"race", race}};

	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(40);
	signal(SIGIO, SIG_IGN);
	for (int i = 1; i < argc; i++)
		for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
			if (strcmp(cases[c].name, argv[i]) == 0)
				cases[c].run();
	return 0;
}
