/*
 * One effect in words, from its stored JSON. Everything is escaped for a terminal.
 */
#pragma once

#include "base/bytes.h"
#include "document.h"
#include "ledger/effect.h"

/* What it was done to: a path, "old -> new", a command, an address, a process, or the arguments. */
void effect_object_text(struct buf *out, const struct document *effect, struct arena *arena);
/* "ok", "ENOENT", "refused EPERM", "?" */
void effect_result_text(struct buf *out, const struct document *effect);
/* "4127 node" */
void effect_process_text(struct buf *out, const struct document *effect, struct arena *arena);
/* The label of a kind by its wire name; the name itself when this assure does not know it. */
const char *effect_label(const struct document *effect);
/* A command as a shell would read it. */
void effect_argv_text(struct buf *out, const struct document *argv, struct arena *arena);
/* "exit 0", "SIGKILL" */
void effect_status_text(struct buf *out, const struct document *status);
/* "tcp 203.0.113.9:443", a socket's path, … */
void effect_peer_text(struct buf *out, const struct document *peer, struct arena *arena);
