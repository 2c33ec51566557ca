/*
 * What finding and reading of runs share. Not public.
 */
#pragma once

#include "store_file.h"

/* The run in this folder. */
struct run *run_open_folder(const char *folder, const char *id, struct err *err);
/* The file of an open run; borrowed. `file` receives its path. */
sqlite3 *run_database(const struct run *run, const char **file);
/* Every run's id, in no order. No runs yet is no error. */
bool store_each_run(const char *home, bool (*visit)(void *context, const char *id), void *context, struct err *err);
/* The run that is meant. Does not open it: a damaged one can be found, to be removed. */
bool store_find(const char *home, const char *which, char id[RUN_ID_SIZE], struct err *err);
