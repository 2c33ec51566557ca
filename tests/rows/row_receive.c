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

/* The descriptors that came, of which the first is the file that was sent. */
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

/* With the file or without any. */
static long receive_file(const char *row, int fd, struct reader *reader, size_t size, int flags, int file,
			 size_t brings)
{
	prepare(reader, size, ROOM);
	long result = receive(row, fd, reader, flags);
	row_must(result >= 0 && came(reader, file) == brings);
	return result;
}

static const char *link_of(int fd)
{
	static char text[PATH_MAX];
	char name[64];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	ssize_t size = readlink(name, text, sizeof(text) - 1);
	row_must(size > 0);
	text[size] = 0;
	return text;
}

static const char *access_of(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	row_must(flags >= 0);
	return flags & O_PATH                    ? "O_PATH"
	       : (flags & O_ACCMODE) == O_RDONLY ? "O_RDONLY"
	       : (flags & O_ACCMODE) == O_WRONLY ? "O_WRONLY"
						 : "O_RDWR";
}

static void expect_nothing(const char *row, int fd)
{
	row_absent(row);
	row_number("args.sockfd", fd);
	row_done();
}

static void begin(const char *row, long result, int fd)
{
	row_expect(row, "ipc.receive_fd", result);
	row_number("args.sockfd", fd);
	row_text("result.state", "unknown");
}

static void expect_note(const char *row, long result, int fd, const char *note)
{
	begin(row, result, fd);
	row_text("note", note);
	row_done();
}

/* These descriptors; they are ours, and what the kernel says of them is what must be recorded. */
static void expect_all(const char *row, long result, int fd, const int *fds, size_t count)
{
	begin(row, result, fd);
	row_text("path", link_of(fds[0]));
	row_put(",\"args.fd_paths\":");
	for (size_t i = 0; i < count; i++) {
		row_put(i > 0 ? "," : "[");
		row_quote(link_of(fds[i]));
	}
	row_put("],\"args.access\":");
	for (size_t i = 0; i < count; i++)
		row_put("%s\"%s\"", i > 0 ? "," : "[", access_of(fds[i]));
	row_put("]");
	row_done();
}

static void expect_one(const char *row, long result, int fd, int file)
{
	expect_all(row, result, fd, &file, 1);
}

static int file_of(const char *name, int flags)
{
	int fd = open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	row_must(fd >= 0 && close(fd) == 0);
	fd = open(name, flags | O_CLOEXEC);
	row_must(fd >= 0);
	return fd;
}

/* Two ends; the one that receives under a number that means one socket in the whole run. */
static void connected(int pair[2], int type)
{
	static int next = 300;

	row_must(socketpair(AF_UNIX, type, 0, pair) == 0);
	int high = fcntl(pair[1], F_DUPFD_CLOEXEC, next++);
	row_must(high >= 0 && close(pair[1]) == 0);
	pair[1] = high;
}

static void take(const char *row, int type, const int *sent, size_t count)
{
	struct reader reader;
	int pair[2];

	connected(pair, type);
	post(pair[0], "x", sent, count);
	prepare(&reader, 64, ROOM);
	long result = receive(row, pair[1], &reader, 0);
	row_must(result >= 0 && came(&reader, sent[0]) == count);
	expect_all(row, result, pair[1], sent, count);
}

