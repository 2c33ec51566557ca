#include "act/protect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/procfs.h"
#include "protect_mount.h"

static bool is_ours(const struct protection *protection, int64_t pid)
{
	return pid > 0 && (pid == protection->guardian || pid == protection->monitor || pid == protection->keeper ||
			   pid == protection->scribe || performers_has(protection->performers, (pid_t)pid));
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
	return task >= 0 && procfs_status(task, 0, &status) && is_ours(protection, status.tgid);
}

/* Inside a pid namespace of its own a task cannot name us. */
static bool can_name_us(const struct protection *protection, const struct target *target)
{
	return target->pid_namespace == protection->pid_namespace;
}

/* A process group with one of us in it. */
static bool is_our_group(const struct protection *protection, int64_t group)
{
	const pid_t ours[] = {protection->guardian, protection->monitor, protection->keeper, protection->scribe};

	for (size_t i = 0; group > 0 && i < sizeof(ours) / sizeof(ours[0]); i++)
		if (ours[i] > 0 && getpgid(ours[i]) == group)
			return true;
	return false;
}

/* Where SIGIO and its relatives are told to go: as good as kill(2) (fcntl(2), F_SETOWN). Groups are negative. */
static int64_t signal_owner(const struct stop *stop, const struct effect_target *whom)
{
	bool owner = stop->number == SYS_fcntl || stop->number == SYS_ioctl;

	return owner && whom->present ? whom->pid : 0;
}

/* Priorities are set for a process or, negative here, a group; the agent's own may well be set, it harms nobody. */
static int64_t priority_owner(const struct protection *protection, const struct stop *stop)
{
	enum { IO_PROCESS = 1, IO_GROUP = 2 };
	int which = (int)stop->args[0], who = (int)stop->args[1];

	bool io = stop->number == SYS_ioprio_set;
	if (!io && stop->number != SYS_setpriority)
		return 0;
	if (which == (io ? IO_PROCESS : PRIO_PROCESS))
		return who;
	return which == (io ? IO_GROUP : PRIO_PGRP) && who != protection->guardian_group ? -(int64_t)who : 0;
}

/* pidfd_send_signal(2) takes a folder of /proc as well, and can mean the whole group. */
static int64_t pidfd_owner(const struct stop *stop, const struct target *target, int64_t named)
{
	enum { PROCESS_GROUP = 1 << 2 };
	struct task_status status;
	struct statfs system;
	char name[32];

	if (stop->number != SYS_pidfd_send_signal)
		return 0;
	pid_t pid = (pid_t)named;
	if (pid <= 0) {
		snprintf(name, sizeof(name), "fd/%d", (int)stop->args[0]);
		int folder CLEANUP_FD = openat(target->task, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (folder < 0 || fstatfs(folder, &system) != 0 || system.f_type != PROC_SUPER_MAGIC ||
		    !procfs_status(folder, 0, &status))
			return 0;
		pid = status.tgid;
	}
	/* 0 asks whether it is there; what is not deadly is blocked in our processes. */
	bool deadly = (int)stop->args[1] == SIGKILL || (int)stop->args[1] == SIGSTOP;
	return (stop->args[3] & PROCESS_GROUP) == 0 ? pid : deadly ? -(int64_t)getpgid(pid) : 0;
}

/* Besides the target that the decoder found: a call that names one of us, or a group that we are in. */
static bool names_us(const struct protection *protection, const struct stop *stop, const struct target *target,
		     const struct effect_target *whom)
{
	int64_t owners[] = {
	    whom->present && whom->pid > 0 ? whom->pid : 0,
	    signal_owner(stop, whom),
	    priority_owner(protection, stop),
	    pidfd_owner(stop, target, whom->present ? whom->pid : 0),
	};

	for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++)
		if (owners[i] < 0 ? is_our_group(protection, -owners[i]) : belongs_to_us(protection, owners[i]))
			return true;
	/* The group that the agent shares with the guardian is signalled one by one; others hold nobody but us. */
	return whom->present && whom->pid < -1 && -whom->pid != protection->guardian_group &&
	       is_our_group(protection, -whom->pid);
}

/* The memory that records pass through, by whatever link of /proc somebody got at it (base/ring.c). */
static bool is_our_ring(const struct protection *protection, const struct effect_object *object)
{
	return object->has_inode && object->ino == protection->ring_ino &&
	       makedev(object->dev_major, object->dev_minor) == protection->ring_device;
}

/* One of our processes, in whatever procfs this folder was found: numbers differ there, name and birth do not. */
static bool is_our_folder(const struct protection *protection, int folder)
{
	const pid_t ours[] = {protection->guardian, protection->monitor, protection->keeper, protection->scribe};
	struct task_status theirs, own;
	char their_name[32], own_name[32];

	if (!procfs_status(folder, 0, &theirs) || fd_read_file(folder, "comm", their_name, sizeof(their_name)) < 0)
		return false;
	/* A thread's folder has the thread's name and birth; that it is of our process its leader tells. */
	if (is_ours(protection, theirs.tgid))
		return true;
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		int task CLEANUP_FD = procfs_task(ours[i]);
		if (task >= 0 && procfs_status(task, 0, &own) && own.start_ticks == theirs.start_ticks &&
		    fd_read_file(task, "comm", own_name, sizeof(own_name)) >= 0 && strcmp(own_name, their_name) == 0)
			return true;
	}
	return false;
}

