/*
 * What messages with descriptors bring, and what becomes of it: looks, credentials, several at a time, copies that must
 * not be kept.
 */
#include <pthread.h>
#include <sys/file.h>
#include <sys/ioctl.h>

#include "equal_message.h"

static int waiting_bytes(int fd)
{
	int count = -1;

	NEED(ioctl(fd, FIONREAD, &count) == 0);
	return count;
}

static void received_peek(void)
{
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
	int pair[2];

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		connected(pair, types[i]);
		send_them(pair[0], "plain", NULL, 0);
		send_file(pair[0], "with a file");
		say("bytes %d", waiting_bytes(pair[1]));
		take(pair[1], MSG_PEEK, "look");
		take_up_to(pair[1], 2, ROOM, MSG_PEEK, "look at two bytes");
		take_many(pair[1], MSG_PEEK, "look at many");
		take_up_to(pair[1], 2, ROOM, 0, "two bytes");
		take(pair[1], MSG_PEEK, "look further");
		take(pair[1], 0, "the rest");
		take(pair[1], MSG_DONTWAIT, "the end");
		say("bytes %d", waiting_bytes(pair[1]));
	}
}

/* Where a look begins is the program's own (SO_PEEK_OFF). */
static void received_place(void)
{
	int pair[2], offset = 2;
	socklen_t size = sizeof(offset);

	connected(pair, SOCK_STREAM);
	send_file(pair[0], "0123456789");
	NEED(setsockopt(pair[1], SOL_SOCKET, SO_PEEK_OFF, &offset, size) == 0);
	for (int i = 0; i < 6; i++) {
		take_up_to(pair[1], 2, ROOM, i == 3 ? 0 : MSG_PEEK | MSG_DONTWAIT, i == 3 ? "take two" : "look at two");
		NEED(getsockopt(pair[1], SOL_SOCKET, SO_PEEK_OFF, &offset, &size) == 0);
		say("place %d", offset);
	}
}

static void received_all(void)
{
	int pair[2];

	connected(pair, SOCK_STREAM);
	pid_t pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 4; i++) {
			pause_ms(50);
			send_them(pair[0], "plain", NULL, 0);
		}
		send_file(pair[0], "brings");
		pause_ms(50);
		send_file(pair[0], "brings more");
		_exit(0);
	}
	take_up_to(pair[1], 10, ROOM, MSG_WAITALL, "ten bytes");
	take_up_to(pair[1], 13, ROOM, MSG_WAITALL, "up to the descriptor");
	take_up_to(pair[1], 14, ROOM, MSG_WAITALL, "to the end");
	join_child("sender", pid);
}

static void pass_on(int socket, int on, int name)
{
	step(setsockopt(socket, SOL_SOCKET, name, &on, sizeof(on)), "option %d", name);
}

static void received_credentials(void)
{
	int pair[2], on = 1;

	connected(pair, SOCK_DGRAM);
	send_file(pair[0], "before");
	pass_on(pair[1], on, SO_PASSCRED);
	take(pair[1], 0, "sent before it was asked for");
	pid_t child = fork();
	if (child == 0) {
		/* From above, and then told to the one below: each sees the other as its sender. */
		take(pair[1], 0, "from the parent");
		send_them(pair[0], "from the child", NULL, 0);
		_exit(0);
	}
	send_file(pair[0], "to the child");
	join_child("child", child);
	struct parcel parcel;
	prepare(&parcel, 64, ROOM);
	NEED(recvmsg(pair[1], &parcel.message.msg_hdr, 0) > 0);
	struct ucred from;
	NEED(CMSG_FIRSTHDR(&parcel.message.msg_hdr));
	memcpy(&from, CMSG_DATA(CMSG_FIRSTHDR(&parcel.message.msg_hdr)), sizeof(from));
	say("from the child: %d uid %u gid %u", from.pid == child, from.uid, from.gid);
	take_up_to(pair[1], 64, 0, MSG_DONTWAIT, "nothing is left");
	/* No room for both. */
	send_file(pair[0], "cut");
	take_up_to(pair[1], 64, CMSG_SPACE(sizeof(struct ucred)), 0, "room for one of them");
	pass_on(pair[1], on, SO_PASSPIDFD);
	send_file(pair[0], "three");
	take(pair[1], 0, "with a descriptor of the sender");
}

