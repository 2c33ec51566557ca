/*
 * Calls that change extended attributes and inode flags.
 */
#include <linux/fs.h>
#include <sys/xattr.h>

#include "row_file.h"

#ifndef SYS_setxattrat
#define SYS_setxattrat 463
#endif
#ifndef SYS_removexattrat
#define SYS_removexattrat 466
#endif
#ifndef SYS_file_setattr
#define SYS_file_setattr 469
#endif

/* struct xattr_args and struct file_attr of the kernel, which headers of older ones lack. */
struct attribute_value {
	uint64_t value;
	uint32_t size, flags;
};

struct inode_attributes {
	uint64_t xflags;
	uint32_t extent_size, extents, project, cow_extent_size;
};

#define ATTRIBUTE "user.assure.row"
#define OTHER_ATTRIBUTE "user.assure.absent"

static void attribute(const char *name, const char *flags)
{
	row_text("args.name", name);
	if (flags)
		row_json("flags", flags);
	row_done();
}

/* setxattr and lsetxattr; they differ at links only. */
static void set_by_name(const char *row, long number)
{
	row_touch("named");
	long result = syscall(number, "named", ATTRIBUTE, "value", 5, 0);
	bool lacking = result == -1 && errno == EOPNOTSUPP;
	row_named(row, "file.xattr", result, "named");
	row_inode_of("", "named");
	row_number("args.size", 5);
	attribute(ATTRIBUTE, "[]");
	if (lacking)
		row_skip(row, "the file system has no extended attributes for users");

	result = syscall(number, "named", ATTRIBUTE, "other", 5, XATTR_CREATE);
	row_named(row, "file.xattr", result, "named");
	attribute(ATTRIBUTE, "[\"XATTR_CREATE\"]");
	result = syscall(number, "named", OTHER_ATTRIBUTE, "v", 1, XATTR_REPLACE);
	row_named(row, "file.xattr", result, "named");
	row_number("args.size", 1);
	attribute(OTHER_ATTRIBUTE, "[\"XATTR_REPLACE\"]");
	result = ROW_AS_NOBODY(syscall(number, ROW_FOREIGN, ATTRIBUTE, "v", 1, 0));
	row_foreign(row, "file.xattr", result);
	attribute(ATTRIBUTE, "[]");
	unlink("named");
}

static void test_setxattr(void)
{
	set_by_name("setxattr", SYS_setxattr);

	row_touch("named");
	row_link("named", "to-named");
	long result = syscall(SYS_setxattr, "to-named", ATTRIBUTE, "value", 5, 0);
	row_given("setxattr", "file.xattr", result, "to-named", "named");
	row_inode_of("", "named");
	attribute(ATTRIBUTE, "[]");
}

static void test_lsetxattr(void)
{
	set_by_name("lsetxattr", SYS_lsetxattr);

	/* links cannot have attributes of users */
	row_link("named", "to-named");
	long result = syscall(SYS_lsetxattr, "to-named", ATTRIBUTE, "value", 5, 0);
	row_named("lsetxattr", "file.xattr", result, "to-named");
	row_inode_of("", "to-named");
	attribute(ATTRIBUTE, "[]");
}

static void test_fsetxattr(void)
{
	int fd = row_make("described");
	long result = syscall(SYS_fsetxattr, fd, ATTRIBUTE, "value", 5, XATTR_CREATE);
	bool lacking = result == -1 && errno == EOPNOTSUPP;

	row_descriptor("fsetxattr", "file.xattr", result, fd);
	row_number("args.size", 5);
	attribute(ATTRIBUTE, "[\"XATTR_CREATE\"]");
	if (lacking)
		row_skip("fsetxattr", "the file system has no extended attributes for users");
	row_descriptor("fsetxattr", "file.xattr", syscall(SYS_fsetxattr, fd, ATTRIBUTE, "value", 5, XATTR_CREATE), fd);
	attribute(ATTRIBUTE, "[\"XATTR_CREATE\"]");
	close(fd);
	unlink("described");
}