/* Of every kind, alone and together, over every type of socket. */
static void take_kinds(const char *row)
{
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
	int pipes[2], pair[2];

	row_must(pipe(pipes) == 0 && socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
	const int kinds[] = {file_of("received", O_RDWR),
			     file_of("received", O_RDONLY),
			     file_of("received", O_WRONLY),
			     file_of("received", O_PATH),
			     open("/", O_RDONLY | O_DIRECTORY),
			     open(".", O_PATH | O_DIRECTORY),
			     pipes[0],
			     pipes[1],
			     pair[0]};
	const size_t count = sizeof(kinds) / sizeof(kinds[0]);
	for (size_t i = 0; i < count; i++)
		take(row, SOCK_STREAM, &kinds[i], 1);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		take(row, types[i], kinds, count);
}

/* Plain bytes in front of those that bring it: one call takes both, in pieces of a byte or in one. */
static void take_behind(const char *row, size_t parts)
{
	int pair[2], file = file_of("behind", O_WRONLY);
	struct iovec pieces[40];
	struct reader reader;

	connected(pair, SOCK_STREAM);
	post(pair[0], "sixteen bytes...", NULL, 0);
	post(pair[0], "five.", NULL, 0);
	post(pair[0], "x", &file, 1);
	prepare(&reader, sizeof(reader.data), ROOM);
	for (size_t i = 0; i < parts; i++)
		pieces[i] = (struct iovec){reader.data + i, 1};
	if (parts > 0) {
		reader.message.msg_hdr.msg_iov = pieces;
		reader.message.msg_hdr.msg_iovlen = parts;
	}
	long result = receive_file(row, pair[1], &reader, 64, 0, file, 1);
	expect_one(row, result, pair[1], file);
}

/* A call that stops in front of them brings none, nor does one that takes what is left behind them. */
static void take_in_pieces(const char *row)
{
	static const struct {
		int number;
		size_t size, brings;
	} reads[] = {{511, 3, 0}, {512, 5, 1}, {513, 64, 0}};
	int pair[2], file = file_of("pieces", O_RDONLY);
	struct reader reader;

	connected(pair, SOCK_STREAM);
	post(pair[0], "plain", NULL, 0);
	post(pair[0], "descriptor", &file, 1);
	for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++) {
		int fd = dup2(pair[1], reads[i].number);
		long result = receive_file(row, fd, &reader, reads[i].size, 0, file, reads[i].brings);
		if (reads[i].brings > 0)
			expect_one(row, result, fd, file);
		else if (
		    i ==
		    0) /* where a message begins cannot be asked: that these come with the next read is not known */
			expect_note(row, result, fd,
				    "the message with the descriptors ends behind what the call reads: they may come "
				    "later");
		else
			expect_nothing(row, fd);
	}
}

/* No byte is asked for, but the descriptors come. */
static void take_only_them(const char *row)
{
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		int pair[2], file = file_of("only", O_RDWR);
		struct reader reader;
		connected(pair, types[i]);
		post(pair[0], "x", &file, 1);
		long result = receive_file(row, pair[1], &reader, 0, 0, file, 1);
		expect_one(row, result, pair[1], file);
	}
}

/* The program looks itself first: every look gives it descriptors. */
static void take_twice(const char *row, int type)
{
	int pair[2], file = file_of("twice", O_RDWR);
	struct reader reader;

	connected(pair, type);
	post(pair[0], "x", &file, 1);
	for (int i = 0; i < 2; i++) {
		long result = receive_file(row, pair[1], &reader, 64, i == 0 ? MSG_PEEK : MSG_CMSG_CLOEXEC, file, 1);
		expect_one(row, result, pair[1], file);
	}
	int empty = dup2(pair[1], type == SOCK_STREAM ? 514 : 515);
	prepare(&reader, 64, ROOM);
	row_must(receive(row, empty, &reader, MSG_DONTWAIT) == -1 && errno == EAGAIN);
	expect_nothing(row, empty);
}

/* From somebody who takes his time: first a little, then more than anybody waits for. */
static void take_late(const char *row, int delay_ms, bool brings)
{
	int pair[2], file = file_of("late", O_RDWR);
	struct reader reader;

	connected(pair, SOCK_SEQPACKET);
	pid_t child = fork();
	row_must(child >= 0);
	if (child == 0) {
		(void)poll(NULL, 0, delay_ms);
		post(pair[0], "x", &file, brings ? 1 : 0);
		_exit(0);
	}
	long result = receive_file(row, pair[1], &reader, 64, 0, file, brings);
	row_must(waitpid(child, NULL, 0) == child);
	if (delay_ms >= SECOND_MS)
		expect_note(row, result, pair[1], "what was received came after we had looked");
	else if (brings)
		expect_one(row, result, pair[1], file);
	else
		expect_nothing(row, pair[1]);
}

