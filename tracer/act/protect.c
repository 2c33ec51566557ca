#include "act/protect.h"

#include <asm/sockios.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/memory.h"
#include "os/procfs.h"

static bool is_ours(const struct protection *protection, int64_t pid)
{
	return pid > 0 && (pid == protection->guardian || pid == protection->monitor || pid == protection->keeper ||
			   pid == protection->scribe);
}

/* The thread ids of our processes can be named too; their group is what counts. */
static bool belongs_to_us(const struct protection *protection, int64_t pid)
{
	struct task_status status;

	if (is_ours(protection, pid))
		return true;
	if (pid <= 0 || pid > INT32_MAX)
		return false;
	int task CLEANUP_FD = procfs_task((pid_t)pid);
	return task >= 0 && procfs_status(task, &status) && is_ours(protection, status.tgid);
}

/* Inside a pid namespace of its own a task cannot name us. */
static bool can_name_us(const struct protection *protection, const struct target *target)
{
	return target->pid_namespace == protection->pid_namespace;
}

/* Where SIGIO and its relatives are told to go: as good as kill(2) (fcntl(2), F_SETOWN). */
static int64_t signal_owner(const struct stop *stop, const struct target *target)
{
	struct {
		int type;
		pid_t pid;
	} owner;
	int pid;

	if (target->memory < 0)
		return 0;
	if (stop->number == SYS_fcntl && (int)stop->args[1] == F_SETOWN)
		return (int)stop->args[2];
	if (stop->number == SYS_fcntl && (int)stop->args[1] == F_SETOWN_EX &&
	    memory_read(target->memory, stop->args[2], &owner, sizeof(owner)) == 0)
		return owner.type == F_OWNER_PGRP ? -(int64_t)owner.pid : owner.pid;
	if (stop->number == SYS_ioctl && (stop->args[1] == FIOSETOWN || stop->args[1] == SIOCSPGRP) &&
	    memory_read(target->memory, stop->args[2], &pid, sizeof(pid)) == 0)
		return pid;
	return 0;
}

static bool in_state(const struct protection *protection, const struct effect_object *object)
{
	struct bytes path = object->host_path.data ? object->host_path : object->path;

	return path.data && bytes_path_below(path, protection->state);
}

static bool above_state(const struct protection *protection, const struct effect_object *object)
{
	struct bytes path = object->host_path.data ? object->host_path : object->path;

	return path.data && path.size > 1 && bytes_path_below(protection->state, path);
}

/* Moving a directory above the state folder, or mounting over it, would put another one in its place. */
static bool displaces_state(const struct protection *protection, const struct target *target,
			    const struct effect *effect)
{
	if (effect->kind == EFFECT_file_rename)
		return above_state(protection, &effect->object) || above_state(protection, &effect->to);
	if (effect->kind == EFFECT_mount_change && target->same_mounts)
		return above_state(protection, &effect->object) || above_state(protection, &effect->to);
	return false;
}

enum protect_verdict protect_check(const struct protection *protection, const struct stop *stop,
				   const struct target *target, const struct decoded *decoded, int *error)
{
	const struct effect *effect = decoded->effects;
	const struct effect_target *whom = &effect->target;

	*error = EPERM;
	if (can_name_us(protection, target)) {
		if (whom->present && belongs_to_us(protection, whom->pid))
			return PROTECT_REFUSE;
		int64_t owner = signal_owner(stop, target);
		if (owner != 0 && (belongs_to_us(protection, owner) || owner == -protection->guardian_group))
			return PROTECT_REFUSE;
		int signal = (int)stop->args[1];
		/* Everything else is blocked in our processes. */
		bool deadly = signal == SIGKILL || signal == SIGSTOP;
		if (stop->number == SYS_kill && deadly && whom->pid <= 0 &&
		    (whom->pid == -1 || whom->pid == -(int64_t)protection->guardian_group ||
		     (whom->pid == 0 && getpgid(target->pid) == protection->guardian_group)))
			return PROTECT_PERFORM;
	}
	for (size_t i = 0; i < decoded->count; i++) {
		effect = &decoded->effects[i];
		*error = EACCES;
		if (in_state(protection, &effect->object) || in_state(protection, &effect->to))
			return PROTECT_REFUSE;
		*error = EBUSY;
		if (displaces_state(protection, target, effect))
			return PROTECT_REFUSE;
	}
	return PROTECT_PASS;
}

static bool is_addressed(const struct protection *protection, const struct target *target, int64_t pid, pid_t candidate)
{
	if (is_ours(protection, candidate) || candidate == 1)
		return false;
	/* kill(2): -1 leaves out the caller on Linux. */
	if (pid == -1)
		return candidate != target->pid;
	pid_t group = pid == 0 ? protection->guardian_group : (pid_t)-pid;
	return getpgid(candidate) == group;
}

int protect_signal_others(const struct protection *protection, const struct target *target, int64_t pid, int signal)
{
	struct task_status status;
	int found = 0, sent = 0;

	/* We must not do for the caller what it may not do itself. */
	if (!procfs_status(target->task, &status) || status.uid != geteuid())
		return EPERM;
	int copy CLEANUP_FD = openat(procfs_root(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = copy < 0 ? NULL : fdopendir(copy);
	if (!directory)
		return EPERM;
	(void)fd_steal(&copy);
	bool caller = false;
	for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
		pid_t candidate = (pid_t)strtol(entry->d_name, NULL, 10);
		if (candidate <= 0 || !is_addressed(protection, target, pid, candidate))
			continue;
		found++;
		/* The caller last, so that it cannot be gone before the others are reached. */
		if (candidate == target->pid)
			caller = true;
		else if (kill(candidate, signal) == 0)
			sent++;
	}
	closedir(directory);
	if (caller && kill(target->pid, signal) == 0)
		sent++;
	return sent > 0 ? 0 : found > 0 ? EPERM : ESRCH;
}
