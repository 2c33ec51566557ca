/*
 * Time as records carry it.
 */
#pragma once

#include <stdint.h>
#include <time.h>

#include "base/bytes.h"

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t clock_monotonic_ns(void);
/* Nanoseconds since the epoch of CLOCK_REALTIME. */
int64_t clock_realtime_ns(void);
/* RFC 3339 in UTC with nine digits of fraction: "2026-11-30T17:45:13.000000001Z" (30 characters and a NUL). */
void clock_rfc3339(int64_t realtime_ns, char out[31]);
/* Nanoseconds of such a time; 0 when it is none. */
int64_t clock_parse(const char *text);
