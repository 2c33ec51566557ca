/*
 * Private to this room: the keeper, a process between the monitor and the command.
 *
 * It is the parent of the command and of every orphan of its tree, waits for them, and reports how they stopped and
 * ended. The monitor cannot be that parent: its threads trace what they verify, and a tracer that is the parent too
 * takes its own traps for the job control of a child.
 */
#pragma once

#include <sys/types.h>

/* The keeper's whole life, right after it forked the command (`command` negative: it could not). */
_Noreturn void keeper_main(int reports, pid_t command, pid_t monitor);
