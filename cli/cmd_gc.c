#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#include "base/clock.h"
#include "command.h"
#include "ledger/store.h"
#include "options.h"
#include "render.h"

struct limits {
	bool by_age, by_count, by_size;
	uint64_t age_seconds, keep, size;
};

struct table {
	struct run_summary *items; /* owned; newest first */
	size_t count;
	bool failed;
};

static bool collect(void *context, const struct run_summary *summary)
{
	struct table *table = context;
	struct run_summary *items = reallocarray(table->items, table->count + 1, sizeof(*items));
	table->failed = !items;
	if (!items)
		return false;
	table->items = items;
	items[table->count++] = *summary;
	return true;
}

static bool is_old(const struct run_summary *run, const struct limits *limits, int64_t now_ns)
{
	int64_t age = now_ns - run->started_ns;
	return age > 0 && (uint64_t)age / 1000000000 >= limits->age_seconds;
}

/* The rule of each run, from the newest on: the help text says it in words. */
static bool shall_go(const struct run_summary *run, const struct limits *limits, size_t place, uint64_t size_so_far,
		     int64_t now_ns)
{
	if (run->state == RUN_RUNNING || (limits->by_count && place < limits->keep))
		return false;
	if (limits->by_size && size_so_far > limits->size)
		return true;
	if (limits->by_age)
		return is_old(run, limits, now_ns);
	return limits->by_count && !limits->by_size;
}

static int collect_garbage(const char *home, const struct table *table, const struct limits *limits)
{
	int64_t now_ns = clock_realtime_ns();
	uint64_t kept = 0, freed = 0, removed = 0;
	int status = EXIT_OK;
	for (size_t i = 0; i < table->count; i++) {
		const struct run_summary *run = &table->items[i];
		struct err err = {.number = 0};
		if (!shall_go(run, limits, i, kept + run->size, now_ns)) {
			kept += run->size;
		} else if (run_remove(home, run->id, &err)) {
			freed += run->size;
			removed++;
		} else {
			status = render_error(&err);
		}
	}
	CLEANUP_BUF struct buf out = {.limit = 4096};
	buf_append_text(&out, "removed ");
	render_counted(&out, removed, "run", "runs");
	buf_append_text(&out, ", freed ");
	render_size(&out, freed);
	buf_append_char(&out, '\n');
	render_out(stdout, &out);
	return status;
}

static int run(int argc, char **argv)
{
	char home[PATH_MAX];
	struct limits limits = {.by_age = false};
	struct table table = {.count = 0};
	struct arguments rest = {.most = 0};
	struct err err = {.number = 0};
	int status;
	const struct option_row rows[] = {
	    {.name = "older", .seconds = &limits.age_seconds, .given = &limits.by_age},
	    {.name = "keep", .number = &limits.keep, .given = &limits.by_count},
	    {.name = "max-size", .size = &limits.size, .given = &limits.by_size},
	};
	if (!options_parse(&command_gc, argc, argv, rows, 3, &rest, &status))
		return status;
	if (!limits.by_age && !limits.by_count && !limits.by_size)
		return options_mistake(&command_gc, "one of --older, --keep, --max-size is needed", "options");
	if (!store_home(home, sizeof(home), false, &err) || !run_list(home, collect, &table, &err)) {
		free(table.items);
		return render_error(&err);
	}
	status = collect_garbage(home, &table, &limits);
	free(table.items);
	return status;
}

const struct command command_gc = {
    .name = "gc",
    .usage = "gc [--older D] [--keep N] [--max-size S]",
    .help = "Remove old runs.\n\n"
	    "  --older D      remove runs that started at least D ago (30d, 12h, 2w)\n"
	    "  --keep N       never remove the N newest; alone: remove all others\n"
	    "  --max-size S   remove the oldest until all together take at most S (500M, 2G)\n\n"
	    "A run that is still running is never removed.\n",
    .run = run,
};
