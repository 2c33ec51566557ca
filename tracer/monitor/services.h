/*
 * Private to this room: local services of the tree's own. Whoever connects to another asks a process outside the tree, what
 * it does for him is not seen, and that has to be said.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ledger/effect.h"

enum { SERVICES_LIMIT = 4096 };

struct service;

struct services {
	struct service *items; /* owned; a ring: the oldest is forgotten first */
	size_t count, capacity, next;
};

void services_free(struct services *services);
/*
 * Remember the address when a socket of the tree was bound to it; mark the effect as delegated when it is for a local
 * service that nobody of the tree made. `network`: the caller's network namespace, in which abstract names live.
 */
void services_settle(struct services *services, uint64_t network, struct effect *effect);
