/*
 * What a host states of a run for supply chain tools (specs/INTOTO.md): two in-toto statements, each signed.
 */
#pragma once

#include "ledger/export.h"
#include "ledger/verify.h"

/*
 * Write them to `path`, which must not exist yet; "-" is standard output. The run is verified first, and its files are
 * looked at where they are. Needs the key that certified the run's.
 */
bool attestation_write(const struct export_request *request, const char *path, struct err *err);

/* Is this the path of a file that begins as attestations do? */
bool attestation_is(const char *path);
/*
 * Does such a file say what its host signed? `folder`, `run` and `log` of the request are not looked at. Of `out`, what
 * only the records could tell stays empty.
 */
void attestation_verify(const char *path, const struct verify_request *request, struct verification *out);
