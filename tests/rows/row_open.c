/*
 * Calls that open files: by name, by handle, and without any name.
 */
#include <linux/openat2.h>
#include <sys/mman.h>

#include "row_file.h"

/* One of the calls that open by name, all made to look alike. `folder` is where the name starts, or AT_FDCWD. */
typedef long (*opener)(int folder, const char *name, int flags, mode_t mode);

static long call_open(int folder, const char *name, int flags, mode_t mode)
{
	(void)folder;
	return syscall(SYS_open, name, flags, mode);
}

static long call_openat(int folder, const char *name, int flags, mode_t mode)
{
	return syscall(SYS_openat, folder, name, flags, mode);
}

static long call_openat2(int folder, const char *name, int flags, mode_t mode)
{
	struct open_how how = {.flags = (unsigned)flags, .mode = mode};

	return syscall(SYS_openat2, folder, name, &how, sizeof(how));
}

/* End an expectation about an open: who succeeds knows the file by its descriptor. */
static void opened(long fd, const char *flags)
{
	struct stat status;

	row_json("flags", flags);
	if (fd >= 0) {
		row_number("result.value", fd);
		if (fstat((int)fd, &status) != 0)
			abort();
		row_inode("", &status);
		close((int)fd);
	}
	row_done();
}

static void creating(const char *row, opener call)
{
	long fd = call(AT_FDCWD, "made", O_WRONLY | O_CREAT | O_CLOEXEC, 0640);
	row_named(row, "file.create", fd, "made");
	row_mode(0640);
	row_text("args.looked_up", "absent");
	opened(fd, "[\"O_WRONLY\",\"O_CREAT\",\"O_CLOEXEC\"]");

	/* nothing can be written through this one, and still a file comes into being */
	fd = call(AT_FDCWD, "./made-to-read", O_RDONLY | O_CREAT, 0600);
	row_given(row, "file.create", fd, "./made-to-read", "made-to-read");
	row_mode(0600);
	opened(fd, "[\"O_RDONLY\",\"O_CREAT\"]");

	fd = call(AT_FDCWD, "made", O_WRONLY | O_CREAT | O_EXCL, 0640);
	row_named(row, "file.create", fd, "made");
	row_inode_of("", "made");
	row_text("args.looked_up", "present");
	opened(fd, "[\"O_WRONLY\",\"O_CREAT\",\"O_EXCL\"]");

	fd = call(AT_FDCWD, "no-folder/made", O_WRONLY | O_CREAT, 0640);
	row_named(row, "file.create", fd, "no-folder/made");
	opened(fd, "[\"O_WRONLY\",\"O_CREAT\"]");
	unlink("made");
	unlink("made-to-read");
}

/* The name of such a file is the kernel's own; what is known is the descriptor. */
static void nameless(const char *row, opener call)
{
	long fd = call(AT_FDCWD, ".", O_RDWR | O_TMPFILE, 0600);

	if (fd < 0 && errno == EOPNOTSUPP) {
		row_skip(row, "the file system has no O_TMPFILE");
		return;
	}
	row_expect(row, "file.create", fd);
	row_text("as_given", ".");
	row_mode(0600);
	opened(fd, "[\"O_RDWR\",\"O_TMPFILE\"]");
}

static void writing(const char *row, opener call)
{
	row_touch("there");
	long fd = call(AT_FDCWD, "there", O_WRONLY, 0);
	row_named(row, "file.write", fd, "there");
	opened(fd, "[\"O_WRONLY\"]");

	fd = call(AT_FDCWD, "there", O_RDONLY | O_TRUNC, 0);
	row_named(row, "file.write", fd, "there");
	opened(fd, "[\"O_RDONLY\",\"O_TRUNC\"]");

	fd = call(AT_FDCWD, "there", O_RDWR | O_CREAT | O_APPEND, 0600);
	row_named(row, "file.write", fd, "there");
	row_text("args.looked_up", "present");
	opened(fd, "[\"O_RDWR\",\"O_CREAT\",\"O_APPEND\"]");

	row_folder("folder");
	fd = call(AT_FDCWD, "folder", O_RDWR, 0);
	row_named(row, "file.write", fd, "folder");
	row_inode_of("", "folder");
	opened(fd, "[\"O_RDWR\"]");

	fd = ROW_AS_NOBODY(call(AT_FDCWD, ROW_FOREIGN, O_RDWR, 0));
	row_foreign(row, "file.write", fd);
	opened(fd, "[\"O_RDWR\"]");
}

