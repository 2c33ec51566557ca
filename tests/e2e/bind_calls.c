/*
 * bind_calls all|race: addresses taken by sockets, and refused to them. What is printed must be the same whoever
 * watches; ports and names that the kernel chose go to descriptor 3.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum { TOLD_FD = 3, PRIVILEGED = 81, ROUNDS = 200 };

static long say(const char *what, long result)
{
	printf("%s: %s\n", what, result == -1 ? strerrorname_np(errno) : "ok");
	return result;
}

static long say_inet(const char *what, int fd, sa_family_t family, const char *host, int port)
{
	struct sockaddr_in address = {.sin_family = family, .sin_port = htons((uint16_t)port)};

	(void)inet_pton(AF_INET, host, &address.sin_addr);
	return say(what, syscall(SYS_bind, fd, &address, sizeof(address)));
}

static int port_of(int fd)
{
	struct sockaddr_in6 address = {0};
	socklen_t size = sizeof(address);

	(void)getsockname(fd, (struct sockaddr *)&address, &size);
	return ntohs(address.sin6_port);
}

static void internet(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), six = socket(AF_INET6, SOCK_DGRAM, 0);
	struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};

	say_inet("any port", fd, AF_INET, "127.0.0.1", 0);
	dprintf(TOLD_FD, "any %d\n", port_of(fd));
	say_inet("bound already", fd, AF_INET, "127.0.0.1", 0);
	say_inet("in use", socket(AF_INET, SOCK_STREAM, 0), AF_INET, "127.0.0.1", port_of(fd));
	say_inet("a datagram socket", socket(AF_INET, SOCK_DGRAM, 0), AF_INET, "127.0.0.1", port_of(fd));
	say_inet("no family", socket(AF_INET, SOCK_STREAM, 0), AF_UNSPEC, "0.0.0.0", 0);
	say_inet("no family but an address", socket(AF_INET, SOCK_STREAM, 0), AF_UNSPEC, "127.0.0.1", 0);
	say_inet("another family", socket(AF_INET, SOCK_STREAM, 0), AF_UNIX, "127.0.0.1", 0);
	say_inet("not ours", socket(AF_INET, SOCK_STREAM, 0), AF_INET, "192.0.2.1", 0);
	say_inet("privileged", socket(AF_INET, SOCK_STREAM, 0), AF_INET, "127.0.0.1", PRIVILEGED);
	if (six < 0)
		puts("no IPv6");
	else
		say("IPv6", syscall(SYS_bind, six, &address, sizeof(address)));
}

static void say_unix(const char *what, int fd, const char *name, size_t length)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	memcpy(address.sun_path, name, length);
	say(what, syscall(SYS_bind, fd, &address, offsetof(struct sockaddr_un, sun_path) + length));
}

static void names(void)
{
	struct sockaddr_un address;
	socklen_t size = sizeof(address);
	struct stat status;
	char name[64] = "", full[sizeof(address.sun_path)];
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	say_unix("a name of the kernel's choice", fd, "", 0);
	if (getsockname(fd, (struct sockaddr *)&address, &size) == 0)
		dprintf(TOLD_FD, "chosen @%.*s\n", (int)(size - offsetof(struct sockaddr_un, sun_path) - 1),
			address.sun_path + 1);
	printf("its length: %u\n", size);
	int length = snprintf(name + 1, sizeof(name) - 1, "assure-bind-%d", getpid()) + 1;
	dprintf(TOLD_FD, "abstract @%s\n", name + 1);
	say_unix("abstract", socket(AF_UNIX, SOCK_STREAM, 0), name, (size_t)length);
	say_unix("abstract, in use", socket(AF_UNIX, SOCK_STREAM, 0), name, (size_t)length);
	umask(027);
	say_unix("a file", socket(AF_UNIX, SOCK_STREAM, 0), "file", 5);
	printf("its mode: %o\n", stat("file", &status) == 0 ? status.st_mode & 07777u : 0);
	say_unix("the same", socket(AF_UNIX, SOCK_STREAM, 0), "file", 5);
	say_unix("without its NUL", socket(AF_UNIX, SOCK_STREAM, 0), "other", 5);
	say_unix("nowhere", socket(AF_UNIX, SOCK_STREAM, 0), "absent/file", 12);
	memset(full, 'f', sizeof(full));
	say_unix("as long as may be", socket(AF_UNIX, SOCK_STREAM, 0), full, sizeof(full));
	say("no length", syscall(SYS_bind, socket(AF_UNIX, SOCK_STREAM, 0), &address, 0));
	say("too long", syscall(SYS_bind, socket(AF_UNIX, SOCK_STREAM, 0), &address, sizeof(address) + 1));
}

static struct sockaddr_un changing = {.sun_family = AF_UNIX, .sun_path = "one"};
static atomic_bool done;

static void *change(void *unused)
{
	(void)unused;
	for (unsigned i = 0; !atomic_load(&done); i++)
		*(volatile char *)&changing.sun_path[0] = i % 2 ? 'o' : 'a';
	return NULL;
}

/* The names that sockets got, while a second thread changes what they are to get. */
static int race(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, change, NULL) != 0)
		return 1;
	for (int i = 0; i < ROUNDS; i++) {
		struct sockaddr_un address = {0};
		socklen_t size = sizeof(address);
		int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
		if (syscall(SYS_bind, fd, &changing, sizeof(changing)) != 0 ||
		    getsockname(fd, (struct sockaddr *)&address, &size) != 0)
			return 1;
		dprintf(TOLD_FD, "made %s\n", address.sun_path);
		unlink(address.sun_path);
		close(fd);
	}
	atomic_store(&done, true);
	return pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1 && strcmp(argv[1], "race") == 0)
		return race();
	internet();
	names();
	return 0;
}
