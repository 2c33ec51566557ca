/*
 * What the programs in this folder share. Each is a table of cases; a case runs in a process and a folder of its
 * own and prints what it saw, one line per step. tests/equality/run.py runs the same case alone and under `assure
 * trace`, and the lines, the way it ended and the folder that it leaves must be the same.
 *
 *   PROGRAM --list       names, each with "root" when only root can run it
 *   PROGRAM NAME...      runs these, each in the folder NAME of the working directory
 *
 * So a line may hold nothing that differs between two runs: no process ids, inode numbers or clocks, but relations.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The number that lines go to is far from those that cases get, close and count. */
enum { EQUAL_OUT = 900, EQUAL_SECONDS = 20, EQUAL_BROKEN = 99, EQUAL_LINE = 8192 };

/* No account of the machine is needed for these. */
enum { NOBODY = 65534, STRANGER = 54321 };

struct equal_case {
	const char *name;
	bool root; /* only root can run it */
	void (*run)(void);
};

/* One write a line: several processes may be talking. */
static inline void say_bytes(const char *line, size_t size)
{
	if (write(EQUAL_OUT, line, size) != (ssize_t)size)
		_exit(EQUAL_BROKEN);
}

__attribute__((format(printf, 1, 0))) static inline void say_list(const char *format, va_list arguments,
								  const char *tail)
{
	char line[EQUAL_LINE];
	int size = vsnprintf(line, sizeof(line) - 256, format, arguments);

	if (size < 0 || size > (int)sizeof(line) - 256)
		_exit(EQUAL_BROKEN);
	size += snprintf(line + size, 256, "%s\n", tail);
	say_bytes(line, (size_t)size);
}

__attribute__((format(printf, 1, 2))) static inline void say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say_list(format, arguments, "");
	va_end(arguments);
}

static inline const char *name_of_error(int error)
{
	const char *name = strerrorname_np(error);

	return name ? name : "(no such error)";
}

/* Print what a call returned: the value, or errno's name when it is -1. */
__attribute__((format(printf, 2, 3))) static inline long step(long result, const char *format, ...)
{
	char tail[64];
	int error = errno;
	va_list arguments;

	if (result == -1)
		snprintf(tail, sizeof(tail), ": %s", name_of_error(error));
	else
		snprintf(tail, sizeof(tail), ": %ld", result);
	va_start(arguments, format);
	say_list(format, arguments, tail);
	va_end(arguments);
	errno = error;
	return result;
}

/* The same for a call that gives a descriptor, which is of no more use. */
#define STEP_CLOSE(result, ...)                              \
	do {                                                 \
		long closing_ = step((result), __VA_ARGS__); \
		if (closing_ >= 0)                           \
			close((int)closing_);                \
	} while (0)