/* Bytes of two senders do not come in one message when they are asked after. */
static void received_of_two(void)
{
	int pair[2], on = 1;

	connected(pair, SOCK_STREAM);
	NEED(setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0);
	for (int i = 0; i < 2; i++) {
		send_them(pair[0], "ours", NULL, 0);
		pid_t pid = sender_after(pair[0], 0, "the child's");
		join_child("sender", pid);
		send_file(pair[0], "ours again");
	}
	for (int i = 0; i < 7; i++) {
		struct parcel parcel;
		prepare(&parcel, i == 0 ? 3 : 64, ROOM);
		ssize_t size = step(recvmsg(pair[1], &parcel.message.msg_hdr, MSG_DONTWAIT), "part");
		if (size > 0)
			say("  \"%s\"", escaped(parcel.data, (size_t)size));
	}
}

struct taker {
	pthread_t thread;
	int socket;
	long result;
	struct parcel parcel;
};

static void *take_in_thread(void *given)
{
	struct taker *taker = given;

	prepare(&taker->parcel, 64, ROOM);
	taker->result = recvmsg(taker->socket, &taker->parcel.message.msg_hdr, 0);
	return NULL;
}

/* Which of them gets which is nobody's business, but each gets one. */
static void received_by_two(void)
{
	struct taker takers[2];
	int pair[2];
	long bytes = 0;

	connected(pair, SOCK_DGRAM);
	for (int i = 0; i < 2; i++) {
		takers[i] = (struct taker){.socket = pair[1]};
		NEED(pthread_create(&takers[i].thread, NULL, take_in_thread, &takers[i]) == 0);
	}
	pause_ms(SENT_AFTER_MS);
	send_file(pair[0], "one");
	pause_ms(SENT_AFTER_MS);
	send_file(pair[0], "second");
	for (int i = 0; i < 2; i++) {
		NEED(pthread_join(takers[i].thread, NULL) == 0);
		bytes += takers[i].result;
		const struct cmsghdr *head = CMSG_FIRSTHDR(&takers[i].parcel.message.msg_hdr);
		say("some: %d, a descriptor: %d", takers[i].result > 0,
		    head && head->cmsg_len == CMSG_LEN(sizeof(int)));
		close_all(&takers[i].parcel);
	}
	say("together %ld", bytes);
	take(pair[1], MSG_DONTWAIT, "no third");
}

static void say_messages(struct parcel *parcels, const struct mmsghdr *messages, long count)
{
	for (long i = 0; i < count; i++) {
		parcels[i].message = messages[i];
		say("  message of %u", messages[i].msg_len);
		say_parcel(&parcels[i], messages[i].msg_len);
		close_all(&parcels[i]);
	}
}

static void take_several(int fd, unsigned wanted, int flags, struct timespec *limit, const char *label)
{
	struct parcel parcels[4];
	struct mmsghdr messages[4];

	for (unsigned i = 0; i < 4; i++) {
		prepare(&parcels[i], 64, ROOM);
		messages[i] = parcels[i].message;
	}
	long count = step(recvmmsg(fd, messages, wanted, flags, limit), "%s", label);
	say_messages(parcels, messages, count);
}

static void received_many(void)
{
	struct timespec limit = {5, 0}, wrong = {0, 1000000000}, none = {0, 0};
	int pair[2];

	connected(pair, SOCK_DGRAM);
	for (int i = 0; i < 9; i++)
		send_file(pair[0], "message");
	take_several(pair[1], 0, 0, NULL, "none of them");
	take_several(pair[1], 2, 0, NULL, "two");
	take_several(pair[1], 2, 0, &limit, "two and a limit");
	say("less is left, but most: %d", limit.tv_sec == 4);
	take_several(pair[1], 2, 0, &wrong, "a limit that is none");
	take_several(pair[1], 3, 0, &none, "a limit that is over");
	take_several(pair[1], 2, MSG_PEEK, NULL, "look at two");
	take_several(pair[1], 4, MSG_WAITFORONE, NULL, "those that are there");
	take_several(pair[1], 4, MSG_DONTWAIT, NULL, "the rest");
}

