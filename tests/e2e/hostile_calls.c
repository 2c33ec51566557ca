/*
 * hostile_calls NAME [ARG...]: single calls that are made to be overlooked, misread or waited for. 77 when the kernel
 * does not have what a call needs.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UNSUPPORTED = 77, PAGE = 4096, GROUPS = 2000, HANDLE_SIZE = 128 };

/* Newer than some headers: Landlock's ABI 6. */
enum { LANDLOCK_SCOPES = 6, SCOPE_SIGNAL = 1 << 1, GET_VERSION = 1 << 0 };
struct landlock_rules {
	uint64_t files, net, scoped;
};

/* Newer than some headers, and <linux/mount.h> beside <sys/mount.h> is an error with some: fsconfig's commands. */
enum { CONFIG_STRING = 1, CONFIG_FD = 5, CONFIG_CREATE = 6, MOVE_EMPTY_PATH = 4 };

static int make_and_remove(const char *name)
{
	return mkdir(name, 0700) != 0 || rmdir(name) != 0;
}

/* traces NAME...: each made and removed. */
static int traces(char **names)
{
	for (; *names; names++)
		if (make_and_remove(*names))
			return 1;
	return 0;
}

static int wait_for(pid_t child)
{
	int status;

	return waitpid(child, &status, 0) != child || status != 0;
}

/* userfaultfd THREADS: as many wait in a call whose argument never comes; another process makes a file meanwhile. */
static char *never_there;

static void *make_never_there(void *unused)
{
	(void)unused;
	mkdir(never_there, 0700);
	return NULL;
}

static int user_faults(char **arguments)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	long count = strtol(arguments[0], NULL, 10);
	pthread_attr_t small;
	pthread_t thread;

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0)
		return UNSUPPORTED;
	never_there = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register range = {.range = {(uintptr_t)never_there, PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
	if (ioctl(fd, UFFDIO_REGISTER, &range) != 0)
		return UNSUPPORTED;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 1 << 16);
	for (long i = 0; i < count; i++)
		if (pthread_create(&thread, &small, make_never_there, NULL) != 0)
			return 1;
	sleep(1);
	pid_t child = fork();
	if (child == 0) {
		execl("/bin/sh", "sh", "-c", "mkdir other && echo other", NULL);
		_exit(127);
	}
	_exit(wait_for(child)); /* the threads end with us */
}

/* Whether all that a signal to everybody, or to our group, can hit is the test's own. */
static int among_ourselves(void)
{
	char name[32] = "";
	int fd = open("/proc/1/comm", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, name, sizeof(name) - 1);

	close(fd);
	/* A group whose leader is outside of the namespace has the number 0. */
	return got > 0 && strcmp(name, "hostile-first\n") == 0 && getpgrp() > 0;
}

/* kill scoped|plain -1|0: to everybody or to the group, by a caller that Landlock lets signal nobody, or by one as is. */
static int kill_all(char **arguments)
{
	struct landlock_rules rules = {.scoped = SCOPE_SIGNAL};

	if (!among_ourselves())
		return 64;
	if (strcmp(arguments[0], "scoped") == 0) {
		if (syscall(SYS_landlock_create_ruleset, NULL, 0, GET_VERSION) < LANDLOCK_SCOPES)
			return UNSUPPORTED;
		int set = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);
		if (set < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		    syscall(SYS_landlock_restrict_self, set, 0) != 0)
			return UNSUPPORTED;
	}
	long result = kill((pid_t)strtol(arguments[1], NULL, 10), SIGKILL);
	printf("%s\n", result == 0 ? "ok" : strerrorname_np(errno));
	return 0;
}

