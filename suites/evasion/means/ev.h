/*
 * What the programs in this folder share. Each makes an effect by one means, and says on standard output what it really
 * did: a line `did VERB DETAIL...` for each thing. `name~value` in it differs from run to run, `name=value` must not;
 * the row finds either as {name}. Each runs in a fresh folder, which is also EV_DIR.
 */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EV_SKIP = 77, EV_LINE = 1024 };

#define EV_UNUSED __attribute__((unused))

/* One write a line, at once: several processes may be talking, and some are replaced. */
EV_UNUSED __attribute__((format(printf, 1, 2))) static void did(const char *format, ...)
{
	char line[EV_LINE] = "did ";
	va_list arguments;

	va_start(arguments, format);
	int size = vsnprintf(line + 4, sizeof(line) - 5, format, arguments);
	va_end(arguments);
	if (size < 0 || size >= (int)sizeof(line) - 5)
		_exit(1);
	line[size + 4] = '\n';
	if (write(STDOUT_FILENO, line, (size_t)size + 5) != size + 5)
		_exit(1);
}

EV_UNUSED __attribute__((noreturn)) static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	_exit(1);
}

/* The host cannot do it. */
EV_UNUSED __attribute__((noreturn)) static void skip(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	_exit(EV_SKIP);
}

#define MUST(condition)                  \
	do {                             \
		if (!(condition))        \
			die(#condition); \
	} while (0)

EV_UNUSED static const char *error_name(int error)
{
	const char *name = strerrorname_np(error);

	return name ? name : "?";
}

EV_UNUSED static const char *ev_env(const char *name)
{
	const char *value = getenv(name);

	if (!value) {
		fprintf(stderr, "%s is not set\n", name);
		_exit(1);
	}
	return value;
}

EV_UNUSED static int ev_env_number(const char *name)
{
	return (int)strtol(ev_env(name), NULL, 10);
}

EV_UNUSED static void make_file(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	MUST(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

EV_UNUSED static void put_text(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CLOEXEC);

	MUST(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

EV_UNUSED static long size_of(const char *name)
{
	struct stat status;

	return stat(name, &status) == 0 ? (long)status.st_size : -1L;
}

/* Whether a race has to go on: until each side has won a few times. On a busy machine one of them may wait long. */
EV_UNUSED static bool undecided(int round, int least, int wins)
{
	enum { FEW = 20, MOST = 60 };
	bool both = wins >= FEW && round - wins >= FEW;

	if (round >= least && !both)
		usleep(200);
	return round < least || (!both && round < MOST * least);
}

EV_UNUSED static void pause_ms(long milliseconds)
{
	struct timespec rest = {milliseconds / 1000, milliseconds % 1000 * 1000000};

	while (nanosleep(&rest, &rest) != 0 && errno == EINTR)
		;
}

/* The exit status of a child, or 256 and its signal. */
EV_UNUSED static int join(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		MUST(errno == EINTR);
	return WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
}

EV_UNUSED static struct sockaddr_in loopback(int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

/* A socket at a port of 127.0.0.1 that the kernel chose; listening if it is of a kind that can. */
EV_UNUSED static int serve(int type, int *port)
{
	struct sockaddr_in address = loopback(0);
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	MUST(fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0);
	MUST(getsockname(fd, (struct sockaddr *)&address, &size) == 0);
	if (type == SOCK_STREAM)
		MUST(listen(fd, 1024) == 0);
	*port = ntohs(address.sin_port);
	return fd;
}

/* What has come for a socket of serve(): connections or datagrams. */
EV_UNUSED static int arrived(int fd, int type, int wait_ms)
{
	int count = 0;
	char byte[2048];
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	while (poll(&ready, 1, wait_ms) == 1) {
		int one = type == SOCK_STREAM ? accept(fd, NULL, NULL) : -1;
		if (type == SOCK_STREAM) {
			MUST(one >= 0);
			close(one);
		} else if (recv(fd, byte, sizeof(byte), 0) < 0) {
			break;
		}
		count++;
	}
	return count;
}

/* Connect to the helper outside the tree (outside.py). */
EV_UNUSED static int outside(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *name = ev_env("EV_OUTSIDE");
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	MUST(fd >= 0 && strlen(name) < sizeof(address.sun_path) - 1);
	memcpy(address.sun_path + 1, name, strlen(name));
	MUST(connect(fd, (struct sockaddr *)&address,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))) == 0);
	return fd;
}

/* Give an order to the helper, with a descriptor or -1; its answer is in `answer`, and its descriptor is returned. */
EV_UNUSED static int ask_with(int fd, const char *order, int passed, char *answer, size_t size)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec out = {.iov_base = (char *)(uintptr_t)order, .iov_len = strlen(order)};
	struct msghdr message = {.msg_iov = &out, .msg_iovlen = 1};
	int received = -1;

	if (passed >= 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &passed, sizeof(passed));
	}
	MUST(sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)out.iov_len);
	struct iovec in = {.iov_base = answer, .iov_len = size - 1};
	struct msghdr reply = {
	    .msg_iov = &in, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
	ssize_t got = recvmsg(fd, &reply, MSG_CMSG_CLOEXEC);
	MUST(got > 0);
	answer[got] = 0;
	answer[strcspn(answer, "\n")] = 0;
	struct cmsghdr *head = CMSG_FIRSTHDR(&reply);
	if (head && head->cmsg_type == SCM_RIGHTS)
		memcpy(&received, CMSG_DATA(head), sizeof(received));
	return received;
}

/* New namespaces, in a user namespace of our own when we are not root: there we are root, too. */
EV_UNUSED static void space(int flags)
{
	char map[64];
	unsigned user = geteuid(), group = getegid();

	if (syscall(SYS_unshare, flags | (user ? 0x10000000 /* CLONE_NEWUSER */ : 0)) != 0)
		skip("namespaces");
	if (user) {
		put_text("/proc/self/setgroups", "deny");
		snprintf(map, sizeof(map), "0 %u 1", user);
		put_text("/proc/self/uid_map", map);
		snprintf(map, sizeof(map), "0 %u 1", group);
		put_text("/proc/self/gid_map", map);
	}
}
