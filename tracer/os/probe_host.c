/*
 * Probes of what a run needs besides its listener, and of what explains the answers.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/types.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "ledger/store.h"
#include "os/connector.h"
#include "os/procfs.h"
#include "probe_row.h"

enum {
	DESCRIPTORS_WANTED = 4096,
	ROOM_WANTED = 16 << 20,
	EVENT_MS = 1000,
	EXIT_CODE = 7,
};

void probe_try_procfs(struct probe_result *result)
{
	struct err err = {0};
	struct task_status status;

	if (!procfs_open(&err)) {
		probe_say_error(result, PROBE_MISSING, &err);
		return;
	}
	int task CLEANUP_FD = procfs_task(getpid());
	if (task < 0 || !procfs_status(task, 0, &status) || status.tgid != getpid())
		probe_say(result, PROBE_MISSING,
			  "/proc does not show our own process: it belongs to another pid namespace");
	else
		probe_say(result, PROBE_OK, "mounted, and of this pid namespace");
}

void probe_try_openat2(struct probe_result *result)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};
	int fd CLEANUP_FD = (int)syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how));

	if (fd < 0)
		probe_say(result, PROBE_MISSING, "openat2: %s", strerror(errno));
	else
		probe_say(result, PROBE_OK, "works");
}

void probe_try_mount_ids(struct probe_result *result)
{
	struct statx status;

	if (statx(AT_FDCWD, "/", AT_STATX_DONT_SYNC, STATX_MNT_ID, &status) != 0)
		probe_say(result, PROBE_MISSING, "statx: %s", strerror(errno));
	else if (!(status.stx_mask & STATX_MNT_ID))
		probe_say(result, PROBE_MISSING, "statx does not tell them");
	else
		probe_say(result, PROBE_OK, "told by statx");
}

void probe_try_pidfd(struct probe_result *result)
{
	int fd CLEANUP_FD = pidfd_open(getpid(), 0);

	if (fd < 0)
		probe_say(result, PROBE_MISSING, "pidfd_open: %s", strerror(errno));
	else
		probe_say(result, PROBE_OK, "works");
}

/* ---- births and ends ---- */

/* A process that ends at once, with EXIT_CODE; reaped unless `pidfd` wants it to be held first. */
static pid_t brief_child(int *pidfd)
{
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(EXIT_CODE);
	if (pidfd)
		*pidfd = child > 0 ? pidfd_open(child, 0) : -1;
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return child;
}

/* Wait for the birth and the end of `child` among everybody's, of which there may be no end. */
static bool await_events(int connector, pid_t child, int *status)
{
	const uint64_t limit = clock_monotonic_ns() + EVENT_MS * UINT64_C(1000000);
	struct pollfd wait = {connector, POLLIN, 0};
	struct connector_event event;
	bool born = false;

	while (clock_monotonic_ns() < limit) {
		if (connector_next(connector, &event) != 1) {
			(void)poll(&wait, 1, EVENT_MS / 10);
			continue;
		}
		if (event.type == CONNECTOR_FORK && event.pid == child && event.parent_tgid == getpid())
			born = true;
		if (event.type == CONNECTOR_EXIT && event.pid == child) {
			*status = event.status;
			return born;
		}
	}
	return false;
}

void probe_try_connector(struct probe_result *result)
{
	struct err err = {0};
	int status = 0;

	(void)procfs_open(&err); /* needed only on the way to the initial network namespace */
	err_clear(&err);
	int connector CLEANUP_FD = connector_open(&err);
	if (connector < 0) {
		probe_say_error(result, PROBE_MISSING, &err);
		return;
	}
	pid_t child = brief_child(NULL);
	if (!await_events(connector, child, &status))
		probe_say(result, PROBE_MISSING,
			  "it did not tell of a child's birth and end (its process numbers are not those of this pid "
			  "namespace, or nothing comes)");
	else if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_CODE)
		probe_say(result, PROBE_MISSING, "it told another exit status");
	else
		probe_say(result, PROBE_OK, "births and exit statuses are exact");
}

/* pidfd information (6.13, exit status since 6.15), which older headers lack. */
struct pidfd_information {
	__u64 mask;
	__u64 cgroup;
	__u32 ids[11];
	__s32 exit_code;
};
#define PIDFD_INFORMATION _IOWR(0xff, 11, struct pidfd_information)
enum { PIDFD_INFORMATION_EXIT = 1 << 3 };

