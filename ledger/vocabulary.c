#include "ledger/effect.h"
#include "ledger/record.h"

static const struct {
	const char *name, *label;
	enum severity severity;
} kinds[EFFECT_KIND_COUNT] = {
#define EFFECT(identifier, name, label, severity, help) [EFFECT_##identifier] = {name, label, SEVERITY_##severity},
#include "effects.def"
#undef EFFECT
};

static const char *const hows[HOW_COUNT] = {
#define HOW(identifier, name, class, help) [HOW_##identifier] = name,
#include "hows.def"
#undef HOW
};

static const char *const types[RECORD_TYPE_COUNT] = {
#define RECORD(identifier, name, help) [RECORD_##identifier] = name,
#include "records.def"
#undef RECORD
};

static const char *const gaps[GAP_CODE_COUNT] = {
#define GAP(identifier, name, help) [GAP_##identifier] = name,
#include "gaps.def"
#undef GAP
};

static const char *const lineages[] = {
#define LINEAGE(identifier, name, help) [LINEAGE_##identifier] = name,
#include "lineages.def"
#undef LINEAGE
};

static const char *const uses[USE_COUNT] = {
#define USE(identifier, name, help) [USE_##identifier] = name,
#include "uses.def"
#undef USE
};

static const char *const lanes[] = {
#define LANE(identifier, name, help) [LANE_##identifier] = name,
#include "lanes.def"
#undef LANE
};

static const char *const classes[] = {
#define CLASS(identifier, name, help) [CLASS_##identifier] = name,
#include "classes.def"
#undef CLASS
};

static const char *const states[] = {
    [RESULT_UNKNOWN] = "unknown",
    [RESULT_OK] = "ok",
    [RESULT_FAILED] = "failed",
    [RESULT_REFUSED] = "refused",
};

enum { LINEAGE_COUNT = sizeof(lineages) / sizeof(lineages[0]), STATE_COUNT = sizeof(states) / sizeof(states[0]) };

/* The index of `name` in a list of names, or -1. */
static int find(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return (int)i;
	return -1;
}

const char *effect_kind_name(enum effect_kind kind)
{
	return (unsigned)kind < EFFECT_KIND_COUNT ? kinds[kind].name : "unknown";
}

const char *effect_kind_label(enum effect_kind kind)
{
	return (unsigned)kind < EFFECT_KIND_COUNT ? kinds[kind].label : "unknown";
}

enum severity effect_kind_severity(enum effect_kind kind)
{
	return (unsigned)kind < EFFECT_KIND_COUNT ? kinds[kind].severity : SEVERITY_medium;
}

const char *effect_how_name(enum effect_how how)
{
	return (unsigned)how < HOW_COUNT ? hows[how] : "unknown";
}

const char *result_state_name(enum result_state state)
{
	return (unsigned)state < STATE_COUNT ? states[state] : states[RESULT_UNKNOWN];
}

const char *record_type_name(enum record_type type)
{
	return (unsigned)type < RECORD_TYPE_COUNT ? types[type] : "unknown";
}

const char *gap_code_name(enum gap_code code)
{
	return (unsigned)code < GAP_CODE_COUNT ? gaps[code] : "unknown";
}

const char *lineage_name(enum lineage lineage)
{
	return (unsigned)lineage < LINEAGE_COUNT ? lineages[lineage] : "unknown";
}

bool effect_kind_find(const char *name, enum effect_kind *kind)
{
	for (unsigned i = 0; i < EFFECT_KIND_COUNT; i++) {
		if (strcmp(kinds[i].name, name) == 0) {
			*kind = (enum effect_kind)i;
			return true;
		}
	}
	return false;
}

bool effect_how_find(const char *name, enum effect_how *how)
{
	int found = find(hows, HOW_COUNT, name);
	if (found >= 0)
		*how = (enum effect_how)found;
	return found >= 0;
}

bool result_state_find(const char *name, enum result_state *state)
{
	int found = find(states, STATE_COUNT, name);
	if (found >= 0)
		*state = (enum result_state)found;
	return found >= 0;
}

bool record_type_find(const char *name, enum record_type *type)
{
	int found = find(types, RECORD_TYPE_COUNT, name);
	if (found >= 0)
		*type = (enum record_type)found;
	return found >= 0;
}

const char *key_use_name(enum key_use use)
{
	return (unsigned)use < USE_COUNT ? uses[use] : "unknown";
}

const char *record_lane_name(enum record_lane lane)
{
	return (size_t)lane < sizeof(lanes) / sizeof(lanes[0]) ? lanes[lane] : "unknown";
}

const char *record_class_name(enum record_class class)
{
	return (size_t) class < sizeof(classes) / sizeof(classes[0]) ? classes[class] : "unknown";
}
