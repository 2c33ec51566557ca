/*
 * Opening: every flag with every access mode on every kind of name, and what F_GETFL says of it afterwards.
 */
#include <linux/openat2.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "equal.h"

/* The C library defines this as 0 where the kernel has a bit that programs can still pass. */
#define KERNEL_LARGEFILE 0100000
/* A bit that no kernel has given a meaning yet. */
#define UNKNOWN_FLAG 0x40000000

struct flags {
	const char *name;
	int flags;
};

static const struct flags all_flags[] = {
    {"0", 0},
    {"CREAT", O_CREAT},
    {"CREAT|EXCL", O_CREAT | O_EXCL},
    {"EXCL", O_EXCL},
    {"TRUNC", O_TRUNC},
    {"CREAT|TRUNC", O_CREAT | O_TRUNC},
    {"EXCL|TRUNC", O_EXCL | O_TRUNC},
    {"APPEND", O_APPEND},
    {"CREAT|APPEND|TRUNC", O_CREAT | O_APPEND | O_TRUNC},
    {"NOFOLLOW", O_NOFOLLOW},
    {"CREAT|NOFOLLOW", O_CREAT | O_NOFOLLOW},
    {"DIRECTORY", O_DIRECTORY},
    {"DIRECTORY|CREAT", O_DIRECTORY | O_CREAT},
    {"DIRECTORY|TRUNC", O_DIRECTORY | O_TRUNC},
    {"DIRECTORY|CREAT|EXCL", O_DIRECTORY | O_CREAT | O_EXCL},
    {"PATH", O_PATH},
    {"PATH|NOFOLLOW", O_PATH | O_NOFOLLOW},
    {"PATH|CREAT", O_PATH | O_CREAT},
    {"PATH|TRUNC|CLOEXEC", O_PATH | O_TRUNC | O_CLOEXEC},
    {"PATH|DIRECTORY", O_PATH | O_DIRECTORY},
    {"CLOEXEC", O_CLOEXEC},
    {"CREAT|CLOEXEC", O_CREAT | O_CLOEXEC},
    {"CREAT|NONBLOCK", O_CREAT | O_NONBLOCK},
    {"SYNC", O_SYNC},
    {"CREAT|SYNC", O_CREAT | O_SYNC},
    {"DSYNC", O_DSYNC},
    {"DIRECT", O_DIRECT},
    {"CREAT|DIRECT", O_CREAT | O_DIRECT},
    {"NOATIME", O_NOATIME},
    {"CREAT|NOATIME", O_CREAT | O_NOATIME},
    {"ASYNC", O_ASYNC},
    {"CREAT|ASYNC", O_CREAT | O_ASYNC},
    {"CREAT|NOCTTY", O_CREAT | O_NOCTTY},
    {"LARGEFILE", KERNEL_LARGEFILE},
    {"CREAT|LARGEFILE", O_CREAT | KERNEL_LARGEFILE},
    {"TMPFILE", O_TMPFILE},
    {"TMPFILE|EXCL", O_TMPFILE | O_EXCL},
    {"TMPFILE|CREAT", O_TMPFILE | O_CREAT},
    {"TMPFILE without DIRECTORY", O_TMPFILE & ~O_DIRECTORY},
    {"CREAT|unknown", O_CREAT | UNKNOWN_FLAG},
    {"CREAT|APPEND|NONBLOCK|SYNC|NOFOLLOW", O_CREAT | O_APPEND | O_NONBLOCK | O_SYNC | O_NOFOLLOW},
    {NULL, 0},
};

static const char *const all_names[] = {"file",    "folder", "to-file", "to-folder", "to-nothing",
					"nothing", "pipe",   "socket",  "private",   NULL};

static void make_socket(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, name);
	NEED(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	close(fd);
}

static void make_targets(void)
{
	make_file("file", 0644, "hello");
	make_file("private", 0000, "hello");
	make_folder("folder", 0755);
	NEED(symlink("file", "to-file") == 0 && symlink("folder", "to-folder") == 0);
	NEED(symlink("made", "to-nothing") == 0);
	NEED(mkfifo("pipe", 0644) == 0);
	make_socket("socket");
}