/* Our memory and our settings in /proc; that everybody may look at the rest is what ps(1) lives on. */
static bool in_our_proc(const struct protection *protection, struct path_cache *cache, const struct target *target,
			const struct decoded *decoded)
{
	const struct effect *effect = decoded->effects;
	const struct bytes path = effect->object.path;

	if (decoded->count == 0)
		return false;
	if (is_our_ring(protection, &effect->object))
		return true;
	if (!decoded->facts.procfs || !decoded->request.path.data)
		return false;
	bool memory = path.size >= 4 && memcmp(path.data + path.size - 4, "/mem", 4) == 0;
	if (!memory && (effect->kind == EFFECT_file_read || effect->kind == EFFECT_proc_exec))
		return false;
	int folder CLEANUP_FD = path_process_folder(cache, target, &decoded->request);
	return folder >= 0 && is_our_folder(protection, folder);
}

/* In a mount namespace of its own something else may lie where our state folder does, and is its own business. */
static bool is_hidden(const struct protection *protection, const struct target *target)
{
	struct stat theirs, ours;
	char path[PATH_MAX];

	if (target->same_mounts || protection->state.size >= sizeof(path))
		return false;
	memcpy(path, protection->state.data, protection->state.size);
	path[protection->state.size] = 0;
	int root CLEANUP_FD = openat(target->task, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || stat(path, &ours) != 0)
		return false;
	if (fstatat(root, path + 1, &theirs, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT || errno == ENOTDIR;
	return theirs.st_dev != ours.st_dev || theirs.st_ino != ours.st_ino;
}

static bool in_state(const struct protection *protection, const struct target *target,
		     const struct effect_object *object)
{
	if (object->host_path.data)
		return bytes_path_below(object->host_path, protection->state);
	return object->path.data && bytes_path_below(object->path, protection->state) && !is_hidden(protection, target);
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

/* A bind mount shows the folder, or one above it, under another name: then only what it is tells. */
static bool in_alias(const struct protection *protection, struct path_cache *cache, const struct target *target,
		     const struct path_request *request, const struct path_facts *facts)
{
	return request->path.data && facts->device == protection->state_device &&
	       facts->mount != protection->state_mount &&
	       path_lies_in(cache, target, request, protection->state_device, protection->state_ino);
}

enum protect_verdict protect_check(const struct protection *protection, struct path_cache *cache,
				   const struct stop *stop, const struct target *target, const struct decoded *decoded,
				   int *error)
{
	const struct effect *effect = decoded->effects;
	const struct effect_target *whom = &effect->target;

	*error = EPERM;
	if (whom->present && belongs_to_us(protection, whom->ours))
		return PROTECT_REFUSE;
	if (can_name_us(protection, target)) {
		if (names_us(protection, stop, target, whom))
			return PROTECT_REFUSE;
		int signal = (int)stop->args[1];
		/* Everything else is blocked in our processes. */
		bool deadly = signal == SIGKILL || signal == SIGSTOP;
		if (stop->number == SYS_kill && deadly && whom->pid <= 0 &&
		    (whom->pid == -1 || whom->pid == -(int64_t)protection->guardian_group ||
		     (whom->pid == 0 && getpgid(target->pid) == protection->guardian_group)))
			return PROTECT_PERFORM;
	}
	*error = EACCES;
	if (decoded->count > 0 && (in_alias(protection, cache, target, &decoded->request, &decoded->facts) ||
				   in_alias(protection, cache, target, &decoded->to_request, &decoded->to_facts) ||
				   protect_mount_reaches_state(protection, cache, stop, target, decoded->effects) ||
				   protect_handle_reaches_state(protection, stop, target, decoded) ||
				   in_our_proc(protection, cache, target, decoded)))
		return PROTECT_REFUSE;
	for (size_t i = 0; i < decoded->count; i++) {
		effect = &decoded->effects[i];
		*error = EACCES;
		if (in_state(protection, target, &effect->object) || in_state(protection, target, &effect->to))
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

bool protect_has_our_rights(const struct protection *protection, const struct target *target)
{
	struct rights theirs;

	return rights_read(target->task, &theirs) && rights_equal(protection->rights, &theirs);
}

int protect_signal_others(const struct protection *protection, const struct target *target, int64_t pid, int signal)
{
	int found = 0, sent = 0;

	/* We must not do for the caller what it may not do itself. */
	if (!protect_has_our_rights(protection, target) || atomic_load(&protection->scoped))
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
