#include <inttypes.h>
#include <stdio.h>

#include "command.h"
#include "ledger/claim.h"
#include "ledger/verify.h"
#include "named.h"
#include "options.h"
#include "passphrase.h"
#include "render.h"

static int run(int argc, char **argv)
{
	struct arguments rest = {.least = 1, .most = 1};
	struct passphrase passphrase = {.present = false};
	struct passphrase_source source = {.given = false};
	const struct option_row rows[] = {PASSPHRASE_OPTION(source)};
	struct named_run named;
	struct err err = {.number = 0};
	uint64_t covered;
	int status;

	if (!options_parse(&command_recover, argc, argv, rows, 1, &rest, &status))
		return status;
	bool good = named_run(rest.items[0], &named, NULL, &err) &&
		    passphrase_ask(named.home, &source, &passphrase, &err) &&
		    verify_recover(named.home, named.id, passphrase_bytes(&passphrase), &covered, &err);
	passphrase_wipe(&passphrase);
	named_release(&named);
	if (!good)
		return render_error(&err);
	CLEANUP_BUF struct buf out = {.limit = 4096};
	buf_append_format(&out, "run %s: recovered", named.id);
	render_class(&out, stdout, claim_class(CLAIM_seal, CLASS_external), NULL);
	buf_append_text(&out, "; its own key had signed ");
	render_counted(&out, covered, "record", "records");
	buf_append_text(&out, ". It stays incomplete.\n");
	return render_out(stdout, &out);
}

const struct command command_recover = {
    .name = "recover",
    .usage = "recover RUN [--passphrase-fd N]",
    .help = "Close a run that was never sealed.\n\n"
	    "After a crash a run is intact as far as its last checkpoint reaches. This checks\n"
	    "it, says in a last record how far that was, and has the host's key seal it. It\n"
	    "never becomes complete: what came last may have been lost, or taken away.\n",
    .run = run,
};
