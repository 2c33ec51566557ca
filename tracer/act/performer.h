/*
 * Private to this room: processes of ours that live where a part of the tree lives, and carry out orders there. Some of
 * what the kernel decides depends on the namespaces of whoever asks: which capabilities count, which ids there are, and
 * whether a directory is a mount point. There is one performer for each user and mount namespace and each set of ids that
 * acts there; it is made for the first order and ends with the last process that lives there.
 */
#pragma once

#include "act/performers.h"
#include "decode/target.h"
#include "order.h"

/*
 * Carry out the order as `target` would, with its root as root. False: there is no such process and none can be made, or
 * it was lost; then nothing is known to have been done (`lost` says that something may have been).
 */
bool performer_carry_out(struct performers *performers, const struct target *target, struct order *order,
			 struct order_outcome *outcome, bool *lost);
