#include "threads.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/procfs.h"

void threads_init(struct threads *threads, size_t limit)
{
	memset(threads, 0, sizeof(*threads));
	limit -= limit % THREADS_WAYS;
	threads->limit = limit > THREADS_LIMIT ? THREADS_LIMIT : limit < THREADS_WAYS ? THREADS_WAYS : limit;
	for (size_t i = 0; i < THREADS_LIMIT; i++)
		threads->entries[i].target = (struct target){.task = -1, .memory = -1, .root = -1};
}

void thread_clear(struct thread *thread)
{
	fd_close(&thread->target.task);
	fd_close(&thread->target.memory);
	if (thread->target.root >= 0)
		fd_close(&thread->target.root);
	if (thread->process)
		process_unref(thread->process);
	free(thread->root_path);
	bool busy = thread->busy;
	*thread = (struct thread){.busy = busy, .target = {.task = -1, .memory = -1, .root = -1}};
}

void thread_forget(struct thread *thread)
{
	fd_close(&thread->target.memory);
	thread->stands = thread->settled = thread->told = thread->stale = false;
	thread->umask = -1;
}

/* Thread ids are given out in order, so the low bits spread them over the sets. */
static struct thread *set_of(struct threads *threads, pid_t tid)
{
	return &threads->entries[(size_t)(unsigned)tid % (threads->limit / THREADS_WAYS) * THREADS_WAYS];
}

struct thread *threads_take(struct threads *threads, pid_t tid)
{
	struct thread *set = set_of(threads, tid);
	struct thread *choice = NULL;

	for (size_t i = 0; i < THREADS_WAYS; i++) {
		struct thread *thread = &set[i];
		bool same = thread->used && thread->target.tid == tid;
		/*
		 * A worker is not done with it yet: a second slot for one thread would outlive what the first learns. Nor does
		 * the first learn what this call changes.
		 */
		if (same && thread->busy) {
			thread->stale = true;
			return NULL;
		}
		if (thread->busy)
			continue;
		if (same) {
			choice = thread;
			break;
		}
		if (!choice || (choice->used && (!thread->used || thread->last_use < choice->last_use)))
			choice = thread;
	}
	if (!choice)
		return NULL;
	if (choice->used && choice->target.tid != tid)
		thread_clear(choice);
	if (choice->stale)
		thread_forget(choice);
	choice->busy = true;
	choice->last_use = ++threads->clock;
	return choice;
}

void threads_give_back(struct thread *thread)
{
	thread->busy = false;
}

void threads_drop_program(struct threads *threads, pid_t tid)
{
	struct thread *set = set_of(threads, tid);

	for (size_t i = 0; i < THREADS_WAYS; i++)
		if (set[i].used && set[i].target.tid == tid)
			set[i].stale = true;
}

bool thread_open(struct thread *thread, pid_t tid, struct task_status *status)
{
	struct target *target = &thread->target;

	target->task = procfs_task(tid);
	if (target->task < 0)
		return false;
	if (!procfs_status(target->task, tid, status)) {
		fd_close(&target->task);
		return false;
	}
	target->tid = tid;
	target->pid = status->tgid;
	return true;
}

bool thread_is_current(const struct thread *thread)
{
	/* A path lookup below the folder of a dead task fails, whoever has its number now. */
	return faccessat(thread->target.task, "comm", F_OK, 0) == 0;
}

static bool namespace_of(int task, const char *name, uint64_t *inode)
{
	*inode = procfs_namespace(task, name);
	return *inode != 0;
}

static bool root_of(int directory, const char *name, struct statx *status)
{
	return statx(directory, name, AT_STATX_DONT_SYNC | (*name ? 0 : AT_EMPTY_PATH), STATX_INO | STATX_MNT_ID,
		     status) == 0;
}

bool own_context_read(struct own_context *own)
{
	struct statx root;

	if (!namespace_of(procfs_root(), "self/ns/mnt", &own->mount_namespace) ||
	    !namespace_of(procfs_root(), "self/ns/pid", &own->pid_namespace) || !root_of(AT_FDCWD, "/", &root))
		return false;
	own->root_ino = root.stx_ino;
	own->root_dev = makedev(root.stx_dev_major, root.stx_dev_minor);
	own->root_mount = root.stx_mnt_id;
	return true;
}

void thread_stand(struct thread *thread, const struct rights *own, bool confined)
{
	struct target *target = &thread->target;

	if (!thread->stands) {
		bool known = rights_read(target->task, &thread->rights);
		target->rights = known ? &thread->rights : NULL;
		target->standing = known ? rights_compare(own, &thread->rights) : RIGHTS_UNKNOWN;
		thread->stands = true;
	}
	target->confined = confined;
	target->plain = target->standing == RIGHTS_SAME && !confined;
}

void thread_settle(struct thread *thread, const struct own_context *own, uint64_t generation)
{
	struct target *target = &thread->target;
	uint64_t mounts = 0;
	struct statx root;

	target->generation = generation;
	thread->settled = true;
	/* Unreadable (not dumpable, another user): taken for our own context, which is what most of them have, for now. */
	if (!thread->told) {
		thread->settled = namespace_of(target->task, "ns/mnt", &mounts);
		target->mount_namespace = thread->settled ? mounts : own->mount_namespace;
		if (!namespace_of(target->task, "ns/pid", &target->pid_namespace))
			target->pid_namespace = own->pid_namespace;
	}
	thread->told = false;
	target->same_mounts = target->mount_namespace == own->mount_namespace;
	target->same_pids = target->pid_namespace == own->pid_namespace;
	bool known = root_of(target->task, "root", &root);
	thread->settled = thread->settled && known;
	target->same_root =
	    target->same_mounts && (!known || (root.stx_ino == own->root_ino && root.stx_mnt_id == own->root_mount &&
					       makedev(root.stx_dev_major, root.stx_dev_minor) == own->root_dev));
	free(thread->root_path);
	thread->root_path = NULL;
	target->root_path = BYTES("/");
}

void thread_open_root(struct thread *thread)
{
	struct target *target = &thread->target;
	char text[PATH_MAX];

	target->root = AT_FDCWD;
	if (target->same_root)
		return;
	target->root = openat(target->task, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (thread->root_path)
		return;
	ssize_t length = target->root < 0 ? -1 : procfs_own_fd(target->root, text, sizeof(text));
	if (length > 0 && (thread->root_path = strdup(text)) != NULL)
		target->root_path = (struct bytes){thread->root_path, (size_t)length};
}

void thread_close_root(struct thread *thread)
{
	if (thread->target.root >= 0)
		fd_close(&thread->target.root);
}
