/*
 * Private to this room: what a run's first record says.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "descriptors.h"
#include "guardian/guardian.h"
#include "ledger/record.h"
#include "os/probe.h"

struct description {
	struct arena arena; /* holds what `start` refers to */
	struct record_run_start start;
	struct record_descriptor descriptors[DESCRIPTORS_LIMIT];
	struct record_probe probes[PROBE_COUNT];
	char patterns[PATTERNS_LIMIT][DIGEST_TEXT_SIZE];
	uint64_t start_mono_ns;
};

/* Everything that is known before the command begins. */
bool describe_run(const struct guardian_config *config, const char *run, struct description *about, struct err *err);
/* What the scribe says of the keys: fingerprint of the host's, those of the run's with a NUL each, how the host's is exposed. */
void describe_keys(struct description *about, struct bytes host, struct bytes keys, struct bytes exposed);
/* What was found of the host; the connector is the monitor's to say. */
void describe_host(struct description *about, const struct probe_result results[PROBE_COUNT]);
void describe_free(struct description *about);