void probe_try_exit_status(struct probe_result *result)
{
	struct pidfd_information information = {.mask = PIDFD_INFORMATION_EXIT};
	int pidfd CLEANUP_FD = -1;

	(void)brief_child(&pidfd);
	if (pidfd < 0 || ioctl(pidfd, PIDFD_INFORMATION, &information) != 0)
		probe_say(result, PROBE_MISSING, "PIDFD_GET_INFO: %s", strerror(errno));
	else if (!(information.mask & PIDFD_INFORMATION_EXIT))
		probe_say(result, PROBE_MISSING, "PIDFD_GET_INFO does not tell exit statuses");
	else if (!WIFEXITED(information.exit_code) || WEXITSTATUS(information.exit_code) != EXIT_CODE)
		probe_say(result, PROBE_MISSING, "PIDFD_GET_INFO told another exit status");
	else
		probe_say(result, PROBE_OK, "told by PIDFD_GET_INFO");
}

/* ---- room ---- */

void probe_try_descriptors(struct probe_result *result)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		probe_say(result, PROBE_UNKNOWN, "getrlimit: %s", strerror(errno));
	else
		probe_say(result, limit.rlim_max < DESCRIPTORS_WANTED ? PROBE_MISSING : PROBE_OK, "hard limit %" PRIu64,
			  (uint64_t)limit.rlim_max);
}

/* The nearest folder that exists: a state folder is made by the first run, not by looking at the host. */
static void existing_ancestor(char *path)
{
	struct stat status;

	while (path[1] && lstat(path, &status) != 0 && errno == ENOENT) {
		char *slash = strrchr(path, '/');
		slash[slash == path ? 1 : 0] = 0;
	}
}

void probe_try_state(struct probe_result *result)
{
	char home[PATH_MAX], place[PATH_MAX + 32];
	struct statvfs about;
	struct err err = {0};

	if (!store_home(home, sizeof(home), false, &err)) {
		probe_say_error(result, PROBE_MISSING, &err);
		return;
	}
	snprintf(place, sizeof(place), "%s", home);
	existing_ancestor(place);
	if (statvfs(place, &about) != 0) {
		probe_say(result, PROBE_MISSING, "%.200s: %s", home, strerror(errno));
		return;
	}
	/* Asked by doing: permissions, read-only mounts and quotas all have their say. */
	strcat(place, "/.assure-doctor-XXXXXX");
	if (!mkdtemp(place)) {
		probe_say(result, PROBE_MISSING, "%.200s: cannot be written to: %s", home, strerror(errno));
		return;
	}
	(void)rmdir(place);
	uint64_t room = (uint64_t)about.f_bavail * about.f_frsize;
	probe_say(result, room < ROOM_WANTED ? PROBE_MISSING : PROBE_OK, "%.200s: %" PRIu64 " MiB free", home,
		  room >> 20);
}

/* ---- what explains the rest ---- */

/* The first line of a small file of the system; false when it is not there. */
static bool first_line(const char *path, char *out, size_t size)
{
	/* Files of procfs and securityfs are regular ones. */
	ssize_t length = fd_read_file(AT_FDCWD, path, out, size);

	if (length < 0)
		return false;
	out[strcspn(out, "\n")] = 0;
	return true;
}

void probe_try_yama(struct probe_result *result)
{
	static const char *const meanings[] = {"no restriction", "a process may trace its descendants",
					       "only with the capability SYS_PTRACE", "nobody may trace"};
	char text[16];

	if (!first_line("/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text))) {
		probe_say(result, PROBE_OK, "not there");
		return;
	}
	int scope = text[0] >= '0' && text[0] <= '3' && !text[1] ? text[0] - '0' : -1;
	bool enough = scope == 0 || scope == 1 || (scope == 2 && geteuid() == 0);
	probe_say(result, enough ? PROBE_OK : PROBE_MISSING, "ptrace_scope %s: %s", text,
		  scope < 0 ? "unknown" : meanings[scope]);
}

void probe_try_modules(struct probe_result *result)
{
	char modules[200], label[100];

	if (!first_line("/sys/kernel/security/lsm", modules, sizeof(modules)))
		probe_say(result, PROBE_UNKNOWN, "not shown here (securityfs)");
	else if (first_line("/proc/self/attr/current", label, sizeof(label)) && label[0])
		probe_say(result, PROBE_OK, "%s; we are %s", modules, label);
	else
		probe_say(result, PROBE_OK, "%s", modules);
}

/* What container managers say of themselves in the environment; any other value may be anything, a secret too. */
static const char *named_container(void)
{
	static const char *const known[] = {"docker",  "podman", "lxc",  "lxc-libvirt", "systemd-nspawn",
					    "oci",     "rkt",    "wsl",  "proot",       "pouch",
					    "flatpak", "bwrap",  "kube", "crio"};
	const char *named = getenv("container");

	if (!named || !*named)
		return NULL;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(named, known[i]) == 0)
			return known[i];
	return "one that names itself otherwise";
}

