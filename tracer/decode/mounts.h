/*
 * Private to this room: the host's name for what a task names in its own mount namespace.
 */
#pragma once

#include <stdint.h>

#include "base/bytes.h"
#include "decode/target.h"

/*
 * `path` lies on the mount `mount_id` of the task's mount namespace, named from that namespace's root; `directory` holds
 * it (or is it). Returns the name of the same object in ours, by device and root of the two mounts
 * (proc_pid_mountinfo(5)); absent when no mount of ours shows it.
 */
struct bytes mounts_host_view(const struct target *target, uint64_t mount_id, struct bytes path, int directory,
			      struct arena *arena);
