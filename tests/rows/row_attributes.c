/*
 * Calls that change a file's length, permissions, owner and times.
 */
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <utime.h>

#include "row_file.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

static void test_truncate(void)
{
	row_touch("long");
	long result = syscall(SYS_truncate, "long", 4096);
	row_named("truncate", "file.truncate", result, "long");
	row_inode_of("", "long");
	row_number("args.length", 4096);
	row_done();

	result = syscall(SYS_truncate, "long", -1L);
	row_named("truncate", "file.truncate", result, "long");
	row_inode_of("", "long");
	row_number("args.length", -1);
	row_done();

	row_folder("folder");
	result = syscall(SYS_truncate, "folder", 0);
	row_named("truncate", "file.truncate", result, "folder");
	row_inode_of("", "folder");
	row_number("args.length", 0);
	row_done();

	result = ROW_AS_NOBODY(syscall(SYS_truncate, ROW_FOREIGN, 0));
	row_foreign("truncate", "file.truncate", result);
	row_done();
}

static void test_ftruncate(void)
{
	int fd = row_make("long");

	row_descriptor("ftruncate", "file.truncate", syscall(SYS_ftruncate, fd, 100), fd);
	row_number("args.length", 100);
	row_done();
	close(fd);

	fd = open("long", O_RDONLY | O_CLOEXEC);
	row_descriptor("ftruncate", "file.truncate", syscall(SYS_ftruncate, fd, 0), fd);
	row_number("args.length", 0);
	row_done();
	close(fd);

	fd = memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) != 0)
		abort();
	row_descriptor("ftruncate", "file.truncate", syscall(SYS_ftruncate, fd, 8192), fd);
	row_done();
	close(fd);
}

static void allocated(int fd, int mode, long offset, long length, const char *flags)
{
	row_descriptor("fallocate", "file.truncate", syscall(SYS_fallocate, fd, mode, offset, length), fd);
	row_json("flags", flags);
	row_number("args.offset", offset);
	/* beyond what every reader of JSON can hold, numbers are text */
	if (length > 1L << 53)
		row_text("args.len", "9223372036854775807");
	else
		row_number("args.len", length);
	row_done();
}

static void test_fallocate(void)
{
	int fd = row_make("long");

	allocated(fd, 0, 0, 8192, "[]");
	allocated(fd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, 0, 4096,
		  "[\"FALLOC_FL_KEEP_SIZE\",\"FALLOC_FL_PUNCH_HOLE\"]");
	allocated(fd, 0, 0, 0, "[]");
	allocated(fd, 0, 1, LONG_MAX, "[]");
	/* a hole that would make the file longer is none */
	allocated(fd, FALLOC_FL_PUNCH_HOLE, 0, 4096, "[\"FALLOC_FL_PUNCH_HOLE\"]");
	close(fd);
}

static void moded(const char *row, long result, const char *name, unsigned mode)
{
	struct stat status;

	row_named(row, "file.mode", result, name);
	if (lstat(name, &status) == 0)
		row_inode("", &status);
	row_mode(mode);
	row_done();
}

static void test_chmod(void)
{
	row_touch("moded");
	row_link("moded", "to-moded");
	moded("chmod", syscall(SYS_chmod, "moded", 0604), "moded", 0604);
	moded("chmod", syscall(SYS_chmod, "moded", 06711), "moded", 06711);
	moded("chmod", syscall(SYS_chmod, "absent", 0644), "absent", 0644);

	long result = syscall(SYS_chmod, "to-moded", 0640);
	row_given("chmod", "file.mode", result, "to-moded", "moded");
	row_inode_of("", "moded");
	row_done();

	/* two links that name each other lead nowhere */
	row_link("loop-b", "loop-a");
	row_link("loop-a", "loop-b");
	result = syscall(SYS_chmod, "loop-a", 0644);
	row_expect("chmod", "file.mode", result);
	row_text("as_given", "loop-a");
	row_done();

	result = ROW_AS_NOBODY(syscall(SYS_chmod, ROW_FOREIGN, 0644));
	row_foreign("chmod", "file.mode", result);
	row_mode(0644);
	row_done();
}

