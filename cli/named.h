/*
 * What people name on the command line: runs, by what they are called or by where they lie, and keys.
 */
#pragma once

#include <limits.h>

#include "ledger/certificate.h"

struct named_run {
	char id[RUN_ID_SIZE];
	char folder[PATH_MAX];
	char home[PATH_MAX]; /* the state folder around it */
};

/*
 * RUN as everywhere, or the path of a run's folder (with a '/' in it). False with the error; `missing` then says that there
 * is no such run.
 */
bool named_run(const char *text, struct named_run *out, struct err *err);

/* A fingerprint, or a file that holds one or a key as notes have it (NAME+ID+KEY). */
bool named_key(const char *text, char fingerprint[ED25519_FINGERPRINT_SIZE], struct err *err);
