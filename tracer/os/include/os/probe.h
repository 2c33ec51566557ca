/*
 * What this host gives: each thing that a run needs is done once, in a child of its own with a time limit, so that a
 * hang or a crash is an answer too. The list is specs/probes.def.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

enum probe {
#define PROBE(identifier, ...) PROBE_##identifier,
#include "probes.def"
#undef PROBE
	PROBE_COUNT
};

enum probe_weight { PROBE_WEIGHT_required, PROBE_WEIGHT_optional, PROBE_WEIGHT_note };

enum probe_state {
	PROBE_OK,
	PROBE_MISSING,
	PROBE_UNKNOWN, /* it could not be tried, most often because something before it is missing */
};

/* How the start of a run knows it. */
enum probe_shown { PROBE_SHOWN_by_trial, PROBE_SHOWN_by_start, PROBE_SHOWN_by_call };

/* A row of specs/probes.def. */
struct probe_row {
	const char *id, *name;
	enum probe_weight weight;
	enum probe_shown shown;
	const char *purpose, *follows, *todo;
};

struct probe_result {
	enum probe_state state;
	char detail[320]; /* for people; may hold bytes of paths, which cli/ escapes */
};

extern const struct probe_row probe_rows[PROBE_COUNT];

const char *probe_state_name(enum probe_state state);

/* Try one. Waits for its child, and ends whatever it leaves behind. To be called while there is one thread. */
void probe_run(enum probe probe, struct probe_result *result);
/* Try all. */
void probe_run_all(struct probe_result results[PROBE_COUNT]);

/*
 * Those that are tried at each start of a run, in one child meanwhile. What it has not answered in time is unknown; it
 * keeps nobody from starting.
 */
struct probe_trial {
	pid_t child; /* -1: none could be made */
	int answer;
};
void probe_trial_begin(struct probe_trial *trial);
/* Fills the results of all rows but those by_call: by_start are ok without detail. Waits for the child, briefly. */
void probe_trial_end(struct probe_trial *trial, struct probe_result results[PROBE_COUNT]);

/* Whether a run will work, judging from all results. */
bool probe_run_works(const struct probe_result results[PROBE_COUNT]);

/*
 * Whether ASSURE_PROBES ("kernel=missing,connector=missing") says that this one is missing. For tests and for trying
 * out: nothing can be made to be there.
 */
bool probe_overridden(const char *id);

/* The required things that cost next to nothing to check, before a run begins. False with one line that says what. */
bool probe_required(struct err *err);