void probe_try_container(struct probe_result *result)
{
	struct utsname host = {0};
	char status[8192];
	const char *named = named_container(), *found = "no sign of one";

	(void)uname(&host);
	if (access("/.dockerenv", F_OK) == 0)
		found = "Docker (/.dockerenv)";
	else if (access("/run/.containerenv", F_OK) == 0)
		found = "Podman (/run/.containerenv)";
	else if (strcasestr(host.release, "microsoft"))
		found = "WSL (the kernel's name)";
	else if (named)
		found = named;
	bool filtered =
	    fd_read_file(AT_FDCWD, "/proc/self/status", status, sizeof(status)) > 0 && strstr(status, "\nSeccomp:\t2");
	probe_say(result, PROBE_OK, "%s%s", found, filtered ? "; a seccomp filter is in force around us" : "");
}

void probe_try_io_uring(struct probe_result *result)
{
	/* Without parameters nothing is made: EFAULT says that there is something that looked for them. */
	long fd = syscall(SYS_io_uring_setup, 1, NULL);

	if (fd < 0 && errno != EFAULT)
		probe_say(result, PROBE_OK, "not usable here (%s)", strerror(errno));
	else
		probe_say(result, PROBE_OK, "there; refused inside a run unless --io-uring allow");
}

void probe_try_seccomp(struct probe_result *result)
{
	char actions[200];

	if (first_line("/proc/sys/kernel/seccomp/actions_avail", actions, sizeof(actions)))
		probe_say(result, PROBE_OK, "%s", actions);
	else
		probe_say(result, PROBE_UNKNOWN, "the kernel does not list its actions: %s", strerror(errno));
}

void probe_try_secret_memory(struct probe_result *result)
{
	int fd CLEANUP_FD = (int)syscall(SYS_memfd_secret, O_CLOEXEC);

	if (fd < 0)
		probe_say(result, PROBE_MISSING, "memfd_secret: %s", strerror(errno));
	else
		probe_say(result, PROBE_OK, "there");
}

/* Our own group in the unified hierarchy, wherever that is mounted; false when there is none. */
static bool own_cgroup(char *place, size_t size)
{
	static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	char text[8192];

	ssize_t length = fd_read_file(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text));
	char *line = length > 0 ? strstr(text, "0::/") : NULL;
	if (!line || (line != text && line[-1] != '\n'))
		return false;
	line[strcspn(line, "\n")] = 0;
	for (size_t i = 0; i < 2; i++) {
		snprintf(place, size, "%s%s/cgroup.procs", mounts[i], line[4] ? line + 3 : "");
		if (access(place, F_OK) == 0 || (i == 1 && !line[4] && access(mounts[i], F_OK) == 0)) {
			*strrchr(place, '/') = 0;
			return true;
		}
	}
	return false;
}

void probe_try_cgroups(struct probe_result *result)
{
	char place[8192 + 64];

	if (!own_cgroup(place, sizeof(place)))
		probe_say(result, PROBE_MISSING, "no unified hierarchy shows our group");
	else if (faccessat(AT_FDCWD, place, W_OK | X_OK, AT_EACCESS) != 0)
		probe_say(result, PROBE_MISSING, "%.200s: %s", place, strerror(errno));
	else
		probe_say(result, PROBE_OK, "%.200s may be divided", place);
}

void probe_try_user_namespaces(struct probe_result *result)
{
	if (unshare(CLONE_NEWUSER) != 0)
		probe_say(result, PROBE_MISSING, "unshare: %s", strerror(errno));
	else
		probe_say(result, PROBE_OK, "can be made");
}
