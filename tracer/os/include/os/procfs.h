/*
 * What /proc says of a task. All access goes through one descriptor of /proc that was opened before the agent ran: a
 * tree that mounts something over /proc does not fool us.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/err.h"

struct task_status {
	pid_t tgid, ppid;
	pid_t session, group; /* in our pid namespace; 0 when they are outside */
	uint64_t start_ticks;
	unsigned threads;
	char state;
};

/* Open /proc once, for the whole process. False when it is missing or is not procfs. */
bool procfs_open(struct err *err);
/* Keep what belongs to the calling process itself: in one that forks no other which looks into /proc afterwards. */
void procfs_settle(void);
/* The descriptor that procfs_open() made, or -1. */
int procfs_root(void);

/* An O_PATH descriptor of /proc/TID; -1 with errno. */
int procfs_task(pid_t tid);
/*
 * The beginning of a file below `directory`, as a string: what does not fit (a long list of groups) is left out. False
 * with errno.
 */
bool procfs_read(int directory, const char *name, char *text, size_t size);
/* What stands behind "Name:" in the text of a status file; NULL when it is not there. */
const char *procfs_status_field(const char *text, const char *name);
/* A decimal number there, by its column; 0 when there is none. */
long procfs_status_number(const char *text, const char *name, int column);
/* The mask of the bits that new files of the task do not get; -1 when unknown. */
int procfs_umask(int task);
/* The soft limit RLIMIT_NOFILE or RLIMIT_FSIZE of a task; UINT64_MAX when there is none. False when it cannot be read. */
bool procfs_limit(int task, pid_t tid, int resource, uint64_t *limit);
/*
 * Read who the task behind such a descriptor is. `tid`: its number, when the caller knows that it has this number now (it
 * waits for an answer, say); 0 when it may be gone, and the number be another's. False with errno.
 */
bool procfs_status(int task, pid_t tid, struct task_status *status);
/* The wait status that a zombie keeps for its parent (stat, field 52); -1 when it is none, or it may not be read. */
int procfs_exit_status(int task);
/* Does a signal wait to be delivered to the task? */
bool procfs_signal_pending(int task);
/* The text of a link (exe, cwd, root, fd/N) below `task`. Length, or -1 with errno. */
ssize_t procfs_link(int task, const char *name, char *out, size_t size);
/* The inode of a namespace by its link below `task` (ns/mnt); 0 when it cannot be read. */
uint64_t procfs_namespace(int task, const char *name);
/* Is this capability (CAP_*) among our effective ones? */
bool procfs_has_capability(int capability);
/* Where a descriptor of our own leads. */
ssize_t procfs_own_fd(int fd, char *out, size_t size);
/* The process id that a pidfd of the task stands for; -1 when it is none. */
pid_t procfs_pidfd_target(int task, int fd);
/* The name (comm) of a process, escaped by nobody; empty when unknown. */
void procfs_comm(pid_t pid, char out[32]);
/* Flags of a descriptor of the task (octal in fdinfo); -1 when unknown. */
int procfs_fd_flags(int task, int fd);
