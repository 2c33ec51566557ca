/*
 * A declared tool call as one lane tells of it (specs/CALLS.md section 1). Views: the bytes belong to whoever made it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum tool_kind {
#define TOOL(identifier, ...) TOOL_##identifier,
#include "tools.def"
#undef TOOL
	TOOL_KIND_COUNT
};

enum call_event {
#define CALL_EVENT(identifier, ...) CALL_##identifier,
#include "call-events.def"
#undef CALL_EVENT
	CALL_EVENT_COUNT
};

enum call_lane { CALL_LANE_wire, CALL_LANE_hook, CALL_LANE_env, CALL_LANE_api, CALL_LANE_COUNT };

enum { CALL_PATH_LIMIT = 64, CALL_DIGEST_SIZE = 32 };

/* Bytes that may be longer than what is carried: whole size and SHA-256, and as much as was kept. */
struct call_bytes {
	bool present;
	struct bytes kept;
	uint64_t size;
	uint8_t sha256[CALL_DIGEST_SIZE];
};

struct call_sighting {
	enum call_lane lane;
	enum call_event event;
	uint64_t mono_ns;    /* when it reached the monitor, since the run's start */
	struct bytes id;     /* absent when the lane has none */
	struct bytes tool;   /* as declared; absent at an end that does not name it */
	enum tool_kind kind; /* by the profile */
	struct call_bytes arguments, command, output;
	struct bytes paths[CALL_PATH_LIMIT];
	size_t path_count;
	struct bytes host;
	bool failed;   /* end: reported as an error */
	bool has_exit; /* end: the lane tells the exit code */
	int exit_code;
	uint64_t process; /* who told so, when it is of the tree; else 0 */
};

const char *tool_kind_name(enum tool_kind kind);
bool tool_kind_find(const char *name, enum tool_kind *kind);
const char *call_event_name(enum call_event event);
const char *call_lane_name(enum call_lane lane);