static void test_fchmod(void)
{
	int fd = row_make("moded");

	row_descriptor("fchmod", "file.mode", syscall(SYS_fchmod, fd, 0631), fd);
	row_mode(0631);
	row_done();
	close(fd);

	fd = open(ROW_FOREIGN, O_RDONLY | O_CLOEXEC);
	row_descriptor("fchmod", "file.mode", ROW_AS_NOBODY(syscall(SYS_fchmod, fd, 0644)), fd);
	row_mode(0644);
	row_done();
	close(fd);
}

static void test_fchmodat(void)
{
	row_folder("folder");
	row_touch("folder/moded");
	int folder = open("folder", O_PATH | O_DIRECTORY | O_CLOEXEC);
	long result = syscall(SYS_fchmodat, folder, "moded", 0622);
	row_given("fchmodat", "file.mode", result, "moded", "folder/moded");
	row_inode_of("", "folder/moded");
	row_mode(0622);
	row_done();

	result = syscall(SYS_fchmodat, folder, "absent", 0622);
	row_given("fchmodat", "file.mode", result, "absent", "folder/absent");
	row_done();
	close(folder);

	result = ROW_AS_NOBODY(syscall(SYS_fchmodat, AT_FDCWD, ROW_FOREIGN, 0644));
	row_foreign("fchmodat", "file.mode", result);
	row_done();
}

static void test_fchmodat2(void)
{
	row_touch("moded");
	row_link("moded", "to-moded");
	long result = syscall(SYS_fchmodat2, AT_FDCWD, "moded", 0602, AT_SYMLINK_NOFOLLOW);
	if (result == -1 && errno == ENOSYS) {
		row_skip("fchmodat2", "needs Linux 6.6");
		return;
	}
	row_named("fchmodat2", "file.mode", result, "moded");
	row_inode_of("", "moded");
	row_mode(0602);
	row_json("flags", "[\"AT_SYMLINK_NOFOLLOW\"]");
	row_done();

	/* links have no permissions */
	result = syscall(SYS_fchmodat2, AT_FDCWD, "to-moded", 0600, AT_SYMLINK_NOFOLLOW);
	row_named("fchmodat2", "file.mode", result, "to-moded");
	row_inode_of("", "to-moded");
	row_json("flags", "[\"AT_SYMLINK_NOFOLLOW\"]");
	row_done();

	int fd = open("moded", O_PATH | O_CLOEXEC);
	result = syscall(SYS_fchmodat2, fd, "", 0614, AT_EMPTY_PATH);
	row_expect("fchmodat2", "file.mode", result);
	row_text("path", row_path("moded"));
	row_inode_of("", "moded");
	row_json("flags", "[\"AT_EMPTY_PATH\"]");
	row_done();
	close(fd);
}

/* To ourselves, which is always allowed, and then to root, which is allowed to nobody else. */
static void owned(long result, const char *row, const char *given, const char *name)
{
	row_given(row, "file.owner", result, given, name);
	row_inode_of("", name);
	row_number("args.owner", (long)geteuid());
	row_number("args.group", (long)getegid());
	row_done();
}

static void test_chown(void)
{
	row_touch("owned");
	row_link("owned", "to-owned");
	owned(syscall(SYS_chown, "owned", geteuid(), getegid()), "chown", "owned", "owned");
	owned(syscall(SYS_chown, "to-owned", geteuid(), getegid()), "chown", "to-owned", "owned");
	long result = syscall(SYS_chown, "owned/below", 1, -1);
	row_named("chown", "file.owner", result, "owned/below");
	row_number("args.owner", 1);
	row_done();

	result = ROW_AS_NOBODY(syscall(SYS_chown, ROW_FOREIGN, 0, 0));
	row_foreign("chown", "file.owner", result);
	row_number("args.owner", 0);
	row_number("args.group", 0);
	row_done();
}