/* What one open did to what was there. Then all is as before. */
static void restore_targets(void)
{
	struct stat status;

	if (stat("file", &status) == 0 && status.st_size != 5) {
		say("  file has %ld bytes", (long)status.st_size);
		put_text("file", "hello");
	}
	if (stat("made", &status) == 0 || stat("nothing", &status) == 0)
		say_status("made", &status);
	unlink("made");
	unlink("nothing");
}

static void open_all(int mode)
{
	make_targets();
	for (const struct flags *one = all_flags; one->name; one++) {
		for (int i = 0; all_names[i]; i++) {
			/* one end of a pipe alone would wait for the other */
			bool waits = strcmp(all_names[i], "pipe") == 0 && mode < O_RDWR;
			int flags = one->flags | mode | (waits ? O_NONBLOCK : 0);
			int fd = (int)step(open(all_names[i], flags, 0640), "%d %s %s", mode, one->name, all_names[i]);
			facts(fd);
			if (fd >= 0)
				close(fd);
			restore_targets();
		}
	}
}

static void open_read_only(void)
{
	open_all(O_RDONLY);
}

static void open_write_only(void)
{
	open_all(O_WRONLY);
}

static void open_read_write(void)
{
	open_all(O_RDWR);
}

/* Neither: rights for both are asked, and none is given but to control. */
static void open_mode_three(void)
{
	open_all(O_ACCMODE);
}

static void open_old_calls(void)
{
#ifdef SYS_open
	umask(027);
	STEP_CLOSE(syscall(SYS_open, "a", O_WRONLY | O_CREAT, 0666), "open new");
	STEP_CLOSE(syscall(SYS_open, "a", O_WRONLY | O_CREAT | O_EXCL, 0666), "open exclusive");
	STEP_CLOSE(syscall(SYS_open, "c", O_RDWR), "open absent");
	facts_of("a");
	int fd = (int)step(syscall(SYS_creat, "b", 06777), "creat new");
	facts(fd);
	NEED(write(fd, "text", 4) == 4);
	step(read(fd, &(char){0}, 1), "creat does not read");
	close(fd);
	STEP_CLOSE(syscall(SYS_creat, "b", 0600), "creat existing");
	facts_of("b");
	make_folder("d", 0755);
	step(syscall(SYS_creat, "d", 0600), "creat folder");
	NEED(symlink("later", "l") == 0);
	STEP_CLOSE(syscall(SYS_creat, "l", 0600), "creat through link");
	step(syscall(SYS_creat, "absent/x", 0600), "creat in absent");
	facts_of("later");
#else
	skip("this architecture has neither open nor creat");
#endif
}

/* Bits above the lower 32 of an int, and modes beyond what a mode can hold. */
static void open_odd_arguments(void)
{
	long high = 1L << 40;

	STEP_CLOSE(syscall(SYS_openat, (long)AT_FDCWD | high, "a", O_WRONLY | O_CREAT, 0644L), "high bits in dirfd");
	STEP_CLOSE(syscall(SYS_openat, 0xffffff9cL, "b", O_WRONLY | O_CREAT, 0644L), "dirfd of 32 bits");
	STEP_CLOSE(syscall(SYS_openat, AT_FDCWD, "c", (long)(O_WRONLY | O_CREAT) | high, 0644L), "high bits in flags");
	STEP_CLOSE(syscall(SYS_openat, AT_FDCWD, "d", O_WRONLY | O_CREAT, 0644L | high), "high bits in mode");
	STEP_CLOSE(syscall(SYS_openat, AT_FDCWD, "e", O_WRONLY | O_CREAT, 0170644L), "mode with a type");
	STEP_CLOSE(syscall(SYS_openat, AT_FDCWD, "f", O_WRONLY | O_CREAT, 0xffffffffL), "mode of ones");
	STEP_CLOSE(syscall(SYS_openat, AT_FDCWD, "g", O_RDONLY, 0644L), "mode without create");
	STEP_CLOSE(syscall(SYS_openat, AT_FDCWD, "h", O_RDONLY | O_CREAT, 0L), "no mode at all");
	STEP_CLOSE(syscall(SYS_openat, AT_FDCWD, "i", O_RDWR | O_CREAT, 0L), "writable once");
	step(syscall(SYS_openat, AT_FDCWD, "i", O_RDWR, 0L), "not again");
}