/* Its time is the kernel's to measure: only what is there already is seen. */
static void take_in_time(const char *row)
{
	struct timeval limit = {0, 50000};
	int pair[2], file = file_of("time", O_RDWR);
	struct reader reader;

	connected(pair, SOCK_STREAM);
	row_must(setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0);
	post(pair[0], "x", &file, 1);
	long result = receive_file(row, pair[1], &reader, 64, 0, file, 1);
	expect_one(row, result, pair[1], file);

	int empty = dup2(pair[1], 516);
	prepare(&reader, 64, ROOM);
	row_must((result = receive(row, empty, &reader, 0)) == -1 && errno == EAGAIN);
	expect_note(row, result, empty, "what was received came after we had looked");
}

static void receive_nothing(const char *row, int socket, int number, size_t room, int flags, int error)
{
	struct reader reader;
	int fd = dup2(socket, number);

	row_must(fd == number);
	prepare(&reader, 64, room);
	long result = receive(row, fd, &reader, flags);
	row_must(error == 0 ? result >= 0 : result == -1 && errno == error);
	expect_nothing(row, fd);
}

/* No effect: nothing comes, nothing could, or it is another kind of socket. Each with a number of its own. */
static void nothing(const char *row)
{
	int pair[2], file = file_of("nothing", O_RDWR), server = row_server(SOCK_DGRAM, 0), on = 1;
	struct sockaddr_in address = row_inet(row_port(server));

	connected(pair, SOCK_STREAM);
	post(pair[0], "x", NULL, 0);
	receive_nothing(row, pair[1], 501, ROOM, 0, 0);
	post(pair[0], "x", &file, 1);
	receive_nothing(row, pair[1], 502, 0, 0, 0);
	receive_nothing(row, pair[1], 503, ROOM, MSG_DONTWAIT, EAGAIN);
	row_must(sendto(server, "x", 1, 0, (struct sockaddr *)&address, sizeof(address)) == 1);
	receive_nothing(row, server, 504, ROOM, 0, 0);
	row_must(fcntl(pair[1], F_SETFL, O_NONBLOCK) == 0);
	receive_nothing(row, pair[1], 505, ROOM, 0, EAGAIN);
	/* Credentials are control data as well. */
	row_must(setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0);
	post(pair[0], "x", NULL, 0);
	receive_nothing(row, pair[1], 506, ROOM, 0, 0);
	/* One byte less than the smallest descriptor's header and number. */
	row_must(setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &(int){0}, sizeof(on)) == 0);
	post(pair[0], "x", &file, 1);
	receive_nothing(row, pair[1], 507, CMSG_LEN(sizeof(int)) - 1, 0, 0);
	close(pair[0]);
	receive_nothing(row, pair[1], 508, ROOM, 0, 0);
	receive_nothing(row, file, 509, ROOM, 0, ENOTSOCK);
}

static void receive_from_closed(const char *row)
{
	struct reader reader;

	close(510);
	prepare(&reader, 64, ROOM);
	row_must(receive(row, 510, &reader, 0) == -1 && errno == EBADF);
	expect_nothing(row, 510);
}

/* A look would move the place at which the program itself looks next. */
static void own_place(const char *row)
{
	int pair[2], file = file_of("place", O_RDWR), offset = 0;
	struct reader reader;

	connected(pair, SOCK_STREAM);
	row_must(setsockopt(pair[1], SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof(offset)) == 0);
	post(pair[0], "x", &file, 1);
	long result = receive_file(row, pair[1], &reader, 64, 0, file, 1);
	expect_note(row, result, pair[1], "what was received could not be looked at: SO_PEEK_OFF is set");
}