static void test_lchown(void)
{
	row_touch("owned");
	row_link("owned", "to-owned");
	owned(syscall(SYS_lchown, "to-owned", geteuid(), getegid()), "lchown", "to-owned", "to-owned");
	long result = syscall(SYS_lchown, "absent", 1, 2);
	row_named("lchown", "file.owner", result, "absent");
	row_number("args.owner", 1);
	row_number("args.group", 2);
	row_done();

	result = ROW_AS_NOBODY(syscall(SYS_lchown, "to-owned", 0, 0));
	row_named("lchown", "file.owner", result, "to-owned");
	row_inode_of("", "to-owned");
	row_number("args.owner", 0);
	row_done();
}

static void test_fchown(void)
{
	int fd = row_make("owned");

	row_descriptor("fchown", "file.owner", syscall(SYS_fchown, fd, -1, getegid()), fd);
	row_number("args.group", (long)getegid());
	row_done();
	row_descriptor("fchown", "file.owner", ROW_AS_NOBODY(syscall(SYS_fchown, fd, 0, -1)), fd);
	row_number("args.owner", 0);
	row_done();
	close(fd);
}

static void test_fchownat(void)
{
	row_folder("folder");
	row_touch("folder/owned");
	row_link("owned", "folder/to-owned");
	int folder = open("folder", O_PATH | O_DIRECTORY | O_CLOEXEC);
	long result = syscall(SYS_fchownat, folder, "to-owned", geteuid(), -1, 0);
	row_given("fchownat", "file.owner", result, "to-owned", "folder/owned");
	row_inode_of("", "folder/owned");
	row_number("args.owner", (long)geteuid());
	row_done();

	result = ROW_AS_NOBODY(syscall(SYS_fchownat, folder, "to-owned", 0, 0, AT_SYMLINK_NOFOLLOW));
	row_given("fchownat", "file.owner", result, "to-owned", "folder/to-owned");
	row_inode_of("", "folder/to-owned");
	row_json("flags", "[\"AT_SYMLINK_NOFOLLOW\"]");
	row_done();
	close(folder);
}

/* The moments of all of these; in whole seconds what utime(2) can say. */
enum { ACCESSED = 1000000000, CHANGED = 1234567890 };

static void timed(const char *access, const char *change)
{
	row_text("args.atime", access);
	row_text("args.mtime", change);
	row_done();
}

#define ACCESSED_TEXT "2001-09-09T01:46:40.000000000Z"
#define CHANGED_TEXT "2009-02-13T23:31:30.000000000Z"

static void test_utime(void)
{
	struct utimbuf times = {ACCESSED, CHANGED};

	row_touch("timed");
	long result = syscall(SYS_utime, "timed", &times);
	row_named("utime", "file.times", result, "timed");
	row_inode_of("", "timed");
	timed(ACCESSED_TEXT, CHANGED_TEXT);
	result = syscall(SYS_utime, "timed", NULL);
	row_named("utime", "file.times", result, "timed");
	timed("UTIME_NOW", "UTIME_NOW");
	result = syscall(SYS_utime, "absent", &times);
	row_named("utime", "file.times", result, "absent");
	timed(ACCESSED_TEXT, CHANGED_TEXT);
	result = ROW_AS_NOBODY(syscall(SYS_utime, ROW_FOREIGN, &times));
	row_foreign("utime", "file.times", result);
	timed(ACCESSED_TEXT, CHANGED_TEXT);
	result = ROW_AS_NOBODY(syscall(SYS_utime, ROW_FOREIGN, NULL));
	row_foreign("utime", "file.times", result);
	timed("UTIME_NOW", "UTIME_NOW");
}

