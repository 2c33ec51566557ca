#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "command.h"
#include "ledger/receipt.h"
#include "named.h"
#include "options.h"
#include "render.h"

static int run(int argc, char **argv)
{
	bool certificate = false;
	struct arguments rest = {.least = 1, .most = 2};
	struct named_run named;
	struct err err = {.number = 0};
	uint64_t seq = 0;
	int status;
	const struct option_row rows[] = {{.name = "certificate", .flag = &certificate}};

	if (!options_parse(&command_receipt, argc, argv, rows, 1, &rest, &status))
		return status;
	if (rest.count != (certificate ? 1 : 2))
		return options_mistake(&command_receipt,
				       certificate ? "a run alone is needed" : "a run and a seq are needed",
				       rest.items[0]);
	if (!certificate && !text_decimal_parse(bytes_of(rest.items[1]), &seq))
		return options_mistake(&command_receipt, "a seq is a number", rest.items[1]);
	CLEANUP_BUF struct buf out = {.limit = 1 << 20};
	bool good = named_run(rest.items[0], &named, NULL, &err) &&
		    (certificate ? receipt_certificate(named.home, named.id, &out, &err)
				 : receipt_make(named.home, named.id, seq, &out, &err));
	named_release(&named);
	return good ? render_out(stdout, &out) : render_error(&err);
}

const struct command command_receipt = {
    .name = "receipt",
    .usage = "receipt RUN SEQ | receipt --certificate RUN",
    .help = "Print one record with the proof that it is in the run.\n\n"
	    "The proof is a C2SP tlog-proof: the record (Base64, after `extra`), its index, the\n"
	    "hashes up to the root, and the checkpoint that was signed. Who checks it needs the\n"
	    "run's key, which --certificate prints as the host's key certified it.\n",
    .run = run,
};
