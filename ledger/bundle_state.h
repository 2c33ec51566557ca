/*
 * What writing and reading of bundles share. Not public.
 */
#pragma once

#include "ledger/bundle.h"
#include "store_file.h"

/* In this order; the last two may be missing. */
enum bundle_part { BUNDLE_STORE, BUNDLE_SEAL, BUNDLE_LOG, BUNDLE_REDACTION, BUNDLE_PARTS };

enum { BUNDLE_HEADER_LIMIT = 4096, BUNDLE_LOG_LIMIT = 1 << 20, BUNDLE_REDACTION_LIMIT = 1 << 23 };

struct part {
	enum bundle_part which;
	uint64_t size;
	struct digest digest;
};

/* The first line, without its end. */
void bundle_header(struct buf *out, const char *run, const struct part *parts, size_t count);
const char *bundle_part_name(enum bundle_part part);

/* A folder of our own among the temporary files; store_remove_folder() removes it. */
bool stage_make(char *out, size_t size, struct err *err);