static void test_utimes(void)
{
	struct timeval times[2] = {{ACCESSED, 250000}, {CHANGED, 0}};
	struct timeval wrong[2] = {{ACCESSED, 0}, {CHANGED, 1000000}};

	row_touch("timed");
	row_link("timed", "to-timed");
	long result = syscall(SYS_utimes, "to-timed", times);
	row_given("utimes", "file.times", result, "to-timed", "timed");
	row_inode_of("", "timed");
	timed("2001-09-09T01:46:40.250000000Z", CHANGED_TEXT);
	result = syscall(SYS_utimes, "timed", wrong);
	row_named("utimes", "file.times", result, "timed");
	row_done();
	result = ROW_AS_NOBODY(syscall(SYS_utimes, ROW_FOREIGN, times));
	row_foreign("utimes", "file.times", result);
	row_done();
}

static void test_futimesat(void)
{
	struct timeval times[2] = {{ACCESSED, 0}, {CHANGED, 500000}};

	row_folder("folder");
	row_touch("folder/timed");
	int folder = open("folder", O_PATH | O_DIRECTORY | O_CLOEXEC);
	long result = syscall(SYS_futimesat, folder, "timed", times);
	row_given("futimesat", "file.times", result, "timed", "folder/timed");
	row_inode_of("", "folder/timed");
	timed(ACCESSED_TEXT, "2009-02-13T23:31:30.500000000Z");
	result = syscall(SYS_futimesat, folder, "absent", NULL);
	row_given("futimesat", "file.times", result, "absent", "folder/absent");
	timed("UTIME_NOW", "UTIME_NOW");
	close(folder);
}

static void test_utimensat(void)
{
	struct timespec times[2] = {{ACCESSED, 1}, {0, UTIME_OMIT}};

	row_touch("timed");
	row_link("timed", "to-timed");
	long result = syscall(SYS_utimensat, AT_FDCWD, "to-timed", times, AT_SYMLINK_NOFOLLOW);
	row_named("utimensat", "file.times", result, "to-timed");
	row_inode_of("", "to-timed");
	row_json("flags", "[\"AT_SYMLINK_NOFOLLOW\"]");
	timed("2001-09-09T01:46:40.000000001Z", "UTIME_OMIT");

	result = syscall(SYS_utimensat, AT_FDCWD, "absent", times, 0);
	row_named("utimensat", "file.times", result, "absent");
	row_json("flags", "[]");
	timed("2001-09-09T01:46:40.000000001Z", "UTIME_OMIT");

	times[0].tv_nsec = UTIME_NOW;
	times[1] = (struct timespec){CHANGED, 0};
	result = ROW_AS_NOBODY(syscall(SYS_utimensat, AT_FDCWD, ROW_FOREIGN, times, 0));
	row_foreign("utimensat", "file.times", result);
	timed("UTIME_NOW", CHANGED_TEXT);

	/* without a name it is the descriptor's file */
	int fd = row_make("timed");
	result = syscall(SYS_utimensat, fd, "", times, AT_EMPTY_PATH);
	row_expect("utimensat", "file.times", result);
	row_text("path", row_path("timed"));
	row_inode_of("", "timed");
	timed("UTIME_NOW", CHANGED_TEXT);
	close(fd);
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {
	    {"truncate", test_truncate},
	    {"ftruncate", test_ftruncate},
	    {"fallocate", test_fallocate},
	    {"chmod", ROW_OLD_CALL(test_chmod)},
	    {"fchmod", test_fchmod},
	    {"fchmodat", test_fchmodat},
	    {"fchmodat2", test_fchmodat2},
	    {"chown", ROW_OLD_CALL(test_chown)},
	    {"lchown", ROW_OLD_CALL(test_lchown)},
	    {"fchown", test_fchown},
	    {"fchownat", test_fchownat},
	    {"utime", ROW_OLD_CALL(test_utime)},
	    {"utimes", ROW_OLD_CALL(test_utimes)},
	    {"futimesat", ROW_OLD_CALL(test_futimesat)},
	    {"utimensat", test_utimensat},
	    {NULL, NULL},
	};

	umask(022);
	return row_main(cases, argc, argv);
}