/* What a case rests on. Without it the case is broken, and that is never equality. */
#define NEED(condition)                                                                             \
	do {                                                                                        \
		if (!(condition)) {                                                                 \
			say("broken: line %d: %s: %s", __LINE__, #condition, name_of_error(errno)); \
			_exit(EQUAL_BROKEN);                                                        \
		}                                                                                   \
	} while (0)

__attribute__((format(printf, 1, 2))) static inline void skip(const char *format, ...)
{
	char reason[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reason, sizeof(reason), format, arguments);
	va_end(arguments);
	say("skip: %s", reason);
}

/* Bytes as text on one line. */
static inline const char *escaped(const char *bytes, size_t size)
{
	static _Thread_local char text[EQUAL_LINE / 2];
	size_t used = 0;

	for (size_t i = 0; i < size && used < sizeof(text) - 8; i++) {
		unsigned char byte = (unsigned char)bytes[i];
		if (byte < 0x20 || byte > 0x7e || byte == '\\')
			used += (size_t)snprintf(text + used, 5, "\\x%02x", byte);
		else
			text[used++] = (char)byte;
	}
	text[used] = 0;
	return text;
}

static inline void say_status(const char *what, const struct stat *status)
{
	bool folder = S_ISDIR(status->st_mode);

	/* a folder's size and number of links are the file system's own business */
	say("  %s: mode %06o uid %u gid %u nlink %ld size %ld rdev %x", what, status->st_mode, status->st_uid,
	    status->st_gid, folder ? -1L : (long)status->st_nlink, folder ? -1L : (long)status->st_size,
	    (unsigned)status->st_rdev);
}

/* What can be seen of a descriptor. */
static inline void facts(int fd)
{
	struct stat status;

	if (fd < 0)
		return;
	say("  getfl 0%o getfd %d offset %ld", (unsigned)fcntl(fd, F_GETFL), fcntl(fd, F_GETFD),
	    (long)lseek(fd, 0, SEEK_CUR));
	if (fstat(fd, &status) == 0)
		say_status("fstat", &status);
	else
		say("  fstat: %s", name_of_error(errno));
}

/* What stands under a name, the link itself if it is one. */
static inline void facts_of(const char *name)
{
	struct stat status;
	char to[PATH_MAX];

	if (lstat(name, &status) != 0) {
		say("  lstat %s: %s", name, name_of_error(errno));
		return;
	}
	say_status(name, &status);
	ssize_t size = S_ISLNK(status.st_mode) ? readlink(name, to, sizeof(to)) : -1;
	if (size >= 0)
		say("  to %s", escaped(to, (size_t)size));
}

static inline void times_of(const char *name)
{
	struct stat status;

	NEED(lstat(name, &status) == 0);
	say("  times %s: %ld.%09ld %ld.%09ld", name, status.st_atim.tv_sec, status.st_atim.tv_nsec,
	    status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

static inline void content_of(const char *name)
{
	char bytes[512];
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t size = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));

	if (size < 0)
		say("  content %s: %s", name, name_of_error(errno));
	else
		say("  content %s: \"%s\"", name, escaped(bytes, (size_t)size));
	if (fd >= 0)
		close(fd);
}

/* A file with a text in it, and exactly this mode. */
static inline void make_file(const char *name, mode_t mode, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	NEED(fd >= 0);
	NEED(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	NEED(fchmod(fd, mode) == 0);
	close(fd);
}

static inline void make_folder(const char *name, mode_t mode)
{
	NEED(mkdir(name, 0700) == 0);
	NEED(chmod(name, mode) == 0);
}

static inline void put_text(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CLOEXEC);

	NEED(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static inline void pause_ms(long milliseconds)
{
	struct timespec rest = {milliseconds / 1000, milliseconds % 1000 * 1000000};

	while (nanosleep(&rest, &rest) != 0 && errno == EINTR)
		;
}

/* Wait until a process sleeps: as near as one can come to "it blocks in its call now". */
static inline void await_sleep(pid_t pid)
{
	char name[64], text[512];

	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	for (int i = 0; i < 200; i++) {
		pause_ms(5);
		int fd = open(name, O_RDONLY | O_CLOEXEC);
		ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
		if (fd >= 0)
			close(fd);
		if (size <= 0)
			return;
		text[size] = 0;
		const char *state = strrchr(text, ')');
		if (state && state[2] == 'S' && i > 4)
			return;
	}
}

static inline void say_end(const char *what, int status)
{
	if (WIFSIGNALED(status))
		say("%s ended by SIG%s", what, sigabbrev_np(WTERMSIG(status)));
	else
		say("%s ended with %d", what, WEXITSTATUS(status));
}

static inline void join_child(const char *what, pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		NEED(errno == EINTR);
	say_end(what, status);
}

static inline pid_t start_child(void (*run)(void))
{
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0) {
		run();
		_exit(0);
	}
	return pid;
}

/* Run in a process of its own, so that what it does to itself is gone afterwards. */
static inline void in_child(const char *what, void (*run)(void))
{
	say("%s:", what);
	join_child(what, start_child(run));
}

static inline void run_case(const struct equal_case *one)
{
	int status = 0;

	say("== begin %s", one->name);
	pid_t pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		umask(022);
		NEED(chdir(one->name) == 0);
		one->run();
		_exit(0);
	}
	struct pollfd waiting = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	bool hangs = poll(&waiting, 1, EQUAL_SECONDS * 1000) == 0;
	close(waiting.fd);
	kill(pid, SIGKILL);
	kill(-pid, SIGKILL);
	waitpid(pid, &status, 0);
	if (hangs)
		say("== end hang");
	else if (WIFSIGNALED(status))
		say("== end signal %s", sigabbrev_np(WTERMSIG(status)));
	else
		say("== end exit %d", WEXITSTATUS(status));
}

static inline int equal_main(const struct equal_case *cases, int argc, char **argv)
{
	bool list = argc == 2 && strcmp(argv[1], "--list") == 0;

	if (!list && dup3(STDOUT_FILENO, EQUAL_OUT, 0) != EQUAL_OUT)
		return EQUAL_BROKEN;
	for (const struct equal_case *one = cases; one->name; one++) {
		if (list)
			printf("%s %s\n", one->name, one->root ? "root" : "any");
		for (int i = 1; i < argc && !list; i++) {
			if (strcmp(argv[i], one->name) == 0)
				run_case(one);
		}
	}
	return 0;
}
