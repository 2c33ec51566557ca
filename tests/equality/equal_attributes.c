/*
 * Modes, owners, times, lengths and extended attributes, by name and by a descriptor that an open gave.
 */
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <utime.h>

#include "equal.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

static void attributes_chmod(void)
{
	static const mode_t modes[] = {0, 0644, 04755, 02755, 01644, 07777, 0xffff, 0xffffffff};

	make_file("file", 0644, "text");
	make_folder("folder", 0755);
	NEED(symlink("file", "link") == 0 && symlink("nothing", "dangling") == 0 && mkfifo("pipe", 0600) == 0);
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		step(chmod("file", modes[i]), "chmod file %o", modes[i]);
		facts_of("file");
		step(chmod("folder", modes[i]), "chmod folder %o", modes[i]);
		facts_of("folder");
	}
	step(chmod("folder", 0755), "chmod folder back");
	step(chmod("link", 0640), "chmod through a link");
	step(chmod("dangling", 0640), "chmod through a dangling link");
	step(chmod("pipe", 0622), "chmod fifo");
	step(chmod("/proc/self/comm", 0600), "chmod in proc");
	facts_of("file");
}

static void attributes_chmod_flags(void)
{
	make_file("file", 0644, "text");
	NEED(symlink("file", "link") == 0);
	int fd = open("file", O_RDONLY), only = open("file", O_PATH), on_link = open("link", O_PATH | O_NOFOLLOW);

	step(syscall(SYS_fchmodat2, AT_FDCWD, "file", 0600, 0), "no flag");
	step(syscall(SYS_fchmodat2, AT_FDCWD, "link", 0604, 0), "through a link");
	step(syscall(SYS_fchmodat2, AT_FDCWD, "link", 0640, AT_SYMLINK_NOFOLLOW), "the link itself");
	step(syscall(SYS_fchmodat2, AT_FDCWD, "file", 0640, AT_SYMLINK_NOFOLLOW), "a file, not followed");
	step(syscall(SYS_fchmodat2, fd, "", 0660, AT_EMPTY_PATH), "empty path");
	step(syscall(SYS_fchmodat2, only, "", 0666, AT_EMPTY_PATH), "empty path of O_PATH");
	step(syscall(SYS_fchmodat2, on_link, "", 0666, AT_EMPTY_PATH), "empty path of a link");
	step(syscall(SYS_fchmodat2, fd, "", 0600, 0), "empty path without the flag");
	step(syscall(SYS_fchmodat2, AT_FDCWD, "", 0700, AT_EMPTY_PATH), "empty path of cwd");
	step(syscall(SYS_fchmodat2, AT_FDCWD, "file", 0600, 0x8000), "bad flag");
	step(syscall(SYS_fchmodat2, -1, "file", 0600, 0), "bad descriptor");
	step(fchmod(fd, 0622), "fchmod of a descriptor that only reads");
	step(fchmod(only, 0622), "fchmod of O_PATH");
	facts(fd);
	facts_of("link");
}

static void attributes_chown(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	make_file("file", 06755, "text");
	make_folder("folder", 02755);
	NEED(symlink("file", "link") == 0 && symlink("nothing", "dangling") == 0);
	int fd = open("file", O_RDONLY), on_link = open("link", O_PATH | O_NOFOLLOW);
	step(chown("file", (uid_t)-1, (gid_t)-1), "to nobody new");
	facts_of("file");
	step(chown("folder", uid, gid), "folder to its owner");
	facts_of("folder");
	step(chown("file", uid, (gid_t)-1), "to its owner");
	facts_of("file");
	NEED(chmod("file", 06755) == 0);
	step(chown("file", STRANGER, (gid_t)-1), "to a stranger");
	facts_of("file");
	step(chown("file", (uid_t)-1, STRANGER), "to a strange group");
	facts_of("file");
	step(chown("link", uid, gid), "through a link");
	step(lchown("link", STRANGER, STRANGER), "the link");
	facts_of("link");
	step(lchown("dangling", uid, gid), "a dangling link");
	step(chown("dangling", uid, gid), "through a dangling link");
	step(chown("absent", (uid_t)-1, (gid_t)-1), "absent");
	step(fchown(fd, uid, gid), "by descriptor");
	step(fchownat(fd, "", uid, gid, AT_EMPTY_PATH), "by empty path");
	step(fchownat(on_link, "", uid, gid, AT_EMPTY_PATH), "by empty path, the link");
	step(fchownat(AT_FDCWD, "", uid, gid, AT_EMPTY_PATH), "by empty path, cwd");
	step(fchownat(AT_FDCWD, "link", uid, gid, AT_SYMLINK_NOFOLLOW), "not followed");
	step(fchownat(AT_FDCWD, "file", uid, gid, 0x8000), "bad flag");
	facts(fd);
}

