/*
 * What goes out to others: which run, whose key vouches for it, and what of it nobody else may see.
 */
#pragma once

#include "base/redact.h"
#include "ledger/store.h"

/* How what is signed after the seal says so. */
#define EXPORT_SIGNED "re-signed by host key"

struct export_request {
	const char *home, *run;          /* the state folder with the run */
	const char *key_home;            /* the one with the host's key */
	struct bytes passphrase;         /* of that key; absent when it is not sealed */
	const struct redactor *redactor; /* what is withheld; NULL: nothing */
};
