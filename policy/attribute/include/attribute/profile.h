/*
 * What is known of an agent (fixtures/agents/NAME.yaml): how it is recognised, how it is given the channel, what its shells look
 * like, what its tools do, what is its own business. Data, never code; read once, then constant.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "attribute/call.h"
#include "base/bytes.h"
#include "base/err.h"

struct profile;

/* How the command stands inside an argument: as it is, or inside single quotes of a shell ('\'' for a quote). */
enum shape_quoting { SHAPE_PLAIN, SHAPE_SINGLE_QUOTED };

/*
 * One form of the argument vector around a command. An element is a text with at most one {command} and any number of {*} (any
 * bytes, none too) and {hex} (lower-case hexadecimal digits).
 */
struct profile_shape {
	const char *const *argv;
	size_t count;
	enum shape_quoting quoting;
};

/* Read and check a profile. The caller frees it. NULL with `err` set: where in the file, and what to do. */
struct profile *profile_read(struct bytes yaml, const char *name, struct err *err);
void profile_free(struct profile *profile);

/*
 * Does an executable with this argument vector match? `program` is the resolved path of what would run (the script, where there is
 * one).
 */
bool profile_recognises(const struct profile *profile, struct bytes program, const struct bytes *argv, size_t count);
/* What this tool does, and which of its arguments name the command, paths and host (JSON member names; NULL: none). */
struct profile_tool {
	enum tool_kind kind;
	const char *command, *host;
	const char *const *paths;
	size_t path_count;
};
struct profile_tool profile_tool(const struct profile *profile, struct bytes name);
/* The variable that tags a call's processes, or NULL. */
const char *profile_tag(const struct profile *profile);
/*
 * The command inside an argument vector of one of the profile's shapes: bytes in `out`, owned by the caller's buffer. False when no
 * shape fits.
 */
bool profile_command(const struct profile *profile, const struct bytes *argv, size_t count, struct buf *out);