static void set_times(const char *label, const char *name, const struct timespec *times, int flags)
{
	step(syscall(SYS_utimensat, AT_FDCWD, name, times, flags), "%s", label);
}

static void attributes_times(void)
{
	static const struct timespec both[2] = {{1000, 1}, {2000, 999999999}};
	static const struct timespec before[2] = {{-1, 5}, {-100000, 6}};
	static const struct timespec one[2] = {{0, UTIME_OMIT}, {3000, 7}};
	static const struct timespec none[2] = {{5, UTIME_OMIT}, {5, UTIME_OMIT}};
	static const struct timespec bad[2] = {{0, 1000000000}, {0, 0}};
	static const struct timespec now[2] = {{4000, 8}, {0, UTIME_NOW}};
	struct stat status;

	make_file("file", 0444, "text");
	NEED(symlink("file", "link") == 0);
	int fd = open("file", O_RDONLY), only = open("file", O_PATH);
	set_times("explicit", "file", both, 0);
	times_of("file");
	set_times("before the epoch", "file", before, 0);
	times_of("file");
	set_times("one omitted", "file", one, 0);
	times_of("file");
	set_times("both omitted", "file", none, 0);
	set_times("both omitted of absent", "absent", none, 0);
	times_of("file");
	set_times("bad nanoseconds", "file", bad, 0);
	set_times("one now", "file", now, 0);
	NEED(stat("file", &status) == 0);
	say("  now is now: %d", labs(status.st_mtim.tv_sec - time(NULL)) < 60);
	set_times("the link", "link", both, AT_SYMLINK_NOFOLLOW);
	times_of("link");
	set_times("through the link", "link", both, 0);
	times_of("file");
	set_times("bad flag", "file", both, 1);
	set_times("bad times", "file", (const struct timespec *)8, 0);
	set_times("no path", NULL, both, 0);
	set_times("empty path of cwd", "", both, AT_EMPTY_PATH);
	times_of(".");
	step(futimens(fd, one), "by descriptor");
	step(futimens(only, both), "by O_PATH");
	step(syscall(SYS_utimensat, only, "", before, AT_EMPTY_PATH), "by O_PATH and empty path");
	times_of("file");
	step(syscall(SYS_utimensat, fd, NULL, both, AT_SYMLINK_NOFOLLOW), "by descriptor with a flag");
	step(utimensat(AT_FDCWD, "file", NULL, 0), "now");
	set_times("what is root's", "/etc/passwd", none, 0);
}

static void attributes_old_times(void)
{
#ifdef SYS_utime
	struct utimbuf old = {11, 12};
	struct timeval fine[2] = {{13, 14}, {15, 16}}, bad[2] = {{0, 1000000}, {0, 0}};

	make_file("file", 0644, "");
	step(syscall(SYS_utime, "file", &old), "utime");
	times_of("file");
	step(syscall(SYS_utimes, "file", fine), "utimes");
	times_of("file");
	step(syscall(SYS_utimes, "file", bad), "utimes out of range");
	fine[0].tv_sec = 17;
	step(syscall(SYS_futimesat, AT_FDCWD, "file", fine), "futimesat");
	times_of("file");
	step(syscall(SYS_futimesat, open("file", O_RDONLY), NULL, fine), "futimesat without a path");
	step(syscall(SYS_utime, "absent", &old), "utime absent");
	step(syscall(SYS_utime, "file", (void *)8), "utime with bad times");
#else
	skip("this architecture has none of them");
#endif
}

