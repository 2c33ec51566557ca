/*
 * A scribe that is given N typical effects as fast as it takes them: its seconds from the first one to the closed, sealed and
 * synced run.
 *
 *     ledger_append HOME N
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/message.h"
#include "ledger/record.h"
#include "scribe/scribe.h"

static const char run_id[] = "0123456789ABCDEFGHJKMNPQRS";

static struct effect typical = {
    .kind = EFFECT_file_create,
    .syscall = "openat",
    .how = HOW_performed,
    .stamp = {.mono_ns = 48123456789, .realtime_ns = 1764524713123456789, .class = CLASS_mediated},
    .process = {42, 4127, 4128, {"/usr/local/bin/node", 19}},
    .object = {.path = {"/home/agent/project/build/objects/module_0123.o.tmp", 51},
	       .has_inode = true,
	       .dev_major = 259,
	       .dev_minor = 2,
	       .ino = 11534441,
	       .type = S_IFREG},
    .flags = {"O_WRONLY", "O_CREAT", "O_EXCL", "O_CLOEXEC"},
    .flag_count = 4,
    .has_flags = true,
    .has_mode = true,
    .mode = 0644,
    .result = {.state = RESULT_OK, .has_value = true, .value = 17},
};

static bool hear(int guardian, enum message_type type)
{
	static struct message message;
	struct err err = {0};

	return message_receive(guardian, &message, MESSAGE_ROLE_scribe, &err) && message.type == type;
}

static bool put_effects(struct ring *ring, long count)
{
	enum { STEP_NS = 100000 };
	CLEANUP_BUF struct buf body = {.limit = 1 << 17};
	struct record_head head;

	for (long i = 0; i < count; i++) {
		buf_reset(&body);
		typical.stamp.mono_ns += STEP_NS;
		typical.stamp.realtime_ns += STEP_NS;
		typical.object.ino++;
		if (!record_effect(&body, &head, &typical, NULL) ||
		    !ring_put(ring, (struct bytes){(const char *)&head, sizeof(head)}, buf_bytes(&body), NULL, NULL))
			return false;
	}
	ring_finish(ring);
	return true;
}

int main(int argc, char **argv)
{
	enum { RING_SIZE = 8 << 20 };
	long count = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
	struct message closing = {.type = MESSAGE_close_run, .fields = {{.number = 1}}};
	struct ring *ring = ring_create(RING_SIZE, NULL);
	int sockets[2];

	if (count <= 0 || !ring || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
		fputs("usage: ledger_append HOME N\n", stderr);
		return 64;
	}
	pid_t scribe = fork();
	if (scribe == 0) {
		close(sockets[0]);
		_exit(scribe_main(&(struct scribe_config){
		    .home = argv[1], .run = run_id, .ring = ring, .guardian_socket = sockets[1]}));
	}
	close(sockets[1]);
	if (scribe < 0 || !hear(sockets[0], MESSAGE_store_ready))
		return 1;
	uint64_t start = clock_monotonic_ns();
	if (!put_effects(ring, count) || !message_send(sockets[0], &closing, NULL) ||
	    !hear(sockets[0], MESSAGE_run_closed))
		return 1;
	printf("%ld records, %.6f s\n", count, (double)(clock_monotonic_ns() - start) / 1e9);
	return waitpid(scribe, NULL, 0) == scribe ? 0 : 1;
}
