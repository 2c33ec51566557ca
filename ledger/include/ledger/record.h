/*
 * The record codec: typed values to the bytes that are stored.
 *
 * A record is one canonical JSON object (specs/RECORDS.md). It is written without its `seq`, which the scribe assigns:
 * `seq_at` is the offset where the scribe inserts `"seq":N,` so that the keys stay in order.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/digest.h"
#include "ledger/effect.h"

enum record_type {
#define RECORD(identifier, ...) RECORD_##identifier,
#include "records.def"
#undef RECORD
	RECORD_TYPE_COUNT
};

enum gap_code {
#define GAP(identifier, ...) GAP_##identifier,
#include "gaps.def"
#undef GAP
	GAP_CODE_COUNT
};

enum { RECORD_SIZE_LIMIT = 65535, RECORD_BLOBS = 8, RECORD_BLOB_LIMIT = 2 << 20 };

/*
 * What was too long for a record, whole: it goes to the store beside it, and the record has its digest and size. `field` and
 * `name` (or NULL) are static; the bytes are owned.
 */
struct record_blob {
	const char *field, *name;
	struct buf bytes;
	struct digest digest;
};

struct record_blobs {
	struct record_blob items[RECORD_BLOBS];
	size_t count;
};

/* Free the blobs; zero-initialise before the first use. */
void record_blobs_reset(struct record_blobs *blobs);
#define CLEANUP_BLOBS __attribute__((cleanup(record_blobs_reset)))

/* In place of a type: the bytes behind are a blob of the next record. */
enum { RECORD_ENTRY_blob = 0xb10b };

/* What travels in front of a record on the ring: enough to index it without parsing. Same machine, same build. */
struct record_head {
	uint32_t type;   /* enum record_type, or RECORD_ENTRY_blob */
	uint32_t seq_at; /* where the sequence number goes in the body */
	uint32_t kind;   /* enum effect_kind, for effects */
	uint32_t how;    /* enum effect_how, for effects */
	uint32_t state;  /* enum result_state, for effects */
	int32_t pid;
	uint64_t process; /* run-wide process id, or 0 */
};

/* How the parent of a process is known (architecture: never claim more than was seen). */
enum lineage {
#define LINEAGE(identifier, ...) LINEAGE_##identifier,
#include "lineages.def"
#undef LINEAGE
};

struct record_process {
	struct record_stamp stamp;
	uint64_t id, parent; /* parent 0: none in the tree, or unknown */
	pid_t pid, parent_pid, session, group;
	uint64_t start_ticks; /* field 22 of /proc/PID/stat; with pid it names the process on this boot */
	enum lineage lineage;
	struct bytes executable;
	uint32_t uid, gid;
	redactions withheld;
};

struct record_reads_item {
	struct bytes path;
	uint32_t dev_major, dev_minor;
	uint64_t ino, count;
};

struct record_reads {
	struct record_stamp stamp;
	uint64_t process;
	pid_t pid;
	const struct record_reads_item *items; /* only those read more than once */
	size_t count;
	uint64_t total_files, total_reads;
	redactions withheld;
};

struct record_gap {
	struct record_stamp stamp;
	enum gap_code code;
	uint64_t process; /* 0: not about one */
	pid_t pid;
	uint64_t count;      /* how much, when it can be counted; else 0 */
	const char *syscall; /* static or NULL */
	struct bytes detail;
};

struct record_descriptor {
	int fd;
	struct bytes path;       /* what /proc says it is */
	struct bytes access;     /* "r", "w", "rw" */
	struct effect_peer peer; /* connected sockets */
};

/* The keys of a run, one a use. */
enum key_use {
#define USE(identifier, ...) USE_##identifier,
#include "uses.def"
#undef USE
	USE_COUNT
};

/* What a probe of the host found (probes.def). */
struct record_probe {
	struct bytes id, state, detail,
	    follows; /* `follows` absent unless it is missing; `detail` when there is none */
};

struct record_run_start {
	struct record_stamp stamp;
	struct bytes run, name; /* name absent when not given */
	struct bytes *argv;
	size_t argv_count;
	struct bytes cwd, host, kernel, version, build;
	struct bytes backend, lens, results, births;
	struct bytes host_key, key_exposed; /* fingerprint; how others could use that key, absent when they could not */
	struct bytes keys[USE_COUNT];       /* fingerprints of the run's keys, by use (uses.def) */
	uint32_t uid, gid;
	bool no_new_privs, io_uring_allowed;
	struct record_descriptor *descriptors;
	size_t descriptor_count;
	const struct record_probe *probes;
	size_t probe_count;
	struct record_probe *connector;           /* the one of them that is known last; NULL: none */
	const char (*patterns)[DIGEST_TEXT_SIZE]; /* digests of the user's own patterns for secrets */
	size_t pattern_count;
	redactions withheld;
};

struct record_run_end {
	struct record_stamp stamp;
	bool complete;
	struct bytes reason; /* why not complete */
	int wait_status;     /* of the agent; -1 when unknown */
	uint64_t effects, processes, gaps;
	uint64_t by_kind[EFFECT_KIND_COUNT];
	uint64_t by_how[HOW_COUNT];
	uint64_t by_state[4]; /* enum result_state */
	bool tree_was_ended;  /* processes were still alive and were ended */
};

/* The scribe's last word. */
struct record_closing {
	struct record_stamp stamp;
	bool complete;
	struct bytes reason;             /* why not complete */
	uint64_t records, effects, lost; /* `records` with this one; `lost` could not be stored */
};

/* The last word on a run whose scribe could not speak it. */
struct record_recovery {
	struct record_stamp stamp;
	uint64_t covered; /* records below the last checkpoint */
	struct bytes reason;
};

/*
 * Append one record body to `out` and fill `head`. An effect that would exceed RECORD_SIZE_LIMIT is cut (argv first,
 * then args, then text) and says what in the list `args.cut`; what was cut is added to `blobs` (NULL: it is lost) and named
 * in the record. Returns false only when `out` failed.
 */
bool record_effect(struct buf *out, struct record_head *head, const struct effect *effect, struct record_blobs *blobs);
bool record_process(struct buf *out, struct record_head *head, const struct record_process *process);
bool record_reads(struct buf *out, struct record_head *head, const struct record_reads *reads);
bool record_gap(struct buf *out, struct record_head *head, const struct record_gap *gap);
bool record_run_start(struct buf *out, struct record_head *head, const struct record_run_start *start,
		      struct record_blobs *blobs);
bool record_run_end(struct buf *out, struct record_head *head, const struct record_run_end *end);

bool record_closing(struct buf *out, struct record_head *head, const struct record_closing *closing);
bool record_recovery(struct buf *out, struct record_head *head, const struct record_recovery *recovery);

/* Put the sequence number into a body: `out` receives the stored bytes. False when `head` does not fit the body. */
bool record_seal(struct buf *out, const struct record_head *head, struct bytes body, uint64_t seq);

/* Wire names; static. A type's name is its schema ("assure.effect/1"). */
const char *record_type_name(enum record_type type);
const char *gap_code_name(enum gap_code code);
const char *lineage_name(enum lineage lineage);
const char *key_use_name(enum key_use use);
const char *record_lane_name(enum record_lane lane);
const char *record_class_name(enum record_class class);
/* The type with this schema; false when there is none. */
bool record_type_find(const char *name, enum record_type *type);
