/*
 * Which upstream a request goes to.
 */
#pragma once

#include "base/err.h"
#include "witness/witness.h"

struct route {
	enum provider provider;
	char *prefix, *url, *origin, *path; /* owned; `url` may hold credentials and is never told */
	bool loopback;
};

struct routes {
	struct route rows[WITNESS_ROUTE_LIMIT];
	size_t count;
};

/* Check and copy. The caller frees them, also when this fails. */
bool routes_set(struct routes *routes, const struct witness_route *given, size_t count, struct err *err);
void routes_free(struct routes *routes);
/* The route of a target whose dialect is known; NULL when none fits. */
const struct route *routes_find(const struct routes *routes, struct bytes target, enum dialect dialect);
/* Headers that belong to a connection and not to a message (RFC 9110 section 7.6.1), in any case of letters. */
bool header_is_hop(struct bytes name);
