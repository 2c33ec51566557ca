/*
 * images_calls WAY [ARGUMENT…]: start a program in ways that shells do not have, in the folder that the test prepared.
 * With REPORT in its environment it prints what it was given: its own device and inode, the path that the kernel took,
 * and its arguments.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef AT_EMPTY_PATH
#define AT_EMPTY_PATH 0x1000
#endif

static void give_up(const char *what)
{
	fprintf(stderr, "images_calls: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void print_hex(const char *text)
{
	for (; *text; text++)
		printf("%02x", (unsigned char)*text);
}

/* One line: major:minor inode, hexadecimal path of the call, then each argument behind a comma. */
static int report(int argc, char **argv)
{
	/* getauxval() has it as a number. */
	const char *name = NULL;
	unsigned long address = getauxval(AT_EXECFN);
	struct stat status;

	memcpy(&name, &address, sizeof(name));
	if (stat("/proc/self/exe", &status) != 0)
		give_up("/proc/self/exe");
	printf("%u:%u %lu ", (unsigned)(status.st_dev >> 8 & 0xfff), (unsigned)(status.st_dev & 0xff),
	       (unsigned long)status.st_ino);
	print_hex(name);
	putchar(' ');
	for (int i = 0; i < argc; i++) {
		putchar(',');
		print_hex(argv[i]);
	}
	putchar('\n');
	return 0;
}

static void finish(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		give_up("wait");
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		printf("status %x\n", (unsigned)status);
}

static void tell_error(void)
{
	printf("error %s\n", strerrorname_np(errno));
	fflush(stdout);
	_exit(0);
}

static void copy_to(int to, const char *name)
{
	char data[65536];
	ssize_t size;
	int from = open(name, O_RDONLY);

	while ((size = read(from, data, sizeof(data))) > 0)
		if (write(to, data, (size_t)size) != size)
			give_up("write");
	close(from);
}

static char mark[] = "REPORT=1", *marked[] = {mark, NULL}, **environment = marked;

struct call {
	int directory;
	const char *path;
	char **argv;
	int flags;
};

static void *exec_at(void *argument)
{
	const struct call *call = argument;

	syscall(SYS_execveat, call->directory, call->path, call->argv, environment, call->flags);
	tell_error();
	return NULL;
}

static void in_child(struct call call, bool thread)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		pthread_t other;
		if (!thread)
			exec_at(&call);
		if (pthread_create(&other, NULL, exec_at, &call) == 0)
			pthread_join(other, NULL);
		_exit(9);
	}
	finish(pid);
}

static void with_memfd(const char *name, char **argv, unsigned flags)
{
	int fd = memfd_create("made here", flags);

	copy_to(fd, name);
	/* Busy while it is open for writing. */
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int again = open(path, O_RDONLY | (flags & MFD_CLOEXEC ? O_CLOEXEC : 0));
	close(fd);
	in_child((struct call){again, "", argv, AT_EMPTY_PATH}, false);
	snprintf(path, sizeof(path), "/dev/fd/%d", again);
	in_child((struct call){AT_FDCWD, path, argv, 0}, false);
	close(again);
}

static void deleted(const char *name, char **argv)
{
	int fd = open("doomed", O_WRONLY | O_CREAT | O_EXCL, 0700);

	copy_to(fd, name);
	close(fd);
	fd = open("doomed", O_PATH);
	unlink("doomed");
	in_child((struct call){fd, "", argv, AT_EMPTY_PATH}, false);
	close(fd);
}

static void spawned(const char *name, char **argv)
{
	pid_t pid;

	fflush(stdout);
	if (posix_spawn(&pid, name, NULL, NULL, argv, environment) != 0)
		give_up("posix_spawn");
	finish(pid);
	pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): it is what is tested */
	if (pid == 0) {
		execve(name, argv, environment);
		_exit(9);
	}
	finish(pid);
}

static void with_directory(const char *name, char **argv)
{
	int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC), inner = open("inner", O_RDONLY | O_DIRECTORY);

	in_child((struct call){here, name, argv, 0}, false);
	in_child((struct call){inner, name, argv, 0}, false);
}

