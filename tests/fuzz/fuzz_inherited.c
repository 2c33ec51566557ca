/*
 * What the command inherits, as the run's first record tells it: sockets whose peers have any name that the kernel lets
 * them have, of any length. The name told is the name given, and the record is JSON within its limit.
 *
 * Input: kind of the socket (1 byte), the bytes of its name.
 */
#include "../../tracer/guardian/descriptors.h"

#include <jansson.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "fuzz.h"

enum { LIMIT = 64, INHERITED = 90, NAME_ROOM = sizeof(((struct sockaddr_un *)NULL)->sun_path) };

static int folder = -1;
static struct arena arena;

static void prepare(void)
{
	folder = private_place();
	need(arena_init(&arena, 1 << 20));
}
PREPARE_BY(prepare)

/* What may follow in one entry of the folder. */
static size_t copy_name(char *out, struct bytes name, size_t room)
{
	size_t used = 0;

	for (; used < name.size && used < room; used++)
		out[used] = name.data[used] == 0 || name.data[used] == '/' ? '_' : name.data[used];
	return used;
}

/* A connected socket that is inherited, whose peer has this address; -1 when the kernel does not let it. */
static int connect_to(const struct sockaddr_un *address, socklen_t size, int type)
{
	int server = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	int client = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	bool good = bind(server, (const struct sockaddr *)address, size) == 0 &&
		    (type == SOCK_DGRAM || listen(server, 1) == 0) &&
		    connect(client, (const struct sockaddr *)address, size) == 0;
	int number = good ? dup2(client, INHERITED) : -1;

	close(client);
	close(server);
	return number;
}

static void check_record(struct record_descriptor *all, size_t count)
{
	CLEANUP_BUF struct buf body = {.limit = 1 << 24};
	struct record_run_start start = {.run = BYTES("0"), .descriptors = all, .descriptor_count = count};
	struct record_head head;
	json_error_t error;

	need(record_run_start(&body, &head, &start, NULL) && body.size <= RECORD_SIZE_LIMIT);
	json_t *json = json_loadb(body.data, body.size, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
	need(json != NULL);
	json_decref(json);
}

static void check(struct bytes expected)
{
	struct record_descriptor all[LIMIT];
	bool found = false;

	arena_reset(&arena);
	size_t count = descriptors_inherited(&arena, all, LIMIT);
	for (size_t i = 0; i < count; i++) {
		if (all[i].fd != INHERITED)
			continue;
		found = true;
		need(all[i].peer.present && bytes_equal(all[i].peer.family, BYTES("unix")));
		need(bytes_equal(all[i].peer.path, expected));
	}
	need(found && count < LIMIT);
	check_record(all, count);
}

static void inherit(struct input *input)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	unsigned kind = (unsigned)take_number(input, 1);
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
	struct bytes name = take_bytes(input, NAME_ROOM);
	size_t used = 0;

	if (kind & 1) { /* abstract: any bytes behind the first */
		used = name.size < NAME_ROOM - 1 ? name.size : NAME_ROOM - 1;
		if (used > 0)
			memcpy(address.sun_path + 1, name.data, used);
		used++;
	} else {
		memcpy(address.sun_path, PRIVATE_PLACE "/", sizeof(PRIVATE_PLACE));
		used = sizeof(PRIVATE_PLACE);
		used += copy_name(address.sun_path + used, name, NAME_ROOM - used);
	}
	int number =
	    connect_to(&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + used), types[(kind >> 1) % 3]);
	if (kind & 1)
		address.sun_path[0] = '@';
	if (number >= 0)
		check((struct bytes){address.sun_path, used});
	if (number >= 0)
		close(number);
	if (!(kind & 1)) {
		char path[NAME_ROOM + 1] = "";
		memcpy(path, address.sun_path, used);
		(void)unlink(path);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct open_set before = open_now();

	inherit(&input);
	need_same_open(&before);
	return 0;
}
