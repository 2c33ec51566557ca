/*
 * The screen at a run's end.
 */
#pragma once

#include <stdio.h>

#include "ledger/store.h"

/* What the run did, in a few lines, and how to see more. */
bool render_run_screen(FILE *out, const char *home, struct run *run, struct err *err);
