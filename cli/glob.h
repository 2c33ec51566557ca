/*
 * Patterns for paths: `?` and `*` stay within one part, `[a-z]` `[!a-z]` match one byte, `**` crosses slashes, and a
 * leading or inner `**` with a slash behind it also matches no part at all. A pattern without a slash is matched against
 * the last part.
 */
#pragma once

#include "base/bytes.h"

bool glob_match(const char *pattern, struct bytes path);
