/*
 * Messages with descriptors, sent and received; what came is said and closed again.
 */
#pragma once

#include <sys/socket.h>
#include <sys/time.h>

#include "equal.h"

#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76
#endif

enum { ROOM = 512, SENT_AFTER_MS = 150, WAITED_MS = 100 };

struct parcel {
	_Alignas(struct cmsghdr) char control[ROOM];
	char data[64];
	struct iovec part;
	struct mmsghdr message;
};

static inline void prepare(struct parcel *parcel, size_t size, size_t room)
{
	*parcel = (struct parcel){.part = {parcel->data, size}};
	parcel->message.msg_hdr = (struct msghdr){
	    .msg_iov = &parcel->part, .msg_iovlen = 1, .msg_control = parcel->control, .msg_controllen = room};
}

static inline void send_them(int fd, const char *text, const int *passed, size_t count)
{
	_Alignas(struct cmsghdr) char control[ROOM] = {0};
	struct iovec part = {(void *)(uintptr_t)text, strlen(text)};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (count > 0) {
		struct cmsghdr *head = (struct cmsghdr *)control;
		*head = (struct cmsghdr){
		    .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(count * sizeof(int))};
		memcpy(CMSG_DATA(head), passed, count * sizeof(int));
		message.msg_control = control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
	}
	NEED(sendmsg(fd, &message, 0) == (ssize_t)part.iov_len);
}

static inline void send_one(int fd, const char *text, int passed)
{
	send_them(fd, text, &passed, 1);
}

static inline int a_file(void)
{
	int fd = open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	NEED(fd >= 0);
	return fd;
}

/* With a new file, which is ours no more. */
static inline void send_file(int fd, const char *text)
{
	int file = a_file();

	send_one(fd, text, file);
	close(file);
}

static inline struct cmsghdr *next_control(const struct parcel *parcel, struct cmsghdr *entry)
{
	struct msghdr *message = (struct msghdr *)(uintptr_t)&parcel->message.msg_hdr;

	return entry ? CMSG_NXTHDR(message, entry) : CMSG_FIRSTHDR(message);
}

static inline size_t numbers_of(const struct cmsghdr *entry, int *numbers, size_t most)
{
	size_t count = (entry->cmsg_len - CMSG_LEN(0)) / sizeof(int);

	NEED(count <= most);
	memcpy(numbers, CMSG_DATA(entry), count * sizeof(int));
	return count;
}

static inline void say_control(const struct cmsghdr *entry)
{
	int numbers[ROOM / sizeof(int)];

	if (entry->cmsg_type == SCM_CREDENTIALS && entry->cmsg_len == CMSG_LEN(sizeof(struct ucred))) {
		struct ucred from;
		memcpy(&from, CMSG_DATA(entry), sizeof(from));
		say("  from us: %d, from the parent: %d, from none: %d, uid %u gid %u", from.pid == getpid(),
		    from.pid == getppid(), from.pid == 0, from.uid, from.gid);
		return;
	}
	size_t count = numbers_of(entry, numbers, ROOM / sizeof(int));
	say("  control %d with %zu", entry->cmsg_type, count);
	for (size_t i = 0; i < count && entry->cmsg_type != SCM_CREDENTIALS; i++) {
		say("  descriptor %d", numbers[i]);
		if (entry->cmsg_type == SCM_RIGHTS)
			facts(numbers[i]);
	}
}

static inline void say_parcel(const struct parcel *parcel, size_t size)
{
	const struct msghdr *message = &parcel->message.msg_hdr;

	say("  \"%s\" flags %#x name %u control %zu", escaped(parcel->data, size), (unsigned)message->msg_flags,
	    message->msg_namelen, message->msg_controllen);
	for (struct cmsghdr *entry = next_control(parcel, NULL); entry; entry = next_control(parcel, entry))
		say_control(entry);
}

/* All that it brought. */
static inline void close_all(const struct parcel *parcel)
{
	int numbers[ROOM / sizeof(int)];

	for (struct cmsghdr *entry = next_control(parcel, NULL); entry; entry = next_control(parcel, entry)) {
		size_t count = entry->cmsg_type == SCM_RIGHTS ? numbers_of(entry, numbers, ROOM / sizeof(int)) : 0;
		for (size_t i = 0; i < count; i++)
			NEED(close(numbers[i]) == 0);
	}
}

static inline long take_up_to(int fd, size_t size, size_t room, int flags, const char *label)
{
	struct parcel parcel;

	prepare(&parcel, size, room);
	long result = step(recvmsg(fd, &parcel.message.msg_hdr, flags), "%s", label);
	if (result >= 0) {
		say_parcel(&parcel, (size_t)result < size ? (size_t)result : size);
		close_all(&parcel);
	}
	return result;
}

static inline long take(int fd, int flags, const char *label)
{
	return take_up_to(fd, sizeof(((struct parcel *)0)->data), ROOM, flags, label);
}

static inline long take_many(int fd, int flags, const char *label)
{
	struct parcel parcel;

	prepare(&parcel, sizeof(parcel.data), ROOM);
	long result = step(recvmmsg(fd, &parcel.message, 1, flags, NULL), "%s", label);
	if (result > 0) {
		say_parcel(&parcel, parcel.message.msg_len);
		close_all(&parcel);
	}
	return result;
}

static inline void connected(int pair[2], int type)
{
	NEED(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) == 0);
}

static inline void disconnect(const int pair[2])
{
	NEED(close(pair[0]) == 0 && close(pair[1]) == 0);
}

/* Somebody who sends a file after a while. */
static inline pid_t sender_after(int fd, long milliseconds, const char *text)
{
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid > 0)
		return pid;
	pause_ms(milliseconds);
	send_file(fd, text);
	_exit(0);
}
