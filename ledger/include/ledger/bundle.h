/*
 * A run in one file (specs/LEDGER.md section 9).
 */
#pragma once

#include <limits.h>
#include <stdio.h>

#include "ledger/export.h"

/*
 * Write a sealed run's bundle to `path`, which must not exist yet; "-" is standard output. With a redactor the run is
 * verified first, and the key that certified its own is needed.
 */
bool bundle_write(const struct export_request *request, const char *path, struct err *err);

/* A bundle that was unpacked into a state folder of its own. */
struct bundle {
	char home[PATH_MAX], folder[PATH_MAX];
	char run[RUN_ID_SIZE];
	char *log; /* owned: the part `log`, or NULL */
	size_t log_size;
	char *redaction; /* owned: the part `redaction`, or NULL */
	size_t redaction_size;
};

/* Is this the path of a file that begins as bundles do? */
bool bundle_is(const char *path);
/*
 * Unpack below the folder for temporary files; bundle_close() removes it. False with the error; `malformed` says whether
 * the file is at fault.
 */
bool bundle_open(const char *path, struct bundle *out, bool *malformed, struct err *err);
void bundle_close(struct bundle *bundle);
/* Take a bundle's run into a state folder, where it must not be yet. */
bool bundle_import(const struct bundle *bundle, const char *home, struct err *err);
