/*
 * One record, and the proof that it is in its run (specs/LEDGER.md section 10).
 */
#pragma once

#include "ledger/store.h"

/* Append the tlog-proof of a record, under the seal or, without one, the first checkpoint that covers it. */
bool receipt_make(const char *home, const char *run, uint64_t seq, struct buf *out, struct err *err);
/* Append the certificate of the key that signed the checkpoints, and a line end. */
bool receipt_certificate(const char *home, const char *run, struct buf *out, struct err *err);