static void in_chroot(const char *name, char **argv)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		if (chroot("root") != 0 || chdir("/") != 0)
			_exit(9);
		execve(name, argv, environment);
		tell_error();
	}
	finish(pid);
}

/* More than a window of ours, more arguments than a record holds, one longer than a page, and any bytes. */
static void many(const char *name)
{
	enum { COUNT = 6000 };
	static char any[256], item[] = "argument", *argv[COUNT + 1];
	static char large[100001];

	for (int i = 0; i < 255; i++)
		any[i] = (char)(i + 1);
	memset(large, 'x', sizeof(large) - 1);
	for (int i = 0; i < COUNT; i++)
		argv[i] = item;
	argv[1] = any;
	in_child((struct call){AT_FDCWD, name, argv, 0}, false);
	argv[2] = large;
	argv[3] = NULL;
	in_child((struct call){AT_FDCWD, name, argv, 0}, false);
	/* An environment that pushes the auxiliary vector away. */
	static char *variables[4001];
	char variable[] = "A=b";
	for (int i = 0; i < 4000; i++)
		variables[i] = variable;
	variables[0] = mark;
	environment = variables;
	argv[2] = NULL;
	in_child((struct call){AT_FDCWD, name, argv, 0}, false);
}

static void failing(char **argv)
{
	static char huge[140000];
	char *too_long[] = {huge, NULL};
	int busy;

	memset(huge, 'x', sizeof(huge) - 1);
	for (; *argv; argv++) {
		char *arguments[] = {*argv, NULL};
		in_child((struct call){AT_FDCWD, *argv, arguments, 0}, false);
	}
	in_child((struct call){AT_FDCWD, "program", too_long, 0}, false);
	busy = open("busy", O_WRONLY);
	char *arguments[] = {huge + sizeof(huge) - 1, NULL};
	in_child((struct call){AT_FDCWD, "busy", arguments, 0}, false);
	close(busy);
}

/* Each failed one must leave this very task untraced. */
static void search(char **argv)
{
	char text[65536];

	for (int i = 0; i < 90; i++) {
		char path[64];
		snprintf(path, sizeof(path), "nowhere-%d/program", i);
		execve(path, argv, environment);
		int fd = open("/proc/self/status", O_RDONLY);
		ssize_t size = read(fd, text, sizeof(text) - 1);
		close(fd);
		text[size > 0 ? size : 0] = 0;
		if (errno != ENOENT || !strstr(text, "TracerPid:\t0\n"))
			give_up(path);
	}
	fflush(stdout);
	execve("program", argv, environment);
	tell_error();
}

int main(int argc, char **argv)
{
	char *none[] = {NULL};

	if (getenv("REPORT") || argc < 2)
		return report(argc, argv);
	const char *way = argv[1], *name = argc > 2 ? argv[2] : "";
	char **rest = argv + (argc > 3 ? 3 : argc);

	if (strcmp(way, "plain") == 0)
		in_child((struct call){AT_FDCWD, name, rest, 0}, false);
	else if (strcmp(way, "thread") == 0)
		in_child((struct call){AT_FDCWD, name, rest, 0}, true);
	else if (strcmp(way, "none") == 0)
		in_child((struct call){AT_FDCWD, name, none, 0}, false);
	else if (strcmp(way, "null") == 0)
		in_child((struct call){AT_FDCWD, name, NULL, 0}, false);
	else if (strcmp(way, "memfd") == 0)
		with_memfd(name, rest, 0);
	else if (strcmp(way, "memfd-closing") == 0)
		with_memfd(name, rest, MFD_CLOEXEC);
	else if (strcmp(way, "deleted") == 0)
		deleted(name, rest);
	else if (strcmp(way, "spawn") == 0)
		spawned(name, rest);
	else if (strcmp(way, "directory") == 0)
		with_directory(name, rest);
	else if (strcmp(way, "chroot") == 0)
		in_chroot(name, rest);
	else if (strcmp(way, "many") == 0)
		many(name);
	else if (strcmp(way, "failing") == 0)
		failing(argv + 2);
	else if (strcmp(way, "search") == 0)
		search(rest);
	else
		return 64;
	return 0;
}