static long open_how(const char *name, uint64_t flags, uint64_t mode, uint64_t resolve)
{
	struct open_how how = {.flags = flags, .mode = mode, .resolve = resolve};

	return syscall(SYS_openat2, AT_FDCWD, name, &how, sizeof(how));
}

static void open2_resolve(void)
{
	static const struct flags resolves[] = {
	    {"NONE", 0},
	    {"NO_XDEV", RESOLVE_NO_XDEV},
	    {"NO_MAGICLINKS", RESOLVE_NO_MAGICLINKS},
	    {"NO_SYMLINKS", RESOLVE_NO_SYMLINKS},
	    {"BENEATH", RESOLVE_BENEATH},
	    {"IN_ROOT", RESOLVE_IN_ROOT},
	    {"BENEATH|IN_ROOT", RESOLVE_BENEATH | RESOLVE_IN_ROOT},
	    {"unknown", 0x40},
	    {NULL, 0},
	};
	static const char *const names[] = {"file",  "to-file",         "folder/../file",  "../open2_resolve/file",
					    "/file", "/proc/self/comm", "/proc/self/fd/5", "to-up",
					    "new",   "folder/new",      "to-nothing",      NULL};

	make_targets();
	NEED(symlink("../open2_resolve/file", "to-up") == 0);
	NEED(dup3(open("file", O_RDWR), 5, 0) == 5);
	for (const struct flags *one = resolves; one->name; one++) {
		for (int i = 0; names[i]; i++) {
			uint64_t resolve = (uint64_t)one->flags;
			STEP_CLOSE(open_how(names[i], O_RDWR, 0, resolve), "%s %s", one->name, names[i]);
			/* not in the machine's own root */
			if (names[i][0] == '/')
				continue;
			STEP_CLOSE(open_how(names[i], O_WRONLY | O_CREAT, 0666, resolve), "%s %s create", one->name,
				   names[i]);
			unlink("new");
			unlink("folder/new");
			unlink("made");
		}
	}
	STEP_CLOSE(open_how("file", O_RDWR, 0, RESOLVE_CACHED), "cached");
	step(open_how("other", O_RDWR | O_CREAT, 0600, RESOLVE_CACHED), "cached create");
	step(open_how("file", O_RDWR | O_TRUNC, 0, RESOLVE_CACHED), "cached truncate");
	step(open_how(".", O_RDWR | O_TMPFILE, 0600, RESOLVE_CACHED), "cached without a name");
}

