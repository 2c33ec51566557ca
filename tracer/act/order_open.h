/*
 * Private to this room: opens, and what they share with the other calls.
 */
#pragma once

#include "order.h"

struct order_outcome order_open(const struct order *order);
/* What stands under a name (of the descriptor itself when empty). False when there is nothing. */
bool order_look(int directory, const char *name, struct order_identity *identity);
bool order_same_object(const struct order_identity *one, const struct order_identity *other);
