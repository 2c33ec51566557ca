/*
 * Descriptors that come with a message, by whichever of the calls a row names.
 */
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "row_net.h"

enum { ROOM = 256, SECOND_MS = 1300 };

struct reader {
	_Alignas(struct cmsghdr) char control[ROOM];
	char data[64];
	struct iovec part;
	struct mmsghdr message;
};

static void prepare(struct reader *reader, size_t size, size_t room)
{
	*reader = (struct reader){.part = {reader->data, size}};
	reader->message.msg_hdr = (struct msghdr){
	    .msg_iov = &reader->part, .msg_iovlen = 1, .msg_control = reader->control, .msg_controllen = room};
}

static long receive(const char *row, int fd, struct reader *reader, int flags)
{
	if (strcmp(row, "recvmsg") == 0)
		return syscall(SYS_recvmsg, fd, &reader->message.msg_hdr, flags);
	return syscall(SYS_recvmmsg, fd, &reader->message, 1, flags, NULL);
}

static void post(int fd, const char *text, const int *passed, size_t count)
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
	row_must(sendmsg(fd, &message, 0) == (ssize_t)part.iov_len);
}

/* How many descriptors came, and whether the first is the file that was sent. */
static size_t came(const struct reader *reader, int sent)
{
	const struct msghdr *message = &reader->message.msg_hdr;
	const struct cmsghdr *head = CMSG_FIRSTHDR(message);
	struct stat here, there;
	int first;

	if (!head || head->cmsg_type != SCM_RIGHTS)
		return 0;
	memcpy(&first, CMSG_DATA(head), sizeof(first));
	row_must(fstat(sent, &here) == 0 && fstat(first, &there) == 0 && here.st_ino == there.st_ino);
	return (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
}

static void expect_nothing(const char *row, int fd)
{
	row_used = 0;
	row_put("{\"row\":\"%s\",\"absent\":{\"syscall\":\"%s\"", row, row);
	row_number("args.sockfd", fd);
	row_done();
}

static void expect_one(const char *row, long result, int fd, const char *paths, const char *access)
{
	row_expect(row, "ipc.receive_fd", result);
	row_number("args.sockfd", fd);
	row_json("args.fd_paths", paths);
	row_json("args.access", access);
}

static void take(const char *row, int type)
{
	int pair[2], both[2] = {open("received", O_CREAT | O_RDWR, 0600), open("/", O_RDONLY | O_DIRECTORY)};
	struct reader reader;
	char paths[2 * PATH_MAX];

	row_must(both[0] >= 0 && both[1] >= 0 && socketpair(AF_UNIX, type, 0, pair) == 0);
	post(pair[0], "x", both, 2);
	prepare(&reader, 64, ROOM);
	long result = receive(row, pair[1], &reader, 0);
	row_must(result >= 0 && came(&reader, both[0]) == 2);
	snprintf(paths, sizeof(paths), "[\"%s\",\"/\"]", row_path("received"));
	expect_one(row, result, pair[1], paths, "[\"O_RDWR\",\"O_RDONLY\"]");
	row_text("path", row_path("received"));
	row_done();
}

/* Plain bytes in front of those that bring it: one call takes both. */
static void take_behind(const char *row)
{
	int pair[2], file = open("behind", O_CREAT | O_WRONLY, 0600);
	struct reader reader;
	char paths[PATH_MAX];

	row_must(file >= 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	post(pair[0], "plain", NULL, 0);
	post(pair[0], "x", &file, 1);
	prepare(&reader, 64, ROOM);
	long result = receive(row, pair[1], &reader, 0);
	row_must(result >= 0 && came(&reader, file) == 1);
	snprintf(paths, sizeof(paths), "[\"%s\"]", row_path("behind"));
	expect_one(row, result, pair[1], paths, "[\"O_WRONLY\"]");
	row_done();
}

/* From somebody who takes his time: first a little, then more than anybody waits for. */
static void take_late(const char *row, int delay_ms, bool seen)
{
	int pair[2], file = open("late", O_CREAT | O_RDWR, 0600);
	struct reader reader;
	char paths[PATH_MAX];

	row_must(file >= 0 && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
	pid_t child = fork();
	row_must(child >= 0);
	if (child == 0) {
		(void)poll(NULL, 0, delay_ms);
		post(pair[0], "x", &file, 1);
		_exit(0);
	}
	prepare(&reader, 64, ROOM);
	long result = receive(row, pair[1], &reader, 0);
	row_must(result >= 0 && came(&reader, file) == 1);
	row_must(waitpid(child, NULL, 0) == child);
	snprintf(paths, sizeof(paths), "[\"%s\"]", row_path("late"));
	if (seen) {
		expect_one(row, result, pair[1], paths, "[\"O_RDWR\"]");
	} else {
		row_expect(row, "ipc.receive_fd", result);
		row_number("args.sockfd", pair[1]);
		row_text("note", "what was received came after we had looked");
	}
	row_done();
}

/* No effect: nothing comes, nothing could, or it is another kind of socket. Each with a number of its own. */
static void nothing(const char *row)
{
	int pair[2], file = open("nothing", O_CREAT | O_RDWR, 0600), server = row_server(SOCK_DGRAM, 0);
	struct sockaddr_in address = row_inet(row_port(server));
	struct reader reader;

	row_must(file >= 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	int plain = dup2(pair[1], 501), roomless = dup2(pair[1], 502), empty = dup2(pair[1], 503);
	row_must(plain >= 0 && roomless >= 0 && empty >= 0);
	post(pair[0], "x", NULL, 0);
	prepare(&reader, 64, ROOM);
	row_must(receive(row, plain, &reader, 0) >= 0);
	expect_nothing(row, plain);
	post(pair[0], "x", &file, 1);
	prepare(&reader, 64, 0);
	row_must(receive(row, roomless, &reader, 0) >= 0);
	expect_nothing(row, roomless);
	prepare(&reader, 64, ROOM);
	row_must(receive(row, empty, &reader, MSG_DONTWAIT) == -1 && errno == EAGAIN);
	expect_nothing(row, empty);
	int internet = dup2(server, 504), client = socket(AF_INET, SOCK_DGRAM, 0);
	row_must(internet >= 0 && sendto(client, "x", 1, 0, (struct sockaddr *)&address, sizeof(address)) == 1);
	prepare(&reader, 64, ROOM);
	row_must(receive(row, internet, &reader, 0) >= 0);
	expect_nothing(row, internet);
}

/* A look would move the place at which the program itself looks next. */
static void own_place(const char *row)
{
	int pair[2], file = open("place", O_CREAT | O_RDWR, 0600), offset = 0;
	struct reader reader;

	row_must(file >= 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	row_must(setsockopt(pair[1], SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof(offset)) == 0);
	post(pair[0], "x", &file, 1);
	prepare(&reader, 64, ROOM);
	long result = receive(row, pair[1], &reader, 0);
	row_must(result >= 0 && came(&reader, file) == 1);
	row_expect(row, "ipc.receive_fd", result);
	row_number("args.sockfd", pair[1]);
	row_text("note", "what was received could not be looked at: SO_PEEK_OFF is set");
	row_done();
}

static void nowhere(const char *row)
{
	int pair[2];

	row_must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	long result = strcmp(row, "recvmsg") == 0 ? syscall(SYS_recvmsg, pair[1], (void *)8, MSG_DONTWAIT)
						  : syscall(SYS_recvmmsg, pair[1], (void *)8, 1, MSG_DONTWAIT, NULL);
	row_must(result == -1);
	row_expect(row, "ipc.receive_fd", result);
	row_number("args.sockfd", pair[1]);
	row_done();
}

static void every_case(const char *row)
{
	take(row, SOCK_STREAM);
	take(row, SOCK_DGRAM);
	take_behind(row);
	take_late(row, 200, true);
	take_late(row, SECOND_MS, false);
	nothing(row);
	own_place(row);
	nowhere(row);
}

static void run_recvmsg(void)
{
	every_case("recvmsg");
}

static void run_recvmmsg(void)
{
	every_case("recvmmsg");
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {{"recvmsg", run_recvmsg}, {"recvmmsg", run_recvmmsg}, {0}};

	alarm(40);
	return row_main(cases, argc, argv);
}
