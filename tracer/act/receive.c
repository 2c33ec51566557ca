/*
 * recvmsg(2) on a Unix socket may bring descriptors that nobody of the tree opened. What waits on the socket is looked at
 * before the call goes on; the message stays there, and the call is the kernel's to make.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "handlers.h"
#include "os/descriptor.h"

enum {
	DESCRIPTORS = 253, /* SCM_MAX_FD */
	/* A task that stands in a notification keeps the machine from being suspended, so not for long. */
	DATA_MOST = 1 << 18,
};

/* Arguments of recvmmsg(2). */
enum { VLEN = 2, TIMEOUT = 4 };

struct received {
	int descriptors[DESCRIPTORS];
	size_t count;
	bool reaches_on; /* the message that they came with ends behind what this call reads */
};

/* Of recvmsg(2) and recvmmsg(2). */
static unsigned flags_of(const struct act *act)
{
	const struct syscall_row *row = act->decoded->row;

	for (size_t i = 0; i < SYSCALL_ARGS && row->args[i].name; i++)
		if (row->args[i].kind == ARG_msg_flags)
			return (unsigned)act->stop->args[i];
	return 0;
}

static bool blocks(const struct act *act, int socket)
{
	int flags = fcntl(socket, F_GETFL);

	return flags >= 0 && !(flags & O_NONBLOCK) && !(flags_of(act) & MSG_DONTWAIT);
}

/* recvmmsg(2): its arguments are those of recvmsg(2), with vlen in front of the flags and a timeout behind them. */
static bool takes_many(const struct act *act)
{
	return act->decoded->row->args[TIMEOUT].name != NULL;
}

/* Its time begins with the kernel's call, so there is no waiting before it. */
static bool is_timed(const struct act *act)
{
	return takes_many(act) && act->stop->args[TIMEOUT] != 0;
}

static void take_from(struct received *received, const struct msghdr *message)
{
	for (struct cmsghdr *entry = CMSG_FIRSTHDR(message); entry;
	     entry = CMSG_NXTHDR((struct msghdr *)(uintptr_t)message, entry)) {
		if (entry->cmsg_level != SOL_SOCKET || entry->cmsg_type != SCM_RIGHTS || entry->cmsg_len < CMSG_LEN(0))
			continue;
		size_t count = (entry->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int descriptor;
			memcpy(&descriptor, CMSG_DATA(entry) + i * sizeof(int), sizeof(descriptor));
			if (received->count < DESCRIPTORS)
				received->descriptors[received->count++] = descriptor;
			else
				close(descriptor);
		}
	}
}

static bool is_stream(int socket)
{
	int type = -1;
	socklen_t size = sizeof(type);

	return getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type == SOCK_STREAM;
}

/*
 * A look at a stream finds the next descriptors however far behind they come; what it says of data ends with the message
 * that they are part of. Where that one begins nobody can be asked.
 */
static bool more_than(const struct act *act, int socket, size_t size)
{
	struct iovec part = {arena_alloc(&act->decoder->arena, size + 1), size + 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (!part.iov_base)
		return true;
	ssize_t seen = recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	return seen < 0 || (size_t)seen > size;
}

/* With the room that the call has: what does not fit there is closed by the kernel, for both of us. */
static bool peek(const struct act *act, int socket, struct received *received)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(DESCRIPTORS * sizeof(int)) + 4096];
	size_t size = act->decoded->receive_size < DATA_MOST ? act->decoded->receive_size : DATA_MOST;
	size_t room = act->decoded->receive_room < sizeof(control) ? act->decoded->receive_room : sizeof(control);
	char *data = arena_alloc(&act->decoder->arena, size + 1);
	struct iovec part = {data, size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = room};

	if (!data)
		return false;
	if (recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
		return errno == EAGAIN || errno == ENOTCONN || errno == ECONNRESET;
	take_from(received, &message);
	received->reaches_on = received->count > 0 && is_stream(socket) && more_than(act, socket, size);
	return true;
}

