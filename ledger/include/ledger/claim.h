/*
 * What a claim is worth: the weakest of what it was made from, and never more than claims of its sort (specs/claims.def,
 * specs/hows.def). One place for all commands and exports, so that none says more than another.
 */
#pragma once

#include "base/bytes.h"
#include "ledger/record.h"

enum claim {
#define CLAIM(identifier, ...) CLAIM_##identifier,
#include "claims.def"
#undef CLAIM
	CLAIM_COUNT
};

enum record_class claim_weaker(enum record_class left, enum record_class right);

/* Of a claim that was made from records of which the weakest is worth `weakest`. */
enum record_class claim_class(enum claim claim, enum record_class weakest);

/* Of an effect, by the class of its record and how it is known; a `how` that is none of ours was said by somebody. */
enum record_class claim_effect_class(enum record_class recorded, uint32_t how);

/* A class by its name; telemetry when it is absent or not known here: the weaker sentence. */
enum record_class claim_class_named(const char *name);

/* What a record says of itself, from its canonical JSON, at less than the cost of parsing it. Telemetry when it does not. */
enum record_class claim_class_recorded(struct bytes json);
