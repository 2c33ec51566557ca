/*
 * An effect: one thing that a process of the tree did, or tried to do, to the machine. The value that goes down the
 * house from decode to record; specs/EFFECTS.md gives its JSON form.
 *
 * Everything here is a view: bytes belong to the arena of whoever made the effect.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/redact.h"

enum effect_kind {
#define EFFECT(identifier, ...) EFFECT_##identifier,
#include "effects.def"
#undef EFFECT
	EFFECT_KIND_COUNT
};

enum effect_how {
#define HOW(identifier, ...) HOW_##identifier,
#include "hows.def"
#undef HOW
	HOW_COUNT
};

enum result_state { RESULT_UNKNOWN, RESULT_OK, RESULT_FAILED, RESULT_REFUSED };
enum result_by { BY_NOBODY, BY_POLICY, BY_SELF, BY_UNSUPPORTED };

/* An object of a file system. */
/* By which way a record came, and what it can be worth at most. */
enum record_lane {
#define LANE(identifier, ...) LANE_##identifier,
#include "lanes.def"
#undef LANE
};

enum record_class {
#define CLASS(identifier, ...) CLASS_##identifier,
#include "classes.def"
#undef CLASS
};

/* What every record has. */
struct record_stamp {
	uint64_t mono_ns; /* since the run's start */
	int64_t realtime_ns;
	enum record_lane lane;
	enum record_class class;
};

struct effect_object {
	struct bytes path;      /* absolute, as the agent sees it; absent when it has none */
	struct bytes host_path; /* where the host sees it; absent when the same */
	struct bytes as_given;  /* the argument verbatim; absent when equal to `path` */
	bool has_inode;
	uint32_t dev_major, dev_minor;
	uint64_t ino;
	int64_t born_ns; /* not recorded: tells a file from the next one with its number; 0 when not known */
	uint16_t type;   /* S_IFMT bits when known, else 0 */
};

struct effect_process {
	uint64_t id; /* unique in the run, never used again; the agent is 1 */
	pid_t pid, tid;
	struct bytes executable;
};

/* Another process that a call names. */
struct effect_target {
	bool present;
	uint64_t id; /* 0 when it is not of the tree */
	pid_t ours;  /* our number of the process, when it is one and could be found; not recorded */
	int64_t pid; /* as given: 0, -1 and negative process groups keep their meaning */
	struct bytes executable;
};

/* A socket address. */
struct effect_peer {
	bool present;
	struct bytes family;         /* "inet", "inet6", "unix", "netlink", ... or the number as text */
	struct bytes address;        /* numeric address; absent for families without one */
	int port;                    /* -1 when the family has none */
	struct bytes path;           /* unix: path; abstract names begin with '@' */
	struct bytes protocol;       /* "tcp", "udp", "mptcp", ... when the socket says so */
	struct effect_object object; /* unix sockets in the file system */
};

struct effect_image {
	bool present;
	struct effect_object object;
	struct bytes sha256;        /* hexadecimal; absent unless asked for */
	struct bytes *interpreters; /* #! chain, outermost script first */
	size_t interpreter_count;
	bool has_argv; /* when it is not what the call passed */
	struct bytes *argv;
	size_t argv_count;
	uint64_t argv_total; /* as in struct effect */
};

enum effect_value_type { VALUE_INT, VALUE_UINT, VALUE_TEXT, VALUE_BYTES, VALUE_LIST, VALUE_INT_LIST, VALUE_BOOL };

/* One entry of `args`. */
struct effect_value {
	const char *name; /* the man page's field name; static */
	enum effect_value_type type;
	union {
		int64_t number;
		uint64_t unsigned_number;
		const char *text; /* static */
		struct bytes bytes;
		struct {
			struct bytes *items;
			size_t count;
		} list;
		struct {
			int64_t *items;
			size_t count;
		} numbers;
		bool truth;
	};
};

enum { EFFECT_VALUE_LIMIT = 24, EFFECT_FLAG_LIMIT = 40 };

struct effect_result {
	enum result_state state;
	int error; /* errno when failed or refused */
	bool has_value;
	int64_t value;
	enum result_by by;
	bool undelivered; /* done, but the caller was gone before it could be told */
};

struct effect {
	enum effect_kind kind;
	const char *syscall; /* name from the table; NULL for effects without one (an exit by signal) */
	enum effect_how how;
	struct record_stamp stamp;
	struct effect_process process;
	struct effect_object object;
	struct effect_object to;
	struct bytes to_text; /* text of a symbolic link */
	struct effect_peer peer;
	struct effect_peer local; /* own address, where a call is about it (bind, listen) */
	struct effect_target target;
	bool has_argv;
	struct bytes *argv;
	size_t argv_count;
	uint64_t argv_total; /* elements that the call really has, when the list was cut; else 0 */
	struct bytes cwd;
	struct effect_image image;
	const char *flags[EFFECT_FLAG_LIMIT]; /* names from specs/flags.def */
	size_t flag_count;
	bool has_flags;
	uint64_t flags_rest; /* bits without a name */
	bool has_mode;
	uint32_t mode;
	struct effect_value values[EFFECT_VALUE_LIMIT];
	size_t value_count;
	bool has_status;                /* proc.exit */
	int status_code, status_signal; /* one of them; -1 when unknown */
	bool status_core;
	struct effect_result result;
	redactions withheld;    /* secrets that were taken out (withhold.h) */
	struct bytes delegated; /* which delegate was asked (specs/delegates.def); absent when none */
	struct bytes note;
};

/* Wire names; static. */
const char *effect_kind_name(enum effect_kind kind);
const char *effect_kind_label(enum effect_kind kind);
const char *effect_how_name(enum effect_how how);
/* How loudly an effect of this kind is reported, from effects.def. */
enum severity { SEVERITY_info, SEVERITY_low, SEVERITY_medium, SEVERITY_high };
enum severity effect_kind_severity(enum effect_kind kind);
const char *result_state_name(enum result_state state);
/* The kind, way of knowing or state with this wire name; false when there is none. */
bool effect_kind_find(const char *name, enum effect_kind *kind);
bool effect_how_find(const char *name, enum effect_how *how);
bool result_state_find(const char *name, enum result_state *state);
