/*
 * Ending a process tree whose members may fork while they are being counted.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Send SIGKILL to every living descendant of `root` but those in `spared` and what descends from them. Returns how many
   were found; call again until none is. */
int tree_kill(pid_t root, const pid_t *spared, int spared_count);
/* End all descendants of the calling process, a subreaper, but the spared ones; reap those that become its children. */
void tree_end(const pid_t *spared, int spared_count);
/* Wait for the end of a child, no longer than `timeout_ms`, and reap it. False when it did not, or was reaped already. */
bool tree_reap(pid_t child, int timeout_ms);
