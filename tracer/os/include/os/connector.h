/*
 * Births and deaths from the kernel's proc connector (netlink, CN_IDX_PROC). It exists in the initial network namespace;
 * as root it is opened there through /proc/1/ns/net.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum connector_type { CONNECTOR_FORK, CONNECTOR_EXEC, CONNECTOR_EXIT, CONNECTOR_LOST };

struct connector_event {
	enum connector_type type;
	uint64_t mono_ns;  /* the kernel's timestamp, CLOCK_MONOTONIC */
	pid_t pid, tgid;   /* the task: child of a fork, or whom it is about */
	pid_t parent_tgid; /* FORK */
	int status;        /* EXIT: as from wait(2) */
};

/* A non-blocking socket that delivers fork, exec and exit events; -1 with the reason when this host has none. */
int connector_open(struct err *err);
/* Parse one packet of `size` bytes that came from the kernel. False when it is not an event of interest. */
bool connector_parse(const void *packet, size_t size, struct connector_event *event);
/*
 * Take the next event without waiting. 1: one event; 0: nothing there. ENOBUFS comes out as CONNECTOR_LOST. Packets that
 * are not from the kernel (anybody may send to a netlink group) are skipped.
 */
int connector_next(int fd, struct connector_event *event);