/* groups: more of them than a line of anybody's buffer holds. */
static int many_groups(char **unused)
{
	static gid_t groups[GROUPS];

	(void)unused;
	for (gid_t i = 0; i < GROUPS; i++)
		groups[i] = 100000 + i;
	if (setgroups(GROUPS, groups) != 0)
		return UNSUPPORTED;
	pid_t child = fork();
	if (child == 0) {
		int fd = open("of-many-groups", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		_exit(fd < 0 || unlink("of-many-groups") != 0);
	}
	return wait_for(child);
}

/* named NAME...: a process of each name, and its number. */
static int named(char **names)
{
	char text[64];

	for (; *names; names++) {
		fflush(stdout);
		pid_t child = fork();
		if (child == 0) {
			snprintf(text, sizeof(text), "named-%d", getpid());
			_exit(prctl(PR_SET_NAME, *names) != 0 || make_and_remove(text));
		}
		if (wait_for(child))
			return 1;
		printf("%d\n", child);
	}
	return 0;
}

/* thread NAME...: `traces NAME...` executed by a thread that is not the first. */
static char **next_names;

static void *execute_next(void *unused)
{
	static char own_name[] = "hostile_calls", mode[] = "traces";
	static char *command[16] = {own_name, mode};

	(void)unused;
	for (int i = 2; i < 15 && *next_names; i++)
		command[i] = *next_names++;
	execv("/proc/self/exe", command);
	_exit(127);
}

static int thread_exec(char **names)
{
	pthread_t thread;

	next_names = names;
	if (make_and_remove("before-exec") || pthread_create(&thread, NULL, execute_next, NULL) != 0)
		return 1;
	for (;;)
		pause();
}

/*
 * overlay mount|string|fd LOWER UPPER WORK TARGET: the error's name, with a word before it that says which call.
 */
static int said(const char *call, long result)
{
	printf("%s %s\n", call, result < 0 ? strerrorname_np(errno) : "ok");
	return result < 0;
}

static int overlay(char **arguments)
{
	static const char *const keys[] = {"lowerdir", "upperdir", "workdir"};
	char options[4096];

	if (strcmp(arguments[0], "mount") == 0) {
		snprintf(options, sizeof(options), "lowerdir=%s,upperdir=%s,workdir=%s", arguments[1], arguments[2],
			 arguments[3]);
		return said("mount", syscall(SYS_mount, "overlay", arguments[4], "overlay", 0, options));
	}
	int context = (int)syscall(SYS_fsopen, "overlay", 0);
	if (context < 0)
		return said("fsopen", context);
	for (int i = 0; i < 3; i++) {
		int by_fd = i > 0 && strcmp(arguments[0], "fd") == 0;
		int fd = by_fd ? open(arguments[i + 1], O_PATH | O_DIRECTORY | O_CLOEXEC) : 0;
		if (fd < 0)
			return said("open", fd);
		long result = syscall(SYS_fsconfig, context, by_fd ? CONFIG_FD : CONFIG_STRING, keys[i],
				      by_fd ? NULL : arguments[i + 1], fd);
		if (result < 0)
			return said(keys[i], result);
	}
	if (syscall(SYS_fsconfig, context, CONFIG_CREATE, NULL, NULL, 0) != 0)
		return said("create", -1);
	int mounted = (int)syscall(SYS_fsmount, context, 0, 0);
	if (mounted < 0)
		return said("fsmount", mounted);
	return said("move_mount", syscall(SYS_move_mount, mounted, "", AT_FDCWD, arguments[4], MOVE_EMPTY_PATH));
}

/* send: many messages with control data that nobody heeds, the last one with a descriptor. */
enum { MESSAGES = 220, MOST_CONTROL = 131072 };

static long control_limit(void)
{
	char text[32] = "";
	int fd = open("/proc/sys/net/core/optmem_max", O_RDONLY | O_CLOEXEC);
	long limit = fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 ? strtol(text, NULL, 10) : 0;

	close(fd);
	return limit > 0 && limit < MOST_CONTROL ? limit - 72 : MOST_CONTROL - 72;
}

static int send_many(char **unused)
{
	static struct mmsghdr messages[MESSAGES];
	struct iovec data = {(char[]){"x"}, 1};
	long limit = control_limit();
	int pair[2], sent = 0;

	(void)unused;
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) != 0)
		return 1;
	for (int i = 0; i < MESSAGES; i++) {
		/* Some of every size, so that any limit on the sum ends just before the last. */
		size_t size = (size_t)(i < 60 ? limit : i < 200 ? 1000 : 128) & ~(size_t)7;
		struct cmsghdr *header = calloc(1, size);
		if (!header)
			return 1;
		*header = (struct cmsghdr){.cmsg_len = size, .cmsg_level = SOL_IP, .cmsg_type = 99};
		if (i == MESSAGES - 1) {
			*header = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
			memcpy(CMSG_DATA(header), &pair[0], sizeof(int));
			size = CMSG_SPACE(sizeof(int));
		}
		messages[i].msg_hdr =
		    (struct msghdr){.msg_iov = &data, .msg_iovlen = 1, .msg_control = header, .msg_controllen = size};
	}
	pid_t child = fork();
	if (child == 0) { /* takes them out, so that there is room for all */
		char byte;
		for (int i = 0; i < MESSAGES; i++)
			if (recv(pair[1], &byte, 1, 0) != 1)
				_exit(1);
		_exit(0);
	}
	while (sent < MESSAGES) {
		int some = sendmmsg(pair[0], messages + sent, (unsigned)(MESSAGES - sent), 0);
		if (some < 0)
			return said("sendmmsg", some);
		sent += some;
	}
	return wait_for(child);
}

/* save FILE HANDLE: the handle of FILE, stored in HANDLE. handle HANDLE FOLDER: what it leads to, written to. */
struct stored {
	struct file_handle handle;
	char bytes[HANDLE_SIZE];
};

static int save_handle(char **arguments)
{
	struct stored stored = {.handle = {.handle_bytes = HANDLE_SIZE}};
	int mount, fd = open(arguments[1], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (name_to_handle_at(AT_FDCWD, arguments[0], &stored.handle, &mount, 0) != 0)
		return UNSUPPORTED;
	return write(fd, &stored, sizeof(stored)) != sizeof(stored);
}

static int open_handle(char **arguments)
{
	struct stored stored;
	int from = open(arguments[0], O_RDONLY | O_CLOEXEC), folder = open(arguments[1], O_RDONLY | O_CLOEXEC);

	if (read(from, &stored, sizeof(stored)) != sizeof(stored) || folder < 0)
		return 1;
	int fd = open_by_handle_at(folder, &stored.handle, O_RDWR | O_CLOEXEC);
	if (fd >= 0 && pwrite(fd, "DATA", 4, 0) != 4)
		return 1;
	said("open_by_handle_at", fd);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int arguments;
		int (*run)(char **arguments);
	} calls[] = {{"traces", 1, traces},    {"userfaultfd", 1, user_faults},
		     {"kill", 2, kill_all},    {"groups", 0, many_groups},
		     {"named", 1, named},      {"thread", 1, thread_exec},
		     {"overlay", 5, overlay},  {"send", 0, send_many},
		     {"save", 2, save_handle}, {"handle", 2, open_handle}};

	for (size_t i = 0; argc > 1 && i < sizeof(calls) / sizeof(calls[0]); i++)
		if (strcmp(calls[i].name, argv[1]) == 0 && argc >= calls[i].arguments + 2)
			return calls[i].run(argv + 2);
	return 64;
}