/* There is room for one of them: it is the one that comes. */
static void cut(const char *row)
{
	int pair[2], both[2] = {file_of("cut", O_RDWR), file_of("cut", O_RDONLY)};
	struct reader reader;

	connected(pair, SOCK_STREAM);
	post(pair[0], "x", both, 2);
	prepare(&reader, 64, CMSG_LEN(sizeof(int)));
	long result = receive(row, pair[1], &reader, 0);
	row_must(result >= 0 && came(&reader, both[0]) == 1 && (reader.message.msg_hdr.msg_flags & MSG_CTRUNC));
	expect_one(row, result, pair[1], both[0]);
}

/* Addresses that are none: of the message, of its pieces, and of what they are to hold. */
static void nowhere(const char *row)
{
	int pair[2], file = file_of("nowhere", O_RDWR);
	struct reader reader;

	connected(pair, SOCK_STREAM);
	long result = strcmp(row, "recvmsg") == 0 ? syscall(SYS_recvmsg, pair[1], (void *)8, MSG_DONTWAIT)
						  : syscall(SYS_recvmmsg, pair[1], (void *)8, 1, MSG_DONTWAIT, NULL);
	row_must(result == -1 && errno == EFAULT);
	begin(row, result, pair[1]);
	row_done();

	int pieces = dup2(pair[1], 517), data = dup2(pair[1], 518);
	post(pair[0], "x", &file, 1);
	prepare(&reader, 64, ROOM);
	reader.message.msg_hdr.msg_iov = (void *)8;
	result = receive(row, pieces, &reader, 0);
	row_must(result == -1 && errno == EFAULT);
	begin(row, result, pieces);
	row_done();

	prepare(&reader, 64, ROOM);
	reader.part.iov_base = (void *)8;
	result = receive(row, data, &reader, 0);
	row_must(result == -1 && errno == EFAULT);
	expect_one(row, result, data, file);
}

static void every_case(const char *row)
{
	take_kinds(row);
	take_behind(row, 0);
	take_behind(row, 40);
	take_in_pieces(row);
	take_only_them(row);
	take_twice(row, SOCK_STREAM);
	take_twice(row, SOCK_DGRAM);
	take_late(row, 100, true);
	take_late(row, 100, false);
	take_late(row, SECOND_MS, true);
	take_in_time(row);
	nothing(row);
	receive_from_closed(row);
	own_place(row);
	cut(row);
	nowhere(row);
}

static void run_recvmsg(void)
{
	every_case("recvmsg");
}

/* Of several messages the first is looked at; of none, none. */
static void several(void)
{
	int pair[2], files[2] = {file_of("first", O_RDWR), file_of("second", O_WRONLY)};
	struct reader readers[2];
	struct mmsghdr messages[2];

	connected(pair, SOCK_DGRAM);
	post(pair[0], "x", &files[0], 1);
	post(pair[0], "y", &files[1], 1);
	int none = dup2(pair[1], 519);
	for (int i = 0; i < 2; i++) {
		prepare(&readers[i], 64, ROOM);
		messages[i] = readers[i].message;
	}
	row_must(syscall(SYS_recvmmsg, none, messages, 0, MSG_DONTWAIT, NULL) == 0);
	expect_nothing("recvmmsg", none);
	long result = syscall(SYS_recvmmsg, pair[1], messages, 2, 0, NULL);
	for (int i = 0; i < 2; i++)
		readers[i].message = messages[i];
	row_must(result == 2 && came(&readers[0], files[0]) == 1 && came(&readers[1], files[1]) == 1);
	expect_one("recvmmsg", result, pair[1], files[0]);
	post(pair[0], "x", NULL, 0);
	post(pair[0], "y", &files[1], 1);
	int later = dup2(pair[1], 520);
	row_must((result = syscall(SYS_recvmmsg, later, messages, 2, 0, NULL)) == 2);
	expect_note("recvmmsg", result, later, "of several messages only the first could be looked at");
}

static void run_recvmmsg(void)
{
	every_case("recvmmsg");
	several();
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {{"recvmsg", run_recvmsg}, {"recvmmsg", run_recvmmsg}, {0}};

	alarm(60);
	return row_main(cases, argc, argv);
}