static void attributes_truncate(void)
{
	make_file("file", 0644, "hello");
	make_file("private", 0444, "hello");
	make_file("setuid", 06777, "hello");
	make_folder("folder", 0755);
	NEED(symlink("file", "link") == 0 && mkfifo("pipe", 0600) == 0);
	step(truncate("file", 100000), "longer");
	facts_of("file");
	step(truncate("file", 2), "shorter");
	content_of("file");
	step(truncate("file", -1), "negative");
	step(truncate("file", LONG_MAX), "as long as it gets");
	step(truncate("file", 1L << 50), "longer than a file can be");
	step(truncate("link", 1), "through a link");
	step(truncate("private", 0), "without write permission");
	step(truncate("setuid", 3), "setuid");
	facts_of("setuid");
	step(truncate("folder", 0), "folder");
	step(truncate("pipe", 0), "fifo");
	step(truncate("absent", 0), "absent");
	step(truncate("/dev/null", 0), "device");
	step(truncate("/proc/self/comm", 0), "in proc");
	step(ftruncate(open("file", O_RDONLY), 0), "by a descriptor that only reads");
	step(ftruncate(open("file", O_RDWR), 10), "by a descriptor");
	facts_of("file");
}

static void set_attribute(const char *label, const char *file, const char *attribute, size_t size, int flags)
{
	static char value[70000];

	memset(value, 'v', sizeof(value));
	step(setxattr(file, attribute, value, size, flags), "%s", label);
}

#ifndef SYS_setxattrat
#define SYS_setxattrat 463
#define SYS_removexattrat 466
#endif

static void attributes_extended_at(void)
{
	const struct {
		uint64_t value;
		uint32_t size, flags;
	} value = {(uint64_t)(uintptr_t) "value", 5, 0}, bad = {8, 5, 0}, create = {value.value, 5, XATTR_CREATE};

	make_file("file", 0644, "text");
	NEED(symlink("file", "link") == 0);
	int fd = open("file", O_RDONLY), only = open("file", O_PATH);
	step(syscall(SYS_setxattrat, AT_FDCWD, "file", 0, "user.a", &value, sizeof(value)), "by name");
	step(syscall(SYS_setxattrat, AT_FDCWD, "file", 0, "user.a", &create, sizeof(value)), "create");
	step(syscall(SYS_setxattrat, fd, "", AT_EMPTY_PATH, "user.b", &value, sizeof(value)), "empty path");
	step(syscall(SYS_setxattrat, only, "", AT_EMPTY_PATH, "user.c", &value, sizeof(value)), "empty path, O_PATH");
	step(syscall(SYS_setxattrat, fd, "", 0, "user.d", &value, sizeof(value)), "empty path without the flag");
	step(syscall(SYS_setxattrat, AT_FDCWD, "link", AT_SYMLINK_NOFOLLOW, "user.e", &value, sizeof(value)),
	     "the link");
	step(syscall(SYS_setxattrat, AT_FDCWD, "file", 0x8000, "user.f", &value, sizeof(value)), "bad flag");
	step(syscall(SYS_setxattrat, AT_FDCWD, "file", 0, "user.g", &value, 8), "short");
	step(syscall(SYS_setxattrat, AT_FDCWD, "file", 0, "user.h", &bad, sizeof(bad)), "bad value");
	step(syscall(SYS_removexattrat, AT_FDCWD, "file", 0, "user.a"), "remove");
	step(syscall(SYS_removexattrat, fd, "", AT_EMPTY_PATH, "user.b"), "remove by empty path");
	step(syscall(SYS_removexattrat, -1, "file", 0, "user.c"), "bad descriptor");
}

