/*
 * Effects bound to declared calls. Pure: what goes in is all that counts, so the same records give the same bindings, in the
 * monitor as the run goes on and from the ledger years later. Bounded: the oldest ended calls and processes are forgotten
 * when there are too many, and a binding that would need one says so.
 */
#pragma once

#include "attribute/call.h"
#include "attribute/profile.h"

enum binding_rule {
#define RULE(identifier, ...) RULE_##identifier,
#include "rules.def"
#undef RULE
	RULE_COUNT
};

enum binding_strength {
#define STRENGTH(identifier, ...) STRENGTH_##identifier,
#include "strengths.def"
#undef STRENGTH
	STRENGTH_COUNT
};

enum finding_code {
#define FINDING(identifier, ...) FINDING_##identifier,
#include "findings.def"
#undef FINDING
	FINDING_COUNT
};

enum { BINDING_CANDIDATES = 8 };

struct binding {
	enum binding_rule rule;
	enum binding_strength strength; /* of a binding to calls */
	uint64_t calls[BINDING_CANDIDATES]; /* numbers; more than one when ambiguous; none for runtime and none */
	size_t call_count;
	char evidence[160]; /* printable ASCII: which ancestor, argument or path; nothing of the agent verbatim but ids */
	bool outlived;      /* the call had ended */
};

/* What of an effect matters here. Views. */
struct attribute_effect {
	uint64_t seq, mono_ns;
	enum effect_code { ATTRIBUTE_EXEC, ATTRIBUTE_FILE_CHANGE, ATTRIBUTE_FILE_READ, ATTRIBUTE_CONNECT, ATTRIBUTE_EXIT, ATTRIBUTE_OTHER } code;
	uint64_t process;
	bool done;              /* it happened, or it is not known that it did not */
	struct bytes path, to;  /* as recorded */
	struct bytes host;      /* the name that the process asked for before, or absent */
	struct bytes address;   /* numeric */
	int port;
	const struct bytes *argv; /* of an exec, as the new program has it */
	size_t argv_count;
	struct bytes image;     /* path of what was mapped */
	struct bytes tag;       /* value of the profile's variable at an exec; absent when it is not set */
	int exit_code;          /* of an exit; -1 when not known */
	bool persistence;       /* a place that outlives the run and starts programs (evidence.md section 4) */
};

struct attribute;

/* `profile` and `workspace` (absolute) must outlive it. NULL: no memory. */
struct attribute *attribute_new(const struct profile *profile, struct bytes workspace);
void attribute_free(struct attribute *attribute);

/* A process was born. `inferred`: its parent is a guess. The first one is the agent. */
void attribute_process(struct attribute *attribute, uint64_t id, uint64_t parent, bool inferred);
/* A call was told of. Returns its number in the run, from 1; 0 when there are too many. */
uint64_t attribute_call(struct attribute *attribute, const struct call_sighting *sighting);
/* Bind an effect, and remember what it says of its process. */
void attribute_effect(struct attribute *attribute, const struct attribute_effect *effect, struct binding *binding);

/* A finding about an effect (by seq) or a call (by number); texts are static or live until the callback returns. */
struct finding {
	enum finding_code code;
	uint64_t effect, call; /* seq + 1, number; 0: not about one */
	const char *detail;    /* printable ASCII */
	const uint64_t *nearest;
	size_t nearest_count;
	unsigned lanes;        /* bit set of enum call_lane that were watched and say nothing */
};
typedef void (*finding_sink)(void *context, const struct finding *finding);
/* What follows for an effect at once. */
void attribute_findings(struct attribute *attribute, const struct attribute_effect *effect, const struct binding *binding, finding_sink sink, void *context);
/* At the end of the run: calls that nothing bears out, and what differs from what was declared. */
void attribute_finish(struct attribute *attribute, finding_sink sink, void *context);

const char *binding_rule_name(enum binding_rule rule);
const char *binding_strength_name(enum binding_strength strength);
const char *finding_code_name(enum finding_code code);
