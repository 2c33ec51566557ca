/*
 * One message, sent by whichever of the calls a row names.
 */
#pragma once

#include "row_net.h"

struct letter {
	int fd;
	struct sockaddr_storage address;
	socklen_t size; /* of the address; 0: none */
	const char *data;
	size_t length;
	int flags;
	const char *flag_names;
	const int *passed; /* descriptors to pass, or NULL */
	size_t passed_count;
	bool apart;     /* each under a header of its own */
	size_t padding; /* bytes of headers for nobody in front of them */
};

enum { CONTROL = 80000, PAD_LEVEL = 0x7777 };

static void put_header(char **at, int level, const int *fds, size_t bytes)
{
	struct cmsghdr head = {.cmsg_level = level, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(bytes)};

	memset(*at, 0, CMSG_SPACE(bytes));
	memcpy(*at, &head, sizeof(head));
	if (fds)
		memcpy(*at + CMSG_LEN(0), fds, bytes);
	*at += CMSG_SPACE(bytes);
}

__attribute__((unused)) static void fill(struct msghdr *message, struct iovec *part, struct letter *letter,
					 char control[CONTROL])
{
	*part = (struct iovec){(void *)(uintptr_t)letter->data, letter->length};
	*message = (struct msghdr){.msg_iov = part, .msg_iovlen = 1};
	if (letter->size) {
		message->msg_name = &letter->address;
		message->msg_namelen = letter->size;
	}
	if (!letter->passed)
		return;
	char *at = control;
	if (letter->padding) {
		/* A level that no kernel knows is passed over. */
		put_header(&at, PAD_LEVEL, NULL, CMSG_ALIGN(letter->padding));
	}
	size_t each = letter->apart ? 1 : letter->passed_count;
	for (size_t i = 0; i < letter->passed_count; i += each)
		put_header(&at, SOL_SOCKET, letter->passed + i, each * sizeof(int));
	message->msg_control = control;
	message->msg_controllen = (size_t)(at - control);
}

static long post(const char *row, struct letter *letter)
{
	static _Alignas(struct cmsghdr) char control[CONTROL];
	struct mmsghdr message = {0};
	struct iovec part;

	if (strcmp(row, "sendto") == 0)
		return syscall(SYS_sendto, letter->fd, letter->data, letter->length, letter->flags,
			       letter->size ? &letter->address : NULL, letter->size);
	fill(&message.msg_hdr, &part, letter, control);
	if (strcmp(row, "sendmsg") == 0)
		return syscall(SYS_sendmsg, letter->fd, &message.msg_hdr, letter->flags);
	return syscall(SYS_sendmmsg, letter->fd, &message, 1, letter->flags);
}

/* Sends, and begins the line; the caller adds the peer and ends it. */
__attribute__((unused)) static long begin(const char *row, const char *kind, struct letter *letter)
{
	long result = post(row, letter);

	row_expect(row, kind, result);
	row_number("args.sockfd", letter->fd);
	if (strcmp(row, "sendto") == 0)
		row_number("args.size", (long)letter->length);
	if (strcmp(row, "sendmmsg") == 0) {
		row_number("args.message", 0);
		row_number("args.vlen", 1);
	}
	row_json("flags", letter->flag_names ? letter->flag_names : "[]");
	return result;
}

__attribute__((unused)) static struct letter write_letter(int fd, const char *text)
{
	return (struct letter){.fd = fd, .data = text, .length = strlen(text)};
}

__attribute__((unused)) static void address_to(struct letter *letter, const void *address, size_t size)
{
	memcpy(&letter->address, address, size);
	letter->size = (socklen_t)size;
}
