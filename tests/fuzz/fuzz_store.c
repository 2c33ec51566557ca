/*
 * A run's file that somebody manipulated: reading it ends, says why it is not whole, and shows nothing that would not fit
 * what the header promises. And what is made of it on the way to a screen: the tree and the counts.
 *
 * Input: the file.
 */
#include <sys/stat.h>

#include "fuzz.h"
#include "ledger/store.h"
#include "report.h"
#include "tree.h"

#define RUN "0123456789ABCDEFGHJKMNPQRS"
#define FILE_NAME "runs/" RUN "/run.sqlite"

static int folder = -1;
static const char home[] = PRIVATE_PLACE;

static void prepare(void)
{
	folder = private_place();
	need(mkdirat(folder, "runs", 0700) == 0 && mkdirat(folder, "runs/" RUN, 0700) == 0);
}
PREPARE_BY(prepare)

struct seen {
	const struct run_filter *filter;
	uint64_t count;
	unsigned sum;
};

static bool see(void *context, uint64_t seq, const struct record_head *head, struct bytes json)
{
	struct seen *seen = context;
	const struct run_filter *filter = seen->filter;

	(void)seq;
	need(head->type <= RECORD_TYPE_COUNT && head->kind <= EFFECT_KIND_COUNT && head->how <= HOW_COUNT &&
	     head->state <= RESULT_REFUSED);
	need(!filter->by_type || head->type == (uint32_t)filter->type);
	need(!filter->by_kind || head->kind == (uint32_t)filter->kind);
	need(!filter->failed_only || head->state == RESULT_FAILED || head->state == RESULT_REFUSED);
	for (size_t i = 0; i < json.size; i++)
		seen->sum += (unsigned char)json.data[i];
	return ++seen->count < 1000;
}

static void visit_all(struct run *run)
{
	static const struct run_filter filters[] = {
	    {.from_seq = 0},
	    {.by_type = true, .type = RECORD_effect},
	    {.by_kind = true, .kind = EFFECT_proc_exec},
	    {.by_pid = true, .pid = 1},
	    {.failed_only = true},
	};

	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
		struct seen seen = {.filter = &filters[i]};
		struct err err = {.number = 0};
		need(run_visit(run, &filters[i], see, &seen, &err) || err_is_set(&err));
	}
}

static void check_tree(struct run *run)
{
	struct err err = {.number = 0};
	struct tree tree;

	if (!tree_load(&tree, run, &err)) {
		need(err_is_set(&err));
		return;
	}
	/* Every process is reached once from those without a parent, so whoever walks comes to an end. */
	size_t reached = 0;
	for (size_t i = 0; i < tree.count; i++) {
		reached += !tree.items[i].has_parent;
		for (size_t at = tree.items[i].first_child; at; at = tree.items[at - 1].next) {
			need(at - 1 > i && tree.items[at - 1].has_parent && reached <= tree.count);
			reached++;
		}
	}
	need(reached == tree.count);
	tree_free(&tree);
}

static bool list_one(void *context, const struct run_summary *summary)
{
	(void)context;
	need(strcmp(summary->id, RUN) == 0 && memchr(summary->name, 0, sizeof(summary->name)) &&
	     memchr(summary->reason, 0, sizeof(summary->reason)));
	need(summary->state == RUN_COMPLETE || summary->state == RUN_INCOMPLETE);
	need(summary->state == RUN_COMPLETE || summary->reason[0] || summary->ended_ns);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = {.number = 0};
	struct report report;
	struct open_set before = open_now();

	put_file(folder, FILE_NAME, (struct bytes){(const char *)data, size});
	need(run_list(home, list_one, NULL, &err));
	struct run *run = run_open(home, "0123", &err);
	need((run != NULL) != err_is_set(&err));
	if (run) {
		visit_all(run);
		check_tree(run);
		if (report_load(&report, home, run, &err))
			report_free(&report);
	}
	run_close(run);
	need_same_open(&before);
	return 0;
}
