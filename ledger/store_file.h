/*
 * What writing and reading of runs share. Not public.
 *
 *   <home>/runs/<RUN>/run.sqlite   the records
 *   <home>/runs/<RUN>/lock         locked by the scribe as long as it lives
 *   <home>/runs/<RUN>/reserve      room on the disk that closing the run may take
 *   <home>/runs/<RUN>/seal         the last checkpoint (specs/LEDGER.md)
 *   <home>/log.sqlite              the host log
 *   <home>/names/<NAME>            symbolic link whose text is the RUN
 */
#pragma once

#include <sqlite3.h>

#include "ledger/store.h"

#define STORE_FILE "run.sqlite"
#define STORE_LOCK "lock"
#define STORE_RESERVE "reserve"
#define STORE_SEAL "seal"
#define HOST_LOG_FILE "log.sqlite"

enum { STORE_PATH_SIZE = 4352, STORE_NAME_SIZE = 128, STORE_RESERVE_SIZE = 256 << 10 };
/* From these schemas on a run that is over has a seal, and a table of blobs. */
enum { SCHEMA_SEALED = 2, SCHEMA_BLOBS = 3 };

/* "<home>/runs", "<home>/runs/<run>", "<home>/names/<name>", …; false when too long. */
bool store_path(char out[STORE_PATH_SIZE], struct err *err, const char *home, ...) __attribute__((sentinel));
/* 26 canonical Crockford characters. */
bool store_is_run_id(const char *text);
/* Set the error from SQLite, in words that say what to do. */
bool store_sqlite_error(sqlite3 *db, const char *path, const char *what, struct err *err);
/* A path as SQLite's URI, with options ("immutable=1"). */
void store_uri(const char *path, const char *options, struct buf *out);
/* True while the scribe of the run in this folder is alive. */
bool store_is_locked(const char *folder);
/* The blobs of the record `seq`, in the transaction that stores it. */
bool store_put_blobs(sqlite3 *db, const char *file, uint64_t seq, const struct record_blobs *blobs, struct err *err);
/* Remove the run's folder and its files. */
bool store_remove_folder(const char *folder, struct err *err);
