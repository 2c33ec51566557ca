/*
 * What writing and reading of bundles share. Not public.
 */
#pragma once

#include "ledger/bundle.h"
#include "store_file.h"

/* In this order; the last may be missing. */
enum bundle_part { BUNDLE_STORE, BUNDLE_SEAL, BUNDLE_LOG, BUNDLE_PARTS };

enum { BUNDLE_HEADER_LIMIT = 4096, BUNDLE_LOG_LIMIT = 1 << 20 };

struct part {
	uint64_t size;
	struct digest digest;
};

/* The first line, without its end. */
void bundle_header(struct buf *out, const char *run, const struct part *parts, size_t count);
const char *bundle_part_name(size_t part);
