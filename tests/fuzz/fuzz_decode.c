/*
 * decode() of any row over any arguments and any memory: what it makes of them is a record that JSON readers accept,
 * within the limit, and no descriptor stays open.
 *
 * Input: number of the call (2 bytes), mode (1), six arguments and the result (a form byte and its bytes each), then the
 * memory, which lies at MEMORY_BASE. The task that is looked at is this process, with a few sockets and pipes of its
 * own.
 */
#include <fcntl.h>
#include <jansson.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "decode/decode.h"
#include "ledger/record.h"
#include "os/procfs.h"

enum { MEMORY_BASE = 4096, FIRST_FD = 64, FD_LIMIT = 128 };

struct input {
	const uint8_t *data;
	size_t size;
};

static struct decoder decoder;
static struct target own, elsewhere; /* under this root, and under one of its own */
static int memory;

static void need(bool condition)
{
	if (!condition)
		abort();
}

static void put_at(int fd, int number)
{
	if (fd < 0)
		return; /* this host has no such socket */
	need(dup3(fd, number, O_CLOEXEC) == number);
	close(fd);
}

/* What the arguments of form FORM_FD name. */
static void open_descriptors(void)
{
	const struct sockaddr_in server = {
	    .sin_family = AF_INET, .sin_port = htons(53), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int connected = socket(AF_INET, SOCK_DGRAM, 0);
	int pipes[2], pair[2];

	/* Connecting a datagram socket sends nothing. */
	(void)connect(connected, (const struct sockaddr *)&server, sizeof(server));
	need(pipe(pipes) == 0 && socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
	const int fds[] = {
	    socket(AF_INET, SOCK_DGRAM, 0),
	    connected,
	    socket(AF_INET6, SOCK_DGRAM, 0),
	    socket(AF_INET, SOCK_STREAM, 0),
	    socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE),
	    pair[0],
	    pair[1],
	    pipes[0],
	    pipes[1],
	    open("/dev/null", O_RDWR),
	    open("/", O_RDONLY | O_DIRECTORY),
	    open("/usr", O_PATH),
	    (int)syscall(SYS_pidfd_open, getpid(), 0),
	    memfd_create("a name \xff with any bytes", 0),
	};
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		put_at(fds[i], FIRST_FD + (int)i);
}

static void prepare(void)
{
	struct stat status;

	need(procfs_open(NULL) && decoder_init(&decoder));
	memory = memfd_create("memory", MFD_CLOEXEC);
	int task = procfs_task(getpid());
	need(memory >= 0 && task >= 0 && fstatat(task, "ns/pid", &status, 0) == 0);
	own = (struct target){
	    .tid = getpid(),
	    .pid = getpid(),
	    .task = task,
	    .memory = memory,
	    .same_root = true,
	    .same_mounts = true,
	    .root = AT_FDCWD,
	    .root_path = BYTES("/"),
	    .pid_namespace = status.st_ino,
	};
	elsewhere = own;
	elsewhere.same_root = false;
	elsewhere.root = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
	elsewhere.root_path = BYTES("/usr");
	need(elsewhere.root >= 0);
	open_descriptors();
}

static uint64_t take(struct input *input, size_t bytes)
{
	uint64_t value = 0;

	for (; bytes > 0 && input->size > 0; bytes--, input->data++, input->size--)
		value = value << 8 | *input->data;
	return value;
}

/* By number, so that a seed means the same when rows are added; what is no number of a row is an index. */
static const struct syscall_row *take_row(struct input *input)
{
	uint64_t number = take(input, 2);
	const struct syscall_row *row = syscall_row_find((int)number);

	return row ? row : &syscall_rows[number % syscall_row_count];
}

/* Mostly numbers that mean something; the last form is any number at all. */
static uint64_t take_argument(struct input *input)
{
	switch (take(input, 1) % 9) {
	case 0:
		return 0;
	case 1:
		return MEMORY_BASE + take(input, 1);
	case 2:
		return MEMORY_BASE + take(input, 2);
	case 3:
		return FIRST_FD + take(input, 1) % 16;
	case 4:
		return (uint64_t)(int64_t)AT_FDCWD;
	case 5:
		return (uint64_t)getpid();
	case 6:
		return take(input, 2);
	case 7:
		return take(input, 4);
	default:
		return take(input, 8);
	}
}

static void fill_memory(struct input rest)
{
	need(ftruncate(memory, 0) == 0 && ftruncate(memory, MEMORY_BASE + (off_t)rest.size) == 0);
	need(pwrite(memory, rest.data, rest.size, MEMORY_BASE) == (ssize_t)rest.size);
}

static void check_record(const struct effect *effect)
{
	CLEANUP_BUF struct buf body = {.limit = 1 << 24};
	CLEANUP_BUF struct buf sealed = {.limit = 1 << 24};
	struct record_head head;
	json_error_t error;

	need(record_effect(&body, &head, effect, NULL));
	need(record_seal(&sealed, &head, buf_bytes(&body), ((uint64_t)1 << 53) - 1));
	need(sealed.size <= RECORD_SIZE_LIMIT);
	json_t *json = json_loadb(sealed.data, sealed.size, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
	need(json != NULL);
	json_decref(json);
}

static void check_records(const struct decoded *decoded)
{
	for (size_t i = 0; i < decoded->count; i++)
		check_record(&decoded->effects[i]);
}

static void list_open(bool open[FD_LIMIT])
{
	for (int fd = 0; fd < FD_LIMIT; fd++)
		open[fd] = fcntl(fd, F_GETFD) >= 0;
}

static void decode_one(struct input *input)
{
	const struct syscall_row *row = take_row(input);
	uint64_t mode = take(input, 1);
	struct target target = mode & 1 ? elsewhere : own;
	struct stop stop = {.tid = target.tid, .number = syscall_number(row)};
	struct decoded decoded;

	/* Other mounts than ours: where the host sees a path is looked up in the task's list of them. */
	if (mode & 2)
		target.same_mounts = target.same_root;
	if (mode & 4)
		target.memory = -1;
	for (size_t i = 0; i < SYSCALL_ARGS; i++)
		stop.args[i] = take_argument(input);
	/* The kernel returns nothing else below zero. */
	int64_t value = (int64_t)take_argument(input);
	if (value < -4095)
		value = -(value & 4095);
	fill_memory(*input);

	enum decode_state state = decode(&decoder, &target, &stop, row, &decoded);
	decoded_release(&decoded);
	need(state != DECODE_NOTHING || decoded.count == 0);
	check_records(&decoded);
	if (decoded.count == 0)
		return;
	if (row->handling == HANDLING_exec)
		decode_exec(&decoder, &target, stop.args[5], value & 1 ? 4 : 8, &decoded);
	decode_result(&decoder, &target, &decoded, value);
	check_records(&decoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	bool before[FD_LIMIT], after[FD_LIMIT];
	static bool prepared;

	if (!prepared)
		prepare();
	prepared = true;
	list_open(before);
	decode_one(&input);
	list_open(after);
	need(memcmp(before, after, sizeof(before)) == 0);
	return 0;
}