static void through_links(const char *row, opener call)
{
	row_touch("there");
	row_link("there", "to-there");
	row_link("nowhere", "dangling");
	long fd = call(AT_FDCWD, "to-there", O_WRONLY, 0);
	row_given(row, "file.write", fd, "to-there", "there");
	opened(fd, "[\"O_WRONLY\"]");

	/* these two fail at the link, and that is what they are about */
	fd = call(AT_FDCWD, "to-there", O_WRONLY | O_NOFOLLOW, 0);
	row_named(row, "file.write", fd, "to-there");
	row_inode_of("", "to-there");
	opened(fd, "[\"O_WRONLY\",\"O_NOFOLLOW\"]");

	fd = call(AT_FDCWD, "dangling", O_WRONLY | O_CREAT | O_EXCL, 0600);
	row_named(row, "file.create", fd, "dangling");
	row_inode_of("", "dangling");
	opened(fd, "[\"O_WRONLY\",\"O_CREAT\",\"O_EXCL\"]");

	fd = call(AT_FDCWD, "dangling", O_WRONLY | O_CREAT, 0600);
	row_given(row, "file.create", fd, "dangling", "nowhere");
	opened(fd, "[\"O_WRONLY\",\"O_CREAT\"]");
	unlink("nowhere");
}

/* With the lens that these programs run under, reading is an effect too. */
static void reading(const char *row, opener call)
{
	row_touch("there");
	long fd = call(AT_FDCWD, "there", O_RDONLY, 0);
	row_named(row, "file.read", fd, "there");
	row_inode_of("", "there");
	row_json("flags", "[\"O_RDONLY\"]");
	row_done();
	close((int)fd);

	fd = call(AT_FDCWD, "absent", O_RDONLY, 0);
	row_named(row, "file.read", fd, "absent");
	row_json("flags", "[\"O_RDONLY\"]");
	row_done();
}

/* Neither waits here, but the kernel alone can say so. */
static void waiting(const char *row, opener call)
{
	if (mkfifo("pipe", 0600) != 0 && errno != EEXIST)
		abort();
	long fd = call(AT_FDCWD, "pipe", O_RDWR | O_NONBLOCK, 0);
	row_named(row, "file.write", fd, "pipe");
	row_inode_of("", "pipe");
	row_json("flags", "[\"O_RDWR\",\"O_NONBLOCK\"]");
	row_done_waiting();
	close((int)fd);

	fd = call(AT_FDCWD, "/dev/null", O_WRONLY, 0);
	row_expect(row, "file.write", fd);
	row_text("path", "/dev/null");
	row_inode_of("", "/dev/null");
	row_done_waiting();
	close((int)fd);
}

static void by_name(const char *row, opener call)
{
	creating(row, call);
	nameless(row, call);
	writing(row, call);
	through_links(row, call);
	reading(row, call);
	waiting(row, call);
}

/* From a directory that is not the working one, and from a descriptor that is none. */
static void from_folder(const char *row, opener call)
{
	row_folder("folder");
	row_touch("there");
	int folder = open("folder", O_PATH | O_DIRECTORY | O_CLOEXEC);
	long fd = call(folder, "inside", O_WRONLY | O_CREAT, 0600);
	row_given(row, "file.create", fd, "inside", "folder/inside");
	opened(fd, "[\"O_WRONLY\",\"O_CREAT\"]");

	fd = call(folder, "../there", O_WRONLY, 0);
	row_given(row, "file.write", fd, "../there", "there");
	opened(fd, "[\"O_WRONLY\"]");

	/* not a directory: names cannot start here */
	int file = open("there", O_RDONLY | O_CLOEXEC);
	fd = call(file, "below", O_WRONLY, 0);
	row_expect(row, "file.write", fd);
	row_text("as_given", "below");
	opened(fd, "[\"O_WRONLY\"]");
	close(file);
	close(folder);
	unlink("folder/inside");
}

static void test_open(void)
{
	by_name("open", call_open);
}

static void test_openat(void)
{
	by_name("openat", call_openat);
	from_folder("openat", call_openat);
}

static void test_openat2(void)
{
	by_name("openat2", call_openat2);
	from_folder("openat2", call_openat2);

	struct open_how how = {.flags = O_WRONLY, .resolve = RESOLVE_NO_SYMLINKS};
	row_touch("there");
	row_link("there", "to-there");
	long fd = syscall(SYS_openat2, AT_FDCWD, "there", &how, sizeof(how));
	row_named("openat2", "file.write", fd, "there");
	row_hex("args.resolve", how.resolve);
	row_number("args.size", sizeof(how));
	opened(fd, "[\"O_WRONLY\"]");

	fd = syscall(SYS_openat2, AT_FDCWD, "to-there", &how, sizeof(how));
	row_expect("openat2", "file.write", fd);
	row_text("as_given", "to-there");
	row_hex("args.resolve", how.resolve);
	opened(fd, "[\"O_WRONLY\"]");
}

