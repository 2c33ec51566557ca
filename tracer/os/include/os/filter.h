/*
 * The seccomp program of a run, generated from specs/syscalls.def and specs/conditions.def.
 */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>

#include "base/err.h"
#include "os/table.h"

struct filter {
	struct sock_filter *instructions; /* owned */
	unsigned short count;
};

/* Build the program for a lens. */
bool filter_build(struct filter *filter, enum lens lens, struct err *err);
void filter_free(struct filter *filter);

/*
 * Install it on the calling thread and return the listener (close-on-exec). Sets no_new_privs first when the caller may
 * not install filters without it, and says so in `no_new_privs`. EBUSY: a listener is already there.
 */
int filter_install(const struct filter *filter, bool *no_new_privs, struct err *err);
