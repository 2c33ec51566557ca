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

struct wishes {
	const char *output, *format;
	struct option_texts patterns;
	struct passphrase_source passphrase;
};

/* What the host signs. The records may be a bundle's; the key is this host's. */
static bool export_signed(const struct wishes *wishes, struct export_request *request, struct err *err)
{
	struct passphrase passphrase = {.present = false};
	bool good = passphrase_ask(request->key_home, &wishes->passphrase, &passphrase, err);

	request->passphrase = passphrase_bytes(&passphrase);
	good = good && (request->redactor ? bundle_write(request, wishes->output, err)
					  : attestation_write(request, wishes->output, err));
	request->passphrase = BYTES_NONE;
	passphrase_wipe(&passphrase);
	return good;
}

static bool export_run(const struct wishes *wishes, const struct named_run *named, const struct redactor *redactor,
		       struct err *err)
{
	char home[PATH_MAX];
	struct export_request request = {.home = named->home,
					 .run = named->id,
					 .key_home = named->is_bundle ? home : named->home,
					 .redactor = redactor};

	if (named->is_bundle && named->bundle.redaction) {
		err_set(err, 0, "export: what was withheld from this bundle is vouched for in the bundle alone");
		return err_hint(err, "export the run itself, on the host that recorded it");
	}
	if (named->is_bundle && !store_home(home, sizeof(home), false, err))
		return false;
	return redactor || strcmp(wishes->format, "intoto") == 0 ? export_signed(wishes, &request, err)
								 : bundle_write(&request, wishes->output, err);
}

static int run_export(int argc, char **argv)
{
	struct wishes wishes = {.format = "bundle"};
	struct arguments rest = {.least = 1, .most = 1};
	struct named_run named;
	struct redactor *redactor = NULL;
	struct err err = {.number = 0};
	int status;
	const struct option_row rows[] = {
	    {.name = "format", .text = &wishes.format},
	    {.name = "output", .text = &wishes.output},
	    {.name = "redact", .texts = &wishes.patterns},
	    PASSPHRASE_OPTION(wishes.passphrase),
	};

	if (!options_parse(&command_export, argc, argv, rows, sizeof(rows) / sizeof(rows[0]), &rest, &status))
		return status;
	if (!wishes.output)
		return options_mistake(&command_export, "--output FILE is needed", NULL);
	bool intoto = strcmp(wishes.format, "intoto") == 0;
	if (!intoto && strcmp(wishes.format, "bundle") != 0)
		return options_mistake(&command_export, "--format takes bundle or intoto", wishes.format);
	if (intoto && wishes.patterns.count > 0)
		return options_mistake(&command_export, "--redact is for bundles", NULL);
	if (wishes.patterns.count > 0 && !(redactor = redactor_new(wishes.patterns.items, wishes.patterns.count, &err)))
		return options_mistake(&command_export, err.text, "--redact");
	bool good = named_run(rest.items[0], &named, NULL, &err) && export_run(&wishes, &named, redactor, &err);
	named_release(&named);
	redactor_free(redactor);
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
    .usage = "export RUN --output FILE [--format bundle|intoto] [--redact REGEX]...",
    .help = "Write a sealed run into one file, which can be checked anywhere.\n\n"
	    "  --output FILE   where to; it must not exist yet; - is standard output\n"
	    "  --format F      bundle (default): the run as it was sealed, its seal, and what the\n"
	    "                  host log says of it (FILE.assure by custom); intoto: what the host\n"
	    "                  states of the run and of the files that came of it, without the\n"
	    "                  records, as in-toto attestations (FILE.intoto.jsonl by custom)\n"
	    "  --redact REGEX  in the bundle what matches is withheld, besides what looks like a\n"
	    "                  secret; repeatable. What was withheld nobody can check any more: the\n"
	    "                  host's key vouches for what is shown, and verify says so\n"
	    "  --passphrase-fd N   where the passphrase of a sealed host key is read from; else it\n"
	    "                  is asked for\n\n"
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
