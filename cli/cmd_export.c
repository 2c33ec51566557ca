#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "ledger/attestation.h"
#include "ledger/bundle.h"
#include "named.h"
#include "options.h"
#include "passphrase.h"
#include "render.h"

/* The records may be a bundle's; the key is this host's. */
static bool write_attestation(const struct named_run *named, const char *output, const struct passphrase_source *source,
			      struct err *err)
{
	char home[PATH_MAX];
	struct passphrase passphrase = {.present = false};
	struct attestation_request request = {
	    .home = named->home, .run = named->id, .key_home = named->is_bundle ? home : named->home};
	bool good =
	    store_home(home, sizeof(home), false, err) && passphrase_ask(request.key_home, source, &passphrase, err);

	request.passphrase = passphrase_bytes(&passphrase);
	good = good && attestation_write(&request, output, err);
	passphrase_wipe(&passphrase);
	return good;
}

static int run_export(int argc, char **argv)
{
	const char *output = NULL, *format = "bundle";
	struct arguments rest = {.least = 1, .most = 1};
	struct named_run named;
	struct err err = {.number = 0};
	int status;
	struct passphrase_source source = {.given = false};
	const struct option_row rows[] = {
	    {.name = "format", .text = &format}, {.name = "output", .text = &output}, PASSPHRASE_OPTION(source)};

	if (!options_parse(&command_export, argc, argv, rows, 3, &rest, &status))
		return status;
	if (!output)
		return options_mistake(&command_export, "--output FILE is needed", "options");
	bool intoto = strcmp(format, "intoto") == 0;
	if (!intoto && strcmp(format, "bundle") != 0)
		return options_mistake(&command_export, "--format: bundle or intoto", format);
	bool good =
	    named_run(rest.items[0], &named, NULL, &err) && (intoto ? write_attestation(&named, output, &source, &err)
								    : bundle_write(named.home, named.id, output, &err));
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
    .usage = "export RUN --output FILE [--format bundle|intoto]",
    .help = "Write a sealed run into one file, which can be checked anywhere.\n\n"
	    "  --output FILE   where to; it must not exist yet; - is standard output\n"
	    "  --format F      bundle (default): the run as it was sealed, its seal, and what the\n"
	    "                  host log says of it (FILE.assure by custom); intoto: what the host\n"
	    "                  states of the run and of the files that came of it, without the\n"
	    "                  records, as in-toto attestations (FILE.intoto.jsonl by custom)\n\n"
	    "`assure verify FILE` checks both. Attestations are signed anew by the host's key, as\n"
	    "they say; the digest of a file is stated when it can be shown that the file has not\n"
	    "been changed since the run ended.\n",
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
