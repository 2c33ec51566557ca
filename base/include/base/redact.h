/*
 * Secrets in foreign bytes: what looks like one (specs/secrets.def), or matches a pattern of the user, is replaced by
 * `[withheld:NAME]`. Where it cannot be decided in bounded time the whole value is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

struct redactor;

/*
 * What was withheld: a bit for each row of specs/secrets.def, in order, the next one for what stood behind an option, and the
 * last one for the patterns of the user.
 */
typedef uint64_t redactions;
enum { REDACTION_PATTERN = 63 };

/* A value of an argument, a text; or a name of a file, in which an assignment is no secret. */
enum redact_as { REDACT_NAME, REDACT_ARGUMENT };

/*
 * `patterns`: regular expressions (PCRE2, of bytes), compiled now. The caller frees it. NULL with `err`: which pattern is
 * wrong, and where.
 */
struct redactor *redactor_new(const char *const *patterns, size_t count, struct err *err);
void redactor_free(struct redactor *redactor);

/*
 * True when something has to be withheld: `out`, which is emptied first, is the text without it, and `what` gets the bits
 * of that. The usual answer, no, costs a look at each byte. Any number of threads may ask one redactor.
 */
bool redact(const struct redactor *redactor, struct bytes text, enum redact_as as, struct buf *out, redactions *what);
/* The same for an argument behind another one, which may be the option that it belongs to; absent when there is none. */
bool redact_argument(const struct redactor *redactor, struct bytes before, struct bytes argument, struct buf *out,
		     redactions *what);

/* Name of a bit; several may have one. Static. */
const char *redaction_name(unsigned bit);
/* How many rows the table has. */
unsigned redaction_count(void);