static void attributes_extended(void)
{
	char key[300] = "user.";

	make_file("file", 0644, "text");
	make_file("read-only", 0444, "text");
	make_folder("folder", 0755);
	make_folder("sticky", 01777);
	NEED(symlink("file", "link") == 0 && mkfifo("pipe", 0600) == 0);
	set_attribute("create", "file", "user.a", 5, XATTR_CREATE);
	set_attribute("create again", "file", "user.a", 5, XATTR_CREATE);
	set_attribute("replace", "file", "user.a", 3, XATTR_REPLACE);
	set_attribute("replace absent", "file", "user.b", 3, XATTR_REPLACE);
	set_attribute("both flags", "file", "user.a", 3, 3);
	set_attribute("bad flag", "file", "user.a", 3, 8);
	set_attribute("empty", "file", "user.empty", 0, 0);
	set_attribute("too big for the block", "file", "user.big", 20000, 0);
	set_attribute("too big", "file", "user.big", 65537, 0);
	set_attribute("folder", "folder", "user.a", 3, 0);
	set_attribute("sticky folder", "sticky", "user.a", 3, 0);
	set_attribute("fifo", "pipe", "user.a", 3, 0);
	set_attribute("read-only", "read-only", "user.a", 3, 0);
	set_attribute("trusted", "file", "trusted.a", 3, 0);
	set_attribute("security", "file", "security.a", 3, 0);
	set_attribute("system", "file", "system.a", 3, 0);
	set_attribute("no such kind", "file", "other.a", 3, 0);
	set_attribute("no name", "file", "user.", 3, 0);
	set_attribute("empty name", "file", "", 3, 0);
	set_attribute("absent", "absent", "user.a", 3, 0);
	memset(key + 5, 'k', 250);
	set_attribute("name of 255", "file", key, 1, 0);
	key[255] = 'k';
	set_attribute("name of 256", "file", key, 1, 0);
	set_attribute("what is root's", "/etc/passwd", "other.a", 3, 0);
	step(lsetxattr("link", "user.a", "x", 1, 0), "the link");
	step(lsetxattr("link", "trusted.a", "x", 1, 0), "the link, trusted");
	step(setxattr("link", "user.link", "x", 1, 0), "through the link");
	step(setxattr("file", NULL, "x", 1, 0), "name NULL");
	step(syscall(SYS_setxattr, "file", "user.x", 8, 1, 0), "value nowhere");
	step(removexattr("file", "user.a"), "remove");
	step(removexattr("file", "user.a"), "remove again");
	step(lremovexattr("link", "user.a"), "remove of the link");
	int fd = open("file", O_RDONLY), only = open("file", O_PATH);
	step(fsetxattr(fd, "user.fd", "x", 1, 0), "by a descriptor that only reads");
	step(fsetxattr(only, "user.fd", "x", 1, 0), "by O_PATH");
	step(fremovexattr(fd, "user.fd"), "remove by descriptor");
}

/* Everything by one descriptor that an open for writing gave. */
static void attributes_by_descriptor(void)
{
	static const struct timespec times[2] = {{100, 1}, {200, 2}};
	int fd = (int)step(open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0600), "open");

	step(write(fd, "hello", 5), "write");
	step(ftruncate(fd, 3), "ftruncate");
	step(fchmod(fd, 0640), "fchmod");
	step(fchown(fd, getuid(), getgid()), "fchown");
	step(fsetxattr(fd, "user.a", "value", 5, 0), "fsetxattr");
	step(futimens(fd, times), "futimens");
	times_of("file");
	step(fsync(fd), "fsync");
	step(pwrite(fd, "tail", 4, 10), "pwrite");
	step(fallocate(fd, 0, 0, 100), "fallocate");
	step(dup(fd), "dup");
	facts(fd);
	facts(fd + 1);
	content_of("file");
}

/* What a process put where it may not read it any more: whoever makes the call for it may. */
static void attributes_unreadable(void)
{
	long page = sysconf(_SC_PAGESIZE);
	char *kept = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	NEED(kept != MAP_FAILED);
	make_file("file", 0644, "text");
	memcpy(kept, "file", 5);
	NEED(mprotect(kept, (size_t)page, PROT_NONE) == 0);
	step(setxattr("file", "user.name", kept, 4, 0), "a value that cannot be read");
	step(setxattr("file", kept, "text", 4, 0), "a name that cannot be read");
	step(truncate(kept, 0), "a path that cannot be read");
	step(syscall(SYS_utimensat, AT_FDCWD, "file", kept, 0), "times that cannot be read");
	char *arguments[] = {kept, NULL};
	step(execve(kept, (char *[]){(char *)(uintptr_t) "missing", NULL}, environ),
	     "a program's name that cannot be read");
	step(execve("absent", arguments, environ), "an argument that cannot be read");
	facts_of("file");
}

static const struct equal_case cases[] = {
    {"attributes_unreadable", false, attributes_unreadable},
    {"attributes_chmod", false, attributes_chmod},
    {"attributes_chmod_flags", false, attributes_chmod_flags},
    {"attributes_chown", false, attributes_chown},
    {"attributes_times", false, attributes_times},
    {"attributes_old_times", false, attributes_old_times},
    {"attributes_truncate", false, attributes_truncate},
    {"attributes_extended_at", false, attributes_extended_at},
    {"attributes_extended", false, attributes_extended},
    {"attributes_by_descriptor", false, attributes_by_descriptor},
    {NULL},
};

int main(int argc, char **argv)
{
	return equal_main(cases, argc, argv);
}
