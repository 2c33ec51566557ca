/*
 * A performer lives where the agent lives: whatever it answers, with however many descriptors, the monitor takes what an
 * answer has, or gives the performer up; and no descriptor stays behind.
 *
 * Input: how many descriptors come with the answer (1 byte), whether the word that closes it comes too (1), whether the
 * answer is a whole one (1), and its bytes.
 */
#include "../../tracer/act/performer.h"

#include <errno.h>
#include <sys/socket.h>

#include "fuzz.h"
#include "os/procfs.h"

enum { DESCRIPTORS = 12, NAMESPACE = 7 };

static int task = -1;

static void prepare(void)
{
	need(procfs_open(NULL));
	task = procfs_task(getpid());
	need(task >= 0);
}
PREPARE_BY(prepare)

/* The performer's part: it has answered before it was asked. */
static void answer(int socket, struct input *input)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(DESCRIPTORS * sizeof(int))];
	} control;
	char whole[sizeof(struct order_outcome)] = {0};
	size_t count = take_number(input, 1) % (DESCRIPTORS + 1);
	bool closes = take_number(input, 1) & 1, is_whole = take_number(input, 1) & 1;
	struct bytes given = take_bytes(input, input->size);
	struct iovec part = {(void *)(uintptr_t)given.data, given.size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	int passed[DESCRIPTORS];

	if (is_whole) {
		if (given.size > 0)
			memcpy(whole, given.data, given.size < sizeof(whole) ? given.size : sizeof(whole));
		part = (struct iovec){whole, sizeof(whole)};
	}
	for (size_t i = 0; i < count; i++)
		passed[i] = socket;
	if (count > 0) {
		memset(&control, 0, sizeof(control));
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.align = (struct cmsghdr){
		    .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(count * sizeof(int))};
		memcpy(CMSG_DATA(&control.align), passed, count * sizeof(int));
	}
	need(sendmsg(socket, &message, MSG_NOSIGNAL) >= 0);
	if (closes)
		need(send(socket, "", 1, MSG_NOSIGNAL) == 1);
	need(shutdown(socket, SHUT_WR) == 0);
}

static void exchange(struct input *input)
{
	static struct performers performers;
	static struct order order;
	struct rights rights = {.user_namespace = NAMESPACE};
	struct target target = {
	    .tid = getpid(), .pid = getpid(), .task = task, .rights = &rights, .mount_namespace = NAMESPACE};
	struct order_outcome outcome = {.descriptor = -1};
	int sockets[2];
	bool lost;

	performers_init(&performers);
	order = (struct order){.kind = ORDER_MKDIR, .place = {.directory = -1, .base = -1}, .to = {.directory = -1}};
	order.to.base = -1;
	need(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0);
	performers.all[0].user_namespace = performers.all[0].mount_namespace = NAMESPACE;
	performers.all[0].rights = rights;
	performers.all[0].socket = sockets[0];
	bool whole = input->size >= 3 && ((input->data[2] & 1) || input->size - 3 >= sizeof(struct order_outcome));
	answer(sockets[1], input);
	bool done = performer_carry_out(&performers, &target, &order, &outcome, &lost);
	need(done != lost && done == whole);
	need(outcome.descriptor == -1 || fcntl(outcome.descriptor, F_GETFD) == FD_CLOEXEC);
	if (outcome.descriptor >= 0)
		close(outcome.descriptor);
	/* One that was lost is not asked again. */
	need(lost == (performers.all[0].socket < 0) && lost == (performers.all[0].user_namespace == 0));
	if (!lost)
		close(sockets[0]);
	close(sockets[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct open_set before = open_now();

	exchange(&input);
	need_same_open(&before);
	return 0;
}
