/*
 * The notify back end: seccomp user notification (seccomp_unotify(2)), with SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV so
 * that a signal cannot make the kernel issue one call twice.
 */
#pragma once

#include "os/stop.h"

struct notify {
	int listener; /* owned by whoever opened it */
};

/* Fill in `backend` to work on `notify`. */
void notify_backend(struct notify *notify, struct backend *backend);
/* Settings of the listener that make it faster where the kernel knows them. */
void notify_prepare(const struct notify *notify);
/* The size of the kernel's notification structures fits ours; false and why otherwise. */
bool notify_check_sizes(struct err *err);
