#include "describe.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "os/procfs.h"

enum { ARENA_SIZE = 1 << 20 };

bool describe_run(const struct guardian_config *config, const char *run, struct description *about, struct err *err)
{
	struct arena *arena = &about->arena;
	struct utsname host;
	char directory[PATH_MAX];
	size_t count = 0;

	if (!arena_init(arena, ARENA_SIZE) || uname(&host) != 0)
		return err_set(err, errno, "preparing the run");
	while (config->argv[count])
		count++;
	/* A record has its limit; what does not fit is cut there and said. */
	struct bytes *argv = calloc(count + 1, sizeof(*argv));
	if (!argv)
		return err_set(err, ENOMEM, "preparing the run");
	for (size_t i = 0; i < count; i++)
		argv[i] = bytes_of(config->argv[i]);
	about->start_mono_ns = clock_monotonic_ns();
	about->start = (struct record_run_start){
	    .stamp = {.realtime_ns = clock_realtime_ns(),
		      .lane = LANE_kernel,
		      /* Root of the tree could pass for the witness. */
		      .class = geteuid() == 0 ? CLASS_verifiable : CLASS_mediated},
	    .run = bytes_of(run),
	    .name = bytes_of(config->name),
	    .argv = argv,
	    .argv_count = count,
	    .host = arena_copy(arena, bytes_of(host.nodename)),
	    .kernel = arena_format(arena, "%s %s", host.release, host.machine),
	    .version = bytes_of(config->version),
	    .build = bytes_of(config->build),
	    .backend = BYTES("notify"),
	    .lens = bytes_of(lens_name(config->lens)),
	    .results = bytes_of(results_name(config->results)),
	    .uid = geteuid(),
	    .gid = getegid(),
	    .io_uring_allowed = config->io_uring_allowed,
	    .descriptors = about->descriptors,
	};
	for (size_t i = 0; i < config->pattern_count && i < PATTERNS_LIMIT; i++) {
		struct digest digest;
		if (!digest_of(bytes_of(config->patterns[i]), &digest))
			return err_set(err, 0, "preparing the run: no SHA-256");
		digest_text(&digest, about->patterns[i]);
		about->start.pattern_count++;
	}
	about->start.patterns = (const char(*)[DIGEST_TEXT_SIZE])about->patterns;
	/* getcwd fails in a folder that was removed; the link still says which one it was. */
	ssize_t length = procfs_link(procfs_root(), "self/cwd", directory, sizeof(directory));
	if (length > 0)
		about->start.cwd = arena_copy(arena, (struct bytes){directory, (size_t)length});
	about->start.descriptor_count = descriptors_inherited(arena, about->descriptors, DESCRIPTORS_LIMIT);
	return true;
}

void describe_keys(struct description *about, struct bytes host, struct bytes keys, struct bytes exposed)
{
	enum { EACH = 65 /* 64 digits and a NUL */ };
	struct record_run_start *start = &about->start;

	start->host_key = arena_copy(&about->arena, host);
	if (exposed.size > 0)
		start->key_exposed = arena_copy(&about->arena, exposed);
	for (size_t i = 0; i < USE_COUNT && keys.size >= (i + 1) * EACH; i++)
		start->keys[i] = arena_copy(&about->arena, (struct bytes){keys.data + i * EACH, EACH - 1});
}

void describe_host(struct description *about, const struct probe_result results[PROBE_COUNT])
{
	struct record_run_start *start = &about->start;

	for (enum probe probe = 0; probe < PROBE_COUNT; probe++) {
		const struct probe_row *row = &probe_rows[probe];
		const struct probe_result *result = &results[probe];
		if (row->shown == PROBE_SHOWN_by_call)
			continue;
		struct record_probe *found = &about->probes[start->probe_count++];
		*found = (struct record_probe){
		    .id = bytes_of(row->id),
		    .state = bytes_of(probe_state_name(result->state)),
		    .detail = result->detail[0] ? arena_copy(&about->arena, bytes_of(result->detail)) : BYTES_NONE,
		    .follows = result->state == PROBE_MISSING ? bytes_of(row->follows) : BYTES_NONE,
		};
		if (probe == PROBE_connector)
			start->connector = found;
	}
	start->probes = about->probes;
}

void describe_free(struct description *about)
{
	arena_free(&about->arena);
	free(about->start.argv);
}
