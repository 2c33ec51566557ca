/*
 * Process numbers mean something else in every pid namespace: what a task says, and what we call the same process.
 */
#pragma once

#include <sys/types.h>

/*
 * Our number of the process or thread that the task behind `task` (an O_PATH descriptor of /proc/TID) calls `pid`.
 * 0 when it has none, or when the kernel (before 6.11) cannot say.
 */
pid_t pids_ours(int task, pid_t pid);
