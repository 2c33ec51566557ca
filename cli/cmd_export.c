#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "ledger/bundle.h"
#include "named.h"
#include "options.h"
#include "render.h"

static int run_export(int argc, char **argv)
{
	const char *output = NULL;
	struct arguments rest = {.least = 1, .most = 1};
	struct named_run named;
	struct err err = {.number = 0};
	int status;
	const struct option_row rows[] = {{.name = "output", .text = &output}};

	if (!options_parse(&command_export, argc, argv, rows, 1, &rest, &status))
		return status;
	if (!output)
		return options_mistake(&command_export, "--output FILE is needed", "options");
	bool good = named_run(rest.items[0], &named, NULL, &err) && bundle_write(named.home, named.id, output, &err);
	named_release(&named);
	return good ? EXIT_OK : render_error(&err);
}

static int run_import(int argc, char **argv)
{
	char home[PATH_MAX];
	struct arguments rest = {.least = 1, .most = 1};
	struct bundle bundle;
	struct err err = {.number = 0};
	bool malformed;
	int status;

	if (!options_parse(&command_import, argc, argv, NULL, 0, &rest, &status))
		return status;
	if (!store_home(home, sizeof(home), true, &err) || !bundle_open(rest.items[0], &bundle, &malformed, &err))
		return render_error(&err);
	bool good = bundle_import(&bundle, home, &err);
	CLEANUP_BUF struct buf out = {.limit = 4096};
	buf_append_format(&out, "run %s: imported; check it: assure verify %s --key KEY\n", bundle.run, bundle.run);
	bundle_close(&bundle);
	return good ? render_out(stdout, &out) : render_error(&err);
}

const struct command command_export = {
    .name = "export",
    .usage = "export RUN --output FILE",
    .help = "Write a sealed run into one file, which can be checked anywhere.\n\n"
	    "  --output FILE   where to; it must not exist yet; - is standard output\n\n"
	    "The file (FILE.assure by custom) holds the run as it was sealed, its seal, and what\n"
	    "the host log says of it. `assure verify FILE` checks it.\n",
    .run = run_export,
};

const struct command command_import = {
    .name = "import",
    .usage = "import FILE",
    .help = "Take the run out of a bundle into this host's state folder.\n\n"
	    "This host's log does not know it: `assure verify RUN --key KEY` names the key of\n"
	    "the host that made it.\n",
    .run = run_import,
};