static const char *access_of(int descriptor)
{
	int flags = fcntl(descriptor, F_GETFL);

	if (flags >= 0 && (flags & O_PATH))
		return "O_PATH";
	return flags < 0                         ? "?"
	       : (flags & O_ACCMODE) == O_RDONLY ? "O_RDONLY"
	       : (flags & O_ACCMODE) == O_WRONLY ? "O_WRONLY"
						 : "O_RDWR";
}

static void describe(struct act *act, const struct received *received)
{
	struct arena *arena = &act->decoder->arena;
	struct bytes *paths = arena_alloc(arena, received->count * sizeof(*paths));
	struct bytes *accesses = arena_alloc(arena, received->count * sizeof(*accesses));

	if (!paths || !accesses) {
		act->decoded->unreadable++;
		return;
	}
	decode_opened(act->decoder, act->target, act->decoded, received->descriptors[0]);
	for (size_t i = 0; i < received->count; i++) {
		struct effect_object object = {0};
		struct path_facts facts;
		path_of_own_descriptor(act->decoder->cache, act->target, received->descriptors[i], arena, &object,
				       &facts);
		paths[i] = object.path.data ? object.path : BYTES("");
		accesses[i] = bytes_of(access_of(received->descriptors[i]));
	}
	struct effect_value *value = act_add_value(act, "access", VALUE_LIST);
	if (value) {
		value->list.items = accesses;
		value->list.count = received->count;
	}
	value = act_add_value(act, "fd_paths", VALUE_LIST);
	if (value) {
		value->list.items = paths;
		value->list.count = received->count;
	}
}

/* Something may come that will not have been seen: that much is said. */
static void say_unseen(struct act *act, const char *why)
{
	act->decoded->effects->note = bytes_of(why);
}

static void look_at_queue(struct act *act, int socket)
{
	struct received received = {.count = 0};

	bool several = takes_many(act) && (uint32_t)act->stop->args[VLEN] > 1;
	if (!peek(act, socket, &received))
		say_unseen(act, "what was received could not be looked at");
	else if (received.count > 0)
		describe(act, &received);
	else if (!several)
		act->decoded->count = 0;
	if (received.reaches_on)
		say_unseen(act,
			   "the message with the descriptors ends behind what the call reads: they may come later");
	else if (several)
		say_unseen(act, "of several messages only the first could be looked at");
	for (size_t i = 0; i < received.count; i++)
		close(received.descriptors[i]);
}

void act_receive(const struct actor *actor, struct act *act)
{
	int offset = -1;
	socklen_t size = sizeof(offset);

	act_let_go(actor, act);
	if (act->decoded->unreadable > 0)
		return;
	if (takes_many(act) && (uint32_t)act->stop->args[VLEN] == 0) {
		act->decoded->count = 0;
		return;
	}
	int socket CLEANUP_FD = descriptor_copy(act->target->tid, act->target->pid, (int)act->stop->args[0]);
	if (socket < 0) {
		say_unseen(act, "the socket could not be looked at");
		return;
	}
	/* A look would move what the agent itself looks at next (SO_PEEK_OFF, socket(7)). */
	if (getsockopt(socket, SOL_SOCKET, SO_PEEK_OFF, &offset, &size) == 0 && offset >= 0) {
		say_unseen(act, "what was received could not be looked at: SO_PEEK_OFF is set");
		return;
	}
	bool waits = blocks(act, socket);
	if (waits && is_timed(act)) {
		say_unseen(act, "what was received could not be looked at: the call has a time limit");
		return;
	}
	switch (act_await(actor, act, socket, waits)) {
	case ARRIVED:
		look_at_queue(act, socket);
		break;
	case EMPTY:
		act->decoded->count = 0;
		break;
	case UNSEEN:
		say_unseen(act, "what was received came after we had looked");
		break;
	}
}
