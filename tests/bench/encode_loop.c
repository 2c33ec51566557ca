/*
 * Encode a typical effect N times and print the nanoseconds of processor time that one record takes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "ledger/record.h"

static const struct effect typical = {
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
    .values = {{.name = "looked_up", .type = VALUE_BOOL, .truth = true}},
    .value_count = 1,
    .result = {.state = RESULT_OK, .has_value = true, .value = 17},
};

static uint64_t processor_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv)
{
	enum { STEP_NS = 100000 }; /* between two effects, so that the clock's text changes as it does in a run */
	CLEANUP_BUF struct buf body = {.limit = 1 << 20};
	struct effect effect = typical;
	struct record_head head;
	long count = argc == 2 ? strtol(argv[1], NULL, 10) : 1000000;
	if (argc > 2 || count <= 0) {
		fputs("usage: encode_loop [N]\n", stderr);
		return 64;
	}
	uint64_t begin = processor_ns();
	for (long i = 0; i < count; i++) {
		buf_reset(&body);
		effect.stamp.mono_ns += STEP_NS;
		effect.stamp.realtime_ns += STEP_NS;
		effect.object.ino++;
		if (!record_effect(&body, &head, &effect, NULL)) {
			fputs("encode_loop: the record was not written\n", stderr);
			return 1;
		}
	}
	uint64_t taken = processor_ns() - begin;
	printf("%" PRIu64 " ns per record of %zu bytes\n", taken / (uint64_t)count, body.size);
	return 0;
}
