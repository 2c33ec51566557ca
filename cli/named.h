/*
 * What people name on the command line: runs, by what they are called or by where they lie, and keys.
 */
#pragma once

#include <limits.h>

#include "ledger/bundle.h"
#include "ledger/certificate.h"

struct named_run {
	char id[RUN_ID_SIZE];
	char folder[PATH_MAX];
	char home[PATH_MAX]; /* the state folder around it */
	bool is_bundle;
	struct bundle bundle; /* unpacked: `folder` and `home` are its own */
};

/*
 * RUN as everywhere, the path of a run's folder (with a '/' in it), or a bundle's. To be released whatever came of it;
 * `malformed` (may be NULL): whether it is a bundle that cannot be one.
 */
bool named_run(const char *text, struct named_run *out, bool *malformed, struct err *err);
void named_release(struct named_run *named);

/* A fingerprint, or a file that holds one or a key as notes have it (NAME+ID+KEY). */
bool named_key(const char *text, char fingerprint[ED25519_FINGERPRINT_SIZE], struct err *err);