static void test_creat(void)
{
	long fd = syscall(SYS_creat, "by-creat", 0620);
	row_named("creat", "file.create", fd, "by-creat");
	row_mode(0620);
	row_number("result.value", fd);
	row_inode_of("", "by-creat");
	row_done();
	close((int)fd);

	fd = syscall(SYS_creat, "by-creat", 0644);
	row_named("creat", "file.write", fd, "by-creat");
	row_mode(0644);
	row_number("result.value", fd);
	row_inode_of("", "by-creat");
	row_done();
	close((int)fd);

	row_folder("folder");
	fd = syscall(SYS_creat, "folder", 0644);
	row_named("creat", "file.write", fd, "folder");
	row_inode_of("", "folder");
	row_done();

	fd = syscall(SYS_creat, "no-folder/made", 0644);
	row_named("creat", "file.create", fd, "no-folder/made");
	row_mode(0644);
	row_done();
}

union handle {
	struct file_handle head;
	char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
};

static void about_handle(const union handle *handle)
{
	row_number("args.handle_bytes", handle->head.handle_bytes);
	row_number("args.handle_type", handle->head.handle_type);
}

static void test_open_by_handle_at(void)
{
	union handle handle = {.head.handle_bytes = MAX_HANDLE_SZ};
	int mount_id;

	row_touch("by-handle");
	int mount = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (name_to_handle_at(AT_FDCWD, "by-handle", &handle.head, &mount_id, 0) != 0) {
		row_skip("open_by_handle_at", "the file system has no handles");
		close(mount);
		return;
	}
	long fd = syscall(SYS_open_by_handle_at, mount, &handle.head, O_WRONLY);
	row_expect("open_by_handle_at", "file.write", fd);
	about_handle(&handle);
	row_number("args.mount_fd", mount);
	if (fd >= 0)
		row_text("path", row_path("by-handle"));
	opened(fd, "[\"O_WRONLY\"]");
	if (fd < 0)
		row_skip("open_by_handle_at", "opening by handle needs root");

	/* a handle of a file that is gone */
	unlink("by-handle");
	fd = syscall(SYS_open_by_handle_at, mount, &handle.head, O_RDWR);
	row_expect("open_by_handle_at", "file.write", fd);
	about_handle(&handle);
	opened(fd, "[\"O_RDWR\"]");
	close(mount);
}

static void test_memfd_create(void)
{
	enum { UNKNOWN_FLAG = 0x4000 };
	long fd = syscall(SYS_memfd_create, "row-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	row_expect("memfd_create", "file.create", fd);
	row_text("args.name", "row-memory");
	row_json("flags", "[\"MFD_CLOEXEC\",\"MFD_ALLOW_SEALING\"]");
	row_number("result.value", fd);
	row_done();
	close((int)fd);

	fd = syscall(SYS_memfd_create, "row-memory", UNKNOWN_FLAG);
	row_expect("memfd_create", "file.create", fd);
	row_text("args.name", "row-memory");
	row_json("flags", "[\"0x4000\"]");
	row_done();

	/* 249 bytes are the limit */
	char name[300];
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	fd = syscall(SYS_memfd_create, name, 0);
	row_expect("memfd_create", "file.create", fd);
	row_text("args.name", name);
	row_done();
}

static void test_memfd_secret(void)
{
	long fd = syscall(SYS_memfd_secret, O_CLOEXEC);
	bool lacking = fd < 0 && errno == ENOSYS;

	row_expect("memfd_secret", "file.create", fd);
	row_hex("args.flags", O_CLOEXEC);
	if (fd >= 0)
		row_number("result.value", fd);
	row_done();
	if (lacking)
		row_skip("memfd_secret", "the kernel has secret memory switched off");
	if (fd >= 0)
		close((int)fd);

	fd = syscall(SYS_memfd_secret, 1);
	row_expect("memfd_secret", "file.create", fd);
	row_hex("args.flags", 1);
	row_done();
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {
	    {"open", ROW_OLD_CALL(test_open)},
	    {"creat", ROW_OLD_CALL(test_creat)},
	    {"openat", test_openat},
	    {"openat2", test_openat2},
	    {"open_by_handle_at", test_open_by_handle_at},
	    {"memfd_create", test_memfd_create},
	    {"memfd_secret", test_memfd_secret},
	    {NULL, NULL},
	};

	umask(022);
	return row_main(cases, argc, argv);
}