static void open2_arguments(void)
{
	struct {
		struct open_how how;
		uint64_t more[600];
	} long_how = {.how = {.flags = O_WRONLY | O_CREAT, .mode = 0640}};
	static const size_t sizes[] = {0, 8, 16, 23, 24, 25, 32, 4096, 4097, SIZE_MAX};

	umask(0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		STEP_CLOSE(syscall(SYS_openat2, AT_FDCWD, "a", &long_how, sizes[i]), "size %zu", sizes[i]);
	long_how.more[1] = 1;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		STEP_CLOSE(syscall(SYS_openat2, AT_FDCWD, "b", &long_how, sizes[i]), "size %zu with more", sizes[i]);
	step(syscall(SYS_openat2, AT_FDCWD, "c", NULL, 24), "no how");
	step(syscall(SYS_openat2, AT_FDCWD, "c", (void *)8, 24), "bad how");
	step(syscall(SYS_openat2, AT_FDCWD, NULL, &long_how, 24), "no path");
	step(syscall(SYS_openat2, -1, "c", &long_how, 24), "bad dirfd");
	step(open_how("c", O_WRONLY | O_CREAT | UNKNOWN_FLAG, 0600, 0), "unknown flag");
	step(open_how("c", O_WRONLY | O_CREAT | 1ULL << 40, 0600, 0), "high flag");
	step(open_how("c", O_WRONLY | O_CREAT, 0170600, 0), "mode with a type");
	step(open_how("c", O_WRONLY | O_CREAT, 1ULL << 40, 0), "high mode");
	step(open_how("a", O_WRONLY, 0600, 0), "mode without create");
	step(open_how("a", O_PATH | O_RDWR, 0, 0), "path with access");
	step(open_how("c", O_WRONLY | O_CREAT, 0600, 1ULL << 40), "high resolve");
	step(open_how("c", O_CREAT | O_DIRECTORY, 0600, 0), "create folder");
	int fd = (int)step(open_how("d", O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 07777, 0), "all modes");
	facts(fd);
	fd = (int)step(open_how(".", O_RDWR | O_TMPFILE, 0640, 0), "without a name");
	facts(fd);
}

static void open_without_name(void)
{
	char link_name[64];

	umask(027);
	int fd = (int)step(open(".", O_TMPFILE | O_RDWR, 06666), "no name");
	facts(fd);
	NEED(write(fd, "kept", 4) == 4);
	/* by the descriptor alone only with CAP_DAC_READ_SEARCH, or the credentials that opened it */
	step(linkat(fd, "", AT_FDCWD, "by-descriptor", AT_EMPTY_PATH), "linkat empty");
	snprintf(link_name, sizeof(link_name), "/proc/self/fd/%d", fd);
	step(linkat(AT_FDCWD, link_name, AT_FDCWD, "by-proc", AT_SYMLINK_FOLLOW), "linkat proc");
	facts(fd);
	content_of("by-proc");
	fd = (int)step(open(".", O_TMPFILE | O_WRONLY | O_EXCL, 0644), "never a name");
	step(linkat(fd, "", AT_FDCWD, "never", AT_EMPTY_PATH), "linkat exclusive");
	step(open(".", O_TMPFILE | O_RDONLY, 0644), "read only");
	step(open("by-proc", O_TMPFILE | O_RDWR, 0644), "on a file");
	step(open("absent", O_TMPFILE | O_RDWR, 0644), "in absent");
	make_folder("read-only", 0555);
	STEP_CLOSE(open("read-only", O_TMPFILE | O_RDWR, 0644), "in a folder that is read-only");
	fd = (int)step(open(".", O_TMPFILE | O_RDWR | O_CLOEXEC | O_APPEND, 0), "mode 0");
	facts(fd);
}

static void open_append(void)
{
	int one = (int)step(open("log", O_WRONLY | O_CREAT | O_APPEND, 0644), "first writer");
	int other = (int)step(open("log", O_WRONLY | O_APPEND), "second writer");
	int plain = (int)step(open("log", O_RDWR), "third, without append");

	for (int i = 0; i < 3; i++) {
		NEED(write(one, "one ", 4) == 4);
		NEED(write(other, "other ", 6) == 6);
	}
	NEED(write(plain, "PLAIN", 5) == 5);
	step(pwrite(one, "x", 1, 0), "pwrite appends all the same");
	facts(one);
	facts(plain);
	content_of("log");
	int fd = (int)step(open("log", O_RDONLY | O_TRUNC), "truncate though read only");
	facts(fd);
	step(write(fd, "x", 1), "write to it");
	content_of("log");
}

static const struct equal_case cases[] = {
    {"open_read_only", false, open_read_only},
    {"open_write_only", false, open_write_only},
    {"open_read_write", false, open_read_write},
    {"open_mode_three", false, open_mode_three},
    {"open_old_calls", false, open_old_calls},
    {"open_odd_arguments", false, open_odd_arguments},
    {"open2_resolve", false, open2_resolve},
    {"open2_arguments", false, open2_arguments},
    {"open_without_name", false, open_without_name},
    {"open_append", false, open_append},
    {NULL},
};

int main(int argc, char **argv)
{
	return equal_main(cases, argc, argv);
}
