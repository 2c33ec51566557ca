/*
 * Private to this room.
 */
#pragma once

#include "act/protect.h"

/* Would this mount (or setting of one) show the state folder, or something above it, under a name that can be written? */
bool protect_mount_reaches_state(const struct protection *protection, struct path_cache *cache, const struct stop *stop,
				 const struct target *target, const struct effect *effect);
/* May the task do just what we may? False when that cannot be told. */
bool protect_has_our_rights(const struct protection *protection, const struct target *target);
/* Does this open_by_handle_at(2) open something in the state folder? */
bool protect_handle_reaches_state(const struct protection *protection, const struct stop *stop,
				  const struct target *target, const struct decoded *decoded);
