#include "os/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"

static int proc_fd = -1;
static int own_descriptors = -1;

bool procfs_open(struct err *err)
{
	struct statfs about;

	if (proc_fd >= 0)
		return true;
	int fd CLEANUP_FD = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstatfs(fd, &about) != 0 || about.f_type != PROC_SUPER_MAGIC) {
		err_set(err, fd < 0 ? errno : 0, "/proc is not the proc file system");
		return err_hint(err, "mount it: mount -t proc proc /proc");
	}
	proc_fd = fd_steal(&fd);
	return true;
}

void procfs_settle(void)
{
	/* Each component costs as much as the link itself. */
	own_descriptors = openat(proc_fd, "self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int procfs_root(void)
{
	return proc_fd;
}

int procfs_task(pid_t tid)
{
	char name[16];

	snprintf(name, sizeof(name), "%d", tid);
	return openat(proc_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* A process may call itself "Tgid:", so the name must begin a line. */
const char *procfs_status_field(const char *text, const char *name)
{
	for (const char *found = strstr(text, name); found; found = strstr(found + 1, name))
		if (found == text || found[-1] == '\n')
			return found + strlen(name);
	return NULL;
}

bool procfs_read(int directory, const char *name, char *text, size_t size)
{
	int fd CLEANUP_FD = openat(directory, name, O_RDONLY | O_CLOEXEC);
	ssize_t got = -1;

	/* Files of one record, as these are, come whole in one read (seq_file of the kernel). */
	do
		got = fd < 0 ? -1 : read(fd, text, size - 1);
	while (got < 0 && errno == EINTR && fd >= 0);
	if (got < 0)
		return false;
	text[got] = 0;
	return true;
}

long procfs_status_number(const char *text, const char *name, int column)
{
	const char *cursor = procfs_status_field(text, name);
	char *end;
	long value = 0;

	for (int i = 0; cursor && i <= column; i++) {
		value = strtol(cursor, &end, 10);
		if (end == cursor)
			return 0;
		cursor = end;
	}
	return cursor ? value : 0;
}

/*
 * A number of /proc/TID/stat by its field (proc_pid_stat(5)). The second field, the name, may hold anything, so counting
 * starts behind the last ')'. False when the text is shorter.
 */
static bool stat_number(const char *text, int field, long long *value)
{
	enum { AFTER_NAME = 2 };
	const char *cursor = strrchr(text, ')');
	char *end;

	for (int at = AFTER_NAME; at < field && cursor; at++)
		cursor = strchr(cursor + 1, ' ');
	if (!cursor)
		return false;
	*value = strtoll(cursor, &end, 10);
	return end != cursor;
}

static bool parse_stat(const char *text, struct task_status *status)
{
	long long parent, group, session, threads, start;
	const char *name_end = strrchr(text, ')');

	if (!name_end || name_end[1] != ' ' || !stat_number(text, 4, &parent) || !stat_number(text, 5, &group) ||
	    !stat_number(text, 6, &session) || !stat_number(text, 20, &threads) || !stat_number(text, 22, &start))
		return false;
	status->state = name_end[2];
	status->ppid = (pid_t)parent;
	status->group = (pid_t)group;
	status->session = (pid_t)session;
	status->threads = (unsigned)threads;
	status->start_ticks = (uint64_t)start;
	return true;
}

int procfs_exit_status(int task)
{
	enum { EXIT_CODE_FIELD = 52 };
	char text[8192];
	long long code;

	if (!procfs_read(task, "stat", text, sizeof(text)))
		return -1;
	const char *name_end = strrchr(text, ')');
	bool zombie = name_end && name_end[1] == ' ' && name_end[2] == 'Z';
	return zombie && stat_number(text, EXIT_CODE_FIELD, &code) ? (int)code : -1;
}

/* A pidfd is made for leaders alone, and asking for one is far cheaper than having the kernel write a status. */
static bool leads(pid_t tid)
{
	int pidfd CLEANUP_FD = pidfd_open(tid, 0);

	return pidfd >= 0;
}

bool procfs_status(int task, pid_t tid, struct task_status *status)
{
	char text[8192];

	*status = (struct task_status){0};
	if (!procfs_read(task, "stat", text, sizeof(text)))
		return false;
	if (!parse_stat(text, status)) {
		errno = EPROTO;
		return false;
	}
	if (tid > 0 && leads(tid)) {
		status->tgid = tid;
		return true;
	}
	if (!procfs_read(task, "status", text, sizeof(text)))
		return false;
	status->tgid = (pid_t)procfs_status_number(text, "Tgid:", 0);
	return true;
}

bool procfs_signal_pending(int task)
{
	static const char *const names[] = {"SigPnd:", "ShdPnd:", "SigBlk:"};
	char text[8192];
	uint64_t sets[3] = {0};

	if (!procfs_read(task, "status", text, sizeof(text)))
		return true;
	for (size_t i = 0; i < 3; i++) {
		const char *value = procfs_status_field(text, names[i]);
		if (!value)
			return true;
		sets[i] = strtoull(value, NULL, 16);
	}
	return ((sets[0] | sets[1]) & ~sets[2]) != 0;
}

ssize_t procfs_link(int task, const char *name, char *out, size_t size)
{
	ssize_t length = readlinkat(task, name, out, size);

	/* A full buffer may have been cut: that is not an answer. */
	if (length >= 0 && (size_t)length >= size) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (length >= 0)
		out[length] = 0;
	return length;
}

/* From the link's text, "net:[4026531840]": following it would have the kernel make the object behind it each time. */
uint64_t procfs_namespace(int task, const char *name)
{
	char text[64];
	const char *number = procfs_link(task, name, text, sizeof(text)) > 0 ? strchr(text, '[') : NULL;

	return number ? strtoull(number + 1, NULL, 10) : 0;
}

int procfs_umask(int task)
{
	char text[512]; /* the second line, behind a name of at most 64 bytes */

	if (!procfs_read(task, "status", text, sizeof(text)))
		return -1;
	const char *mask = procfs_status_field(text, "Umask:");
	return mask ? (int)strtol(mask, NULL, 8) : -1;
}

bool procfs_limit(int task, pid_t tid, int resource, uint64_t *limit)
{
	const char *name = resource == RLIMIT_FSIZE ? "Max file size" : "Max open files";
	char text[4096], *end;
	struct rlimit both;

	if (prlimit(tid, (__rlimit_resource_t)resource, NULL, &both) == 0) {
		*limit = both.rlim_cur;
		return true;
	}
	/* Of another user, and without CAP_SYS_RESOURCE: the text says it as well, but takes longer. */
	if (!procfs_read(task, "limits", text, sizeof(text)))
		return false;
	const char *line = strstr(text, name);
	const char *value = line ? line + strlen(name) + strspn(line + strlen(name), " ") : "";
	*limit = strtoull(value, &end, 10);
	if (end == value && strncmp(value, "unlimited", strlen("unlimited")) == 0)
		*limit = UINT64_MAX;
	return end != value || *limit == UINT64_MAX;
}

bool procfs_has_capability(int capability)
{
	char text[8192];

	if (!procfs_read(proc_fd, "self/status", text, sizeof(text)))
		return false;
	const char *effective = procfs_status_field(text, "CapEff:");
	return effective && (strtoull(effective, NULL, 16) >> capability & 1);
}

ssize_t procfs_own_fd(int fd, char *out, size_t size)
{
	char name[32];

	snprintf(name, sizeof(name), own_descriptors >= 0 ? "%d" : "self/fd/%d", fd);
	return procfs_link(own_descriptors >= 0 ? own_descriptors : proc_fd, name, out, size);
}

static long fdinfo_number(int task, int fd, const char *field, int base)
{
	char name[32], text[2048];

	snprintf(name, sizeof(name), "fdinfo/%d", fd);
	if (fd_read_file(task, name, text, sizeof(text)) < 0)
		return -1;
	const char *value = procfs_status_field(text, field);
	return value ? strtol(value, NULL, base) : -1;
}

pid_t procfs_pidfd_target(int task, int fd)
{
	return (pid_t)fdinfo_number(task, fd, "Pid:", 10);
}

int procfs_fd_flags(int task, int fd)
{
	return (int)fdinfo_number(task, fd, "flags:", 8);
}

void procfs_comm(pid_t pid, char out[32])
{
	int task CLEANUP_FD = procfs_task(pid);
	ssize_t length = task < 0 ? -1 : fd_read_file(task, "comm", out, 32);

	if (length <= 0) {
		out[0] = 0;
		return;
	}
	if (out[length - 1] == '\n')
		out[length - 1] = 0;
}