static void test_setxattrat(void)
{
	struct attribute_value value = {.value = (uintptr_t) "value", .size = 5, .flags = XATTR_CREATE};

	row_folder("folder");
	row_touch("folder/named");
	int folder = open("folder", O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (int round = 0; round < 2; round++) {
		long result = syscall(SYS_setxattrat, folder, "named", 0, ATTRIBUTE, &value, sizeof(value));
		bool lacking = result == -1 && (errno == ENOSYS || errno == EOPNOTSUPP);
		row_given("setxattrat", "file.xattr", result, "named", "folder/named");
		row_inode_of("", "folder/named");
		row_number("args.size", sizeof(value));
		attribute(ATTRIBUTE, "[]");
		if (lacking)
			row_skip("setxattrat", "needs Linux 6.13 and extended attributes for users");
	}
	row_link("named", "folder/to-named");
	long result =
	    syscall(SYS_setxattrat, folder, "to-named", AT_SYMLINK_NOFOLLOW, ATTRIBUTE, &value, sizeof(value));
	row_given("setxattrat", "file.xattr", result, "to-named", "folder/to-named");
	row_inode_of("", "folder/to-named");
	attribute(ATTRIBUTE, "[\"AT_SYMLINK_NOFOLLOW\"]");
	close(folder);
	unlink("folder/named");
}

/* Removed once, and then no longer there. */
static void remove_by_name(const char *row, long number)
{
	row_touch("named");
	bool lacking = setxattr("named", ATTRIBUTE, "v", 1, 0) != 0;

	for (int round = 0; round < 2; round++) {
		row_named(row, "file.xattr", syscall(number, "named", ATTRIBUTE), "named");
		row_inode_of("", "named");
		attribute(ATTRIBUTE, NULL);
	}
	if (lacking)
		row_skip(row, "the file system has no extended attributes for users");
	long result = ROW_AS_NOBODY(syscall(number, ROW_FOREIGN, ATTRIBUTE));
	row_foreign(row, "file.xattr", result);
	attribute(ATTRIBUTE, NULL);
}

static void test_removexattr(void)
{
	remove_by_name("removexattr", SYS_removexattr);
	row_link("named", "to-named");
	long result = syscall(SYS_removexattr, "to-named", ATTRIBUTE);
	row_given("removexattr", "file.xattr", result, "to-named", "named");
	row_inode_of("", "named");
	attribute(ATTRIBUTE, NULL);
}

static void test_lremovexattr(void)
{
	remove_by_name("lremovexattr", SYS_lremovexattr);
	row_link("named", "to-named");
	long result = syscall(SYS_lremovexattr, "to-named", ATTRIBUTE);
	row_named("lremovexattr", "file.xattr", result, "to-named");
	row_inode_of("", "to-named");
	attribute(ATTRIBUTE, NULL);
}

static void test_fremovexattr(void)
{
	int fd = row_make("described");
	bool lacking = fsetxattr(fd, ATTRIBUTE, "v", 1, 0) != 0;

	for (int round = 0; round < 2; round++) {
		row_descriptor("fremovexattr", "file.xattr", syscall(SYS_fremovexattr, fd, ATTRIBUTE), fd);
		attribute(ATTRIBUTE, NULL);
	}
	if (lacking)
		row_skip("fremovexattr", "the file system has no extended attributes for users");
	close(fd);
}

static void test_removexattrat(void)
{
	row_folder("folder");
	row_touch("folder/named");
	bool lacking = setxattr("folder/named", ATTRIBUTE, "v", 1, 0) != 0;
	int folder = open("folder", O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (int round = 0; round < 2; round++) {
		long result = syscall(SYS_removexattrat, folder, "named", AT_SYMLINK_NOFOLLOW, ATTRIBUTE);
		lacking = lacking || (result == -1 && errno == ENOSYS);
		row_given("removexattrat", "file.xattr", result, "named", "folder/named");
		row_inode_of("", "folder/named");
		attribute(ATTRIBUTE, "[\"AT_SYMLINK_NOFOLLOW\"]");
	}
	if (lacking)
		row_skip("removexattrat", "needs Linux 6.13 and extended attributes for users");
	close(folder);
}

static void test_file_setattr(void)
{
	struct inode_attributes attributes = {.xflags = FS_XFLAG_NODUMP};

	row_touch("flagged");
	long result = syscall(SYS_file_setattr, AT_FDCWD, "flagged", &attributes, sizeof(attributes), 0);
	bool lacking = result == -1 && (errno == ENOSYS || errno == EOPNOTSUPP || errno == ENOTTY);
	row_named("file_setattr", "file.mode", result, "flagged");
	row_inode_of("", "flagged");
	row_number("args.size", sizeof(attributes));
	row_json("flags", "[]");
	row_done();
	if (lacking)
		row_skip("file_setattr", "needs Linux 6.17 and a file system with inode flags");

	result = ROW_AS_NOBODY(syscall(SYS_file_setattr, AT_FDCWD, ROW_FOREIGN, &attributes, sizeof(attributes), 0));
	row_foreign("file_setattr", "file.mode", result);
	row_done();

	result = syscall(SYS_file_setattr, AT_FDCWD, "absent", &attributes, sizeof(attributes), AT_SYMLINK_NOFOLLOW);
	row_named("file_setattr", "file.mode", result, "absent");
	row_json("flags", "[\"AT_SYMLINK_NOFOLLOW\"]");
	row_done();
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {
	    {"setxattr", test_setxattr},         {"lsetxattr", test_lsetxattr},
	    {"fsetxattr", test_fsetxattr},       {"setxattrat", test_setxattrat},
	    {"removexattr", test_removexattr},   {"lremovexattr", test_lremovexattr},
	    {"fremovexattr", test_fremovexattr}, {"removexattrat", test_removexattrat},
	    {"file_setattr", test_file_setattr}, {NULL, NULL},
	};

	umask(022);
	return row_main(cases, argc, argv);
}
