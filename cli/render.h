/*
 * What all screens share. Data of the agent goes through base/text.h's escaper before it comes here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/err.h"
#include "ledger/effect.h"

/* Whether characters beyond ASCII may be printed. */
bool render_utf8(void);

enum style { STYLE_PLAIN, STYLE_BOLD, STYLE_DIM, STYLE_RED, STYLE_YELLOW, STYLE_GREEN };
/* The sequence that switches to the style: empty unless `out` is a terminal and NO_COLOR is not set. */
const char *render_style(FILE *out, enum style style);
/* Columns of the terminal; 0 when `out` is none: nothing is cut then. */
size_t render_width(FILE *out);

/* " · " or " - " */
const char *render_dot(void);
/* "…" or "..." */
const char *render_more(void);
/* "×" or "x" */
const char *render_times(void);

/*
 * " [mediated]": what the claim before it is worth. Each line, or the heading of its block, has one (ledger/claim.h).
 * `exposed` stands beside it when others could use the key; absent otherwise.
 */
void render_class(struct buf *text, FILE *out, enum record_class class, const char *exposed);

void render_duration(struct buf *out, uint64_t ns); /* 3m12s */
void render_time(struct buf *out, int64_t ns);      /* 2026-11-30 17:45:13, local */
void render_clock(struct buf *out, int64_t ns);     /* 17:45:13.123, local */
void render_count(struct buf *out, uint64_t count); /* 1 204 */
void render_size(struct buf *out, uint64_t bytes);  /* 1.5 MiB */
/* "1 204 effects", "1 effect" */
void render_counted(struct buf *out, uint64_t count, const char *singular, const char *plural);
/* Escaped text, at most so many columns, with a mark at its end when it was cut. columns 0: all. */
void render_cut(struct buf *out, struct bytes escaped, size_t columns);
/* Escaped text and blanks up to `columns`; longer text is not cut. */
void render_padded(struct buf *out, struct bytes escaped, size_t columns);

/*
 * Write to stderr, which the agent shares: given up when there is no room for so long (-1: never), because nobody may be
 * reading any more, and the run must be closed all the same.
 */
void render_to_stderr(struct bytes text, int patience_ms);
/* Write it. Returns the exit status: 0, or 1 when the buffer had failed. */
int render_out(FILE *out, const struct buf *text);
/* Print the error and its hint on stderr. Returns the exit status. */
int render_error(const struct err *err);