static void received_many_late(void)
{
	int pair[2];

	connected(pair, SOCK_DGRAM);
	pid_t pid = sender_after(pair[0], SENT_AFTER_MS, "late");
	take_several(pair[1], 2, MSG_WAITFORONE, NULL, "wait for one");
	join_child("sender", pid);
}

/* The time that passes before the first message counts as well; it is looked at after each (recvmmsg(2)). */
static void received_many_in_time(void)
{
	struct timespec limit = {0, 50000000};
	int pair[2];

	connected(pair, SOCK_DGRAM);
	pid_t pid = sender_after(pair[0], SENT_AFTER_MS, "late");
	take_several(pair[1], 2, 0, &limit, "the limit is over when the first comes");
	say("nothing is left: %ld.%ld", limit.tv_sec, limit.tv_nsec);
	join_child("sender", pid);
}

static void received_close_on_exec(void)
{
	int pair[2], file = a_file();

	connected(pair, SOCK_STREAM);
	for (int i = 0; i < 4; i++) {
		NEED(fcntl(file, F_SETFD, i & 1) == 0);
		send_one(pair[0], "x", file);
		send_one(pair[0], "y", file);
		take(pair[1], i & 2 ? MSG_CMSG_CLOEXEC : 0, "recvmsg");
		take_many(pair[1], i & 2 ? MSG_CMSG_CLOEXEC : 0, "recvmmsg");
	}
}

/* The number that the next one gets: nothing was left in our table. */
static void say_next_number(void)
{
	STEP_CLOSE(open("/dev/null", O_RDONLY), "the next number");
}

static void say_read_end(int fd)
{
	char byte;

	/* Not even for a moment is there another copy: the end is there at once. */
	step(read(fd, &byte, 1), "read from the pipe");
}

/* When the last of us closes a pipe's end, the other knows. */
static void received_last_close(void)
{
	int pair[2], pipes[2];

	for (int i = 0; i < 40; i++) {
		bool many = i & 1, waits = i % 4 == 2, unread = i % 4 == 3;
		connected(pair, i & 8 ? SOCK_DGRAM : SOCK_STREAM);
		NEED(pipe2(pipes, O_CLOEXEC | O_NONBLOCK) == 0);
		pid_t pid = 0;
		if (waits) {
			pid = fork();
			if (pid == 0) {
				pause_ms(30);
				send_one(pair[0], "late", pipes[1]);
				_exit(0);
			}
		} else {
			send_one(pair[0], "x", pipes[1]);
		}
		close(pipes[1]);
		if (unread) {
			take(pair[1], MSG_PEEK, "look");
			say_read_end(pipes[0]);
			close(pair[1]);
		} else if (many) {
			take_many(pair[1], 0, "recvmmsg");
		} else {
			take(pair[1], 0, "recvmsg");
		}
		if (pid > 0)
			join_child("sender", pid);
		say_read_end(pipes[0]);
		close(pipes[0]);
		close(pair[0]);
		if (!unread)
			close(pair[1]);
	}
	say_next_number();
}

/* So with a lock, which goes with the last copy. */
static void received_lock(void)
{
	int pair[2], other = open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	connected(pair, SOCK_STREAM);
	for (int i = 0; i < 20; i++) {
		int file = open("file", O_RDWR | O_CLOEXEC);
		NEED(file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0);
		send_one(pair[0], "locked", file);
		close(file);
		step(flock(other, LOCK_EX | LOCK_NB), "while it is under way");
		take(pair[1], 0, "received and closed");
		step(flock(other, LOCK_EX | LOCK_NB), "afterwards");
		NEED(flock(other, LOCK_UN) == 0);
	}
}

