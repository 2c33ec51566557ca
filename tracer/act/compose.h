/*
 * Private to this room: from a decoded call to an order.
 */
#pragma once

#include "act/act.h"
#include "order.h"

/* False: this call cannot be made by us, or not on these objects. */
bool order_compose(const struct actor *actor, const struct act *act, struct order *order);

/* The value of the n-th argument of this kind; 0 when the call has none. */
uint64_t order_argument(const struct act *act, enum arg_kind kind, size_t nth);
bool order_has_argument(const struct act *act, enum arg_kind kind);
/* Capabilities count in a user namespace, and mount points in a mount namespace: are they not ours? */
bool order_lives_elsewhere(const struct target *target);
/* How to walk to the place again, with the rights of whoever we act for. `base` may be the caller's to close. */
bool order_copy_way(const struct act *act, const struct path_request *request, struct order_place *place);
