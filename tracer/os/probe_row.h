/*
 * Between the files of the probes: each function does one thing, in the child that was made for it, and says how it went.
 */
#pragma once

#include "os/probe.h"

/* One per row of specs/probes.def; `result` is "ok" without detail when they begin. */
#define PROBE(identifier, ...) void probe_try_##identifier(struct probe_result *result);
#include "probes.def"
#undef PROBE

/* Set state and detail. */
void probe_say(struct probe_result *result, enum probe_state state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* What went wrong, with the hint when there is one. */
void probe_say_error(struct probe_result *result, enum probe_state state, const struct err *err);
