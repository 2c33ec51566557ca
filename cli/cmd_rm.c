#include <limits.h>

#include "command.h"
#include "ledger/store.h"
#include "options.h"
#include "render.h"

static int run(int argc, char **argv)
{
	char home[PATH_MAX];
	struct arguments runs = {.least = 1, .most = -1};
	struct err err = {.number = 0};
	int status = EXIT_OK;
	if (!options_parse(&command_rm, argc, argv, NULL, 0, &runs, &status))
		return status;
	if (!store_home(home, sizeof(home), false, &err))
		return render_error(&err);
	for (int i = 0; i < runs.count; i++) {
		err_clear(&err);
		if (!run_remove(home, runs.items[i], &err))
			status = render_error(&err);
	}
	return status;
}

const struct command command_rm = {
    .name = "rm",
    .usage = "rm RUN...",
    .help = "Remove runs.\n\nA run that is still running is not removed.\n",
    .run = run,
};