/* A file's offset is the sender's and the receiver's; a look moves nothing. */
static void received_offset(void)
{
	int pair[2], file = a_file();

	NEED(write(file, "0123456789", 10) == 10 && lseek(file, 3, SEEK_SET) == 3);
	connected(pair, SOCK_STREAM);
	send_one(pair[0], "x", file);
	take(pair[1], 0, "at the same place");
	say("offset %ld", (long)lseek(file, 0, SEEK_CUR));
}

static void received_urgent(void)
{
	int pair[2], mark = -1;

	connected(pair, SOCK_STREAM);
	send_file(pair[0], "ab");
	if (send(pair[0], "!", 1, MSG_OOB) != 1) {
		skip("no urgent bytes in unix sockets here");
		return;
	}
	send_file(pair[0], "cd");
	for (int i = 0; i < 4; i++) {
		take(pair[1], MSG_DONTWAIT | (i == 1 ? MSG_OOB : 0), i == 1 ? "urgent" : "plain");
		NEED(ioctl(pair[1], SIOCATMARK, &mark) == 0);
		say("at the mark: %d", mark);
	}
	int on = 1;
	NEED(setsockopt(pair[1], SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on)) == 0);
	NEED(send(pair[0], "ef", 2, MSG_OOB) == 2);
	send_file(pair[0], "gh");
	for (int i = 0; i < 4; i++)
		take(pair[1], MSG_DONTWAIT, "in line");
}

static void received_nowhere(void)
{
	struct parcel parcel;
	int pair[2];

	for (int i = 0; i < 2; i++) {
		connected(pair, i == 0 ? SOCK_STREAM : SOCK_DGRAM);
		step(syscall(SYS_recvmsg, pair[1], (void *)8, 0), "no message");
		step(syscall(SYS_recvmmsg, pair[1], (void *)8, 1, 0, NULL), "no messages");
		send_file(pair[0], "first");
		send_file(pair[0], "second");
		prepare(&parcel, 64, ROOM);
		parcel.message.msg_hdr.msg_iov = (void *)8;
		step(recvmsg(pair[1], &parcel.message.msg_hdr, MSG_DONTWAIT), "no pieces");
		prepare(&parcel, 64, ROOM);
		parcel.message.msg_hdr.msg_iovlen = 100000;
		step(recvmsg(pair[1], &parcel.message.msg_hdr, MSG_DONTWAIT), "too many pieces");
		prepare(&parcel, 64, ROOM);
		parcel.message.msg_hdr.msg_control = (void *)8;
		step(recvmsg(pair[1], &parcel.message.msg_hdr, MSG_DONTWAIT | MSG_PEEK), "no control data");
		say("flags %#x", (unsigned)parcel.message.msg_hdr.msg_flags);
		prepare(&parcel, 64, ROOM);
		parcel.part.iov_base = (void *)8;
		step(recvmsg(pair[1], &parcel.message.msg_hdr, MSG_DONTWAIT), "no data");
		take(pair[1], MSG_DONTWAIT, "what is left of it");
		take(pair[1], MSG_DONTWAIT, "and then");
		say_next_number();
	}
}

static const struct equal_case cases[] = {
    {"received_peek", false, received_peek},
    {"received_place", false, received_place},
    {"received_all", false, received_all},
    {"received_credentials", false, received_credentials},
    {"received_of_two", false, received_of_two},
    {"received_by_two", false, received_by_two},
    {"received_many", false, received_many},
    {"received_many_late", false, received_many_late},
    {"received_many_in_time", false, received_many_in_time},
    {"received_close_on_exec", false, received_close_on_exec},
    {"received_last_close", false, received_last_close},
    {"received_lock", false, received_lock},
    {"received_offset", false, received_offset},
    {"received_urgent", false, received_urgent},
    {"received_nowhere", false, received_nowhere},
    {NULL},
};

int main(int argc, char **argv)
{
	return equal_main(cases, argc, argv);
}
