/*
 * The passphrase of a sealed host key: from a descriptor, or asked for on the terminal. Never from the command line or the
 * environment, which others can read.
 */
#pragma once

#include "ledger/host_key.h"
#include "options.h"

/* `--passphrase-fd N`. */
struct passphrase_source {
	bool given;
	uint64_t descriptor;
};
#define PASSPHRASE_OPTION(source)                                                                 \
	{                                                                                         \
		.name = "passphrase-fd", .number = &(source).descriptor, .given = &(source).given \
	}

/*
 * What opens the host key of this state folder; not present when it is not sealed, or not there. False with `err` when there
 * is nobody to ask.
 */
bool passphrase_ask(const char *home, const struct passphrase_source *source, struct passphrase *out, struct err *err);
/* A new one: on a terminal it is asked for twice. */
bool passphrase_choose(const struct passphrase_source *source, struct passphrase *out, struct err *err);
