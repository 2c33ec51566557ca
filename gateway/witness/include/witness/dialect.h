/*
 * The dialects that models are spoken to in, as tables: which path of a URL is which, and where in a message stands what.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum dialect {
#define DIALECT(identifier, ...) DIALECT_##identifier,
#include "dialects.def"
#undef DIALECT
	DIALECT_COUNT
};

enum provider { PROVIDER_anthropic, PROVIDER_openai, PROVIDER_gemini, PROVIDER_COUNT };

const char *dialect_name(enum dialect dialect);
/* Whose dialect it is; PROVIDER_COUNT for none. */
enum provider dialect_provider(enum dialect dialect);
/* Which dialect a request is, by its method and the path of its target (without the query). */
enum dialect dialect_of(struct bytes method, struct bytes path);
/* The model that the path names (Gemini), or absent. A view of `path`. */
struct bytes dialect_path_model(enum dialect dialect, struct bytes path);
/* An error as the provider would send it: the body, of a message that is plain ASCII of ours. */
void dialect_error(enum provider provider, unsigned status, const char *message, struct buf *out);
