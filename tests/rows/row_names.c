/*
 * Calls that make, move and remove names.
 */
#include <linux/fs.h>

#include "row_file.h"

/* A folder that others may not write to, and root neither once it has dropped its rights. */
static void closed_folder(const char *name)
{
	char inside[64];

	row_folder(name);
	snprintf(inside, sizeof(inside), "%s/kept", name);
	row_touch(inside);
	if (chmod(name, 0555) != 0 || chmod(".", 0755) != 0)
		abort();
}

/* rename, renameat and renameat2 made to look alike. */
typedef long (*renamer)(int from_folder, const char *from, int to_folder, const char *to);

static long call_rename(int from_folder, const char *from, int to_folder, const char *to)
{
	(void)from_folder;
	(void)to_folder;
	return syscall(SYS_rename, from, to);
}

static long call_renameat(int from_folder, const char *from, int to_folder, const char *to)
{
	return syscall(SYS_renameat, from_folder, from, to_folder, to);
}

static long call_renameat2(int from_folder, const char *from, int to_folder, const char *to)
{
	return syscall(SYS_renameat2, from_folder, from, to_folder, to, 0);
}

/* The one object stands under the new name afterwards. */
static void moved(const char *row, long result, const char *from, const char *to)
{
	row_named(row, "file.rename", result, from);
	row_inode_of("", to);
	row_to(to);
	row_done();
}

static void moves(const char *row, renamer call)
{
	row_touch("old");
	moved(row, call(AT_FDCWD, "old", AT_FDCWD, "new"), "old", "new");

	/* over a file that is there */
	row_touch("over");
	moved(row, call(AT_FDCWD, "new", AT_FDCWD, "over"), "new", "over");

	/* a link is moved, not what it names */
	row_link("over", "old-link");
	moved(row, call(AT_FDCWD, "old-link", AT_FDCWD, "new-link"), "old-link", "new-link");

	row_folder("folder");
	moved(row, call(AT_FDCWD, "folder", AT_FDCWD, "moved-folder"), "folder", "moved-folder");
	rmdir("moved-folder");
	unlink("new-link");
}

static void failing_moves(const char *row, renamer call)
{
	long result = call(AT_FDCWD, "absent", AT_FDCWD, "new");
	row_named(row, "file.rename", result, "absent");
	row_to("new");
	row_done();

	row_folder("empty");
	row_folder("full");
	row_touch("full/kept");
	result = call(AT_FDCWD, "empty", AT_FDCWD, "full");
	row_named(row, "file.rename", result, "empty");
	row_inode_of("", "empty");
	row_to("full");
	row_inode_of("to.", "full");
	row_done();

	result = call(AT_FDCWD, "empty", AT_FDCWD, "empty/below");
	row_named(row, "file.rename", result, "empty");
	row_to("empty/below");
	row_done();

	closed_folder("closed");
	result = ROW_AS_NOBODY(call(AT_FDCWD, "closed/kept", AT_FDCWD, "closed/other"));
	row_named(row, "file.rename", result, "closed/kept");
	row_inode_of("", "closed/kept");
	row_to("closed/other");
	row_done();
}

static void moves_between_folders(const char *row, renamer call)
{
	row_folder("here");
	row_folder("there");
	row_touch("here/old");
	int here = open("here", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int there = open("there", O_PATH | O_DIRECTORY | O_CLOEXEC);
	long result = call(here, "old", there, "../there/new");
	row_given(row, "file.rename", result, "old", "here/old");
	row_inode_of("", "there/new");
	row_text("to.path", row_path("there/new"));
	row_text("to.as_given", "../there/new");
	row_done();
	close(here);
	close(there);
	unlink("there/new");
}

static void test_rename(void)
{
	moves("rename", call_rename);
	failing_moves("rename", call_rename);
}

static void test_renameat(void)
{
	moves("renameat", call_renameat);
	failing_moves("renameat", call_renameat);
	moves_between_folders("renameat", call_renameat);
}

static void test_renameat2(void)
{
	struct stat left, right;

	moves("renameat2", call_renameat2);
	failing_moves("renameat2", call_renameat2);
	moves_between_folders("renameat2", call_renameat2);

	row_touch("left");
	row_touch("right");
	if (stat("left", &left) != 0 || stat("right", &right) != 0)
		abort();
	long result = syscall(SYS_renameat2, AT_FDCWD, "left", AT_FDCWD, "right", RENAME_EXCHANGE);
	row_named("renameat2", "file.rename", result, "left");
	row_inode("", &left);
	row_to("right");
	row_inode("to.", &right);
	row_json("flags", "[\"RENAME_EXCHANGE\"]");
	row_done();

	result = syscall(SYS_renameat2, AT_FDCWD, "left", AT_FDCWD, "right", RENAME_NOREPLACE);
	row_named("renameat2", "file.rename", result, "left");
	row_to("right");
	row_json("flags", "[\"RENAME_NOREPLACE\"]");
	row_done();
}

/* An expectation about a name that was `before` until the call. */
static void removed(const char *row, const char *kind, long result, const char *name, const struct stat *before)
{
	row_named(row, kind, result, name);
	row_inode("", before);
	row_done();
}

static void failed(const char *row, const char *kind, long result, const char *name)
{
	row_named(row, kind, result, name);
	if (result != -1)
		row_inode_of("", name);
	row_done();
}

static void test_unlink(void)
{
	struct stat before;

	row_touch("victim");
	lstat("victim", &before);
	removed("unlink", "file.delete", syscall(SYS_unlink, "victim"), "victim", &before);
	failed("unlink", "file.delete", syscall(SYS_unlink, "victim"), "victim");

	/* the link goes, what it names stays */
	row_touch("kept");
	row_link("kept", "to-kept");
	lstat("to-kept", &before);
	removed("unlink", "file.delete", syscall(SYS_unlink, "to-kept"), "to-kept", &before);

	row_folder("folder");
	stat("folder", &before);
	removed("unlink", "file.delete", syscall(SYS_unlink, "folder"), "folder", &before);

	closed_folder("closed");
	stat("closed/kept", &before);
	removed("unlink", "file.delete", ROW_AS_NOBODY(syscall(SYS_unlink, "closed/kept")), "closed/kept", &before);
}

static void test_unlinkat(void)
{
	struct stat before;

	row_folder("folder");
	row_touch("folder/victim");
	int folder = open("folder", O_PATH | O_DIRECTORY | O_CLOEXEC);
	stat("folder/victim", &before);
	long result = syscall(SYS_unlinkat, folder, "victim", 0);
	row_given("unlinkat", "file.delete", result, "victim", "folder/victim");
	row_inode("", &before);
	row_json("flags", "[]");
	row_done();
	result = syscall(SYS_unlinkat, folder, "victim", 0);
	row_given("unlinkat", "file.delete", result, "victim", "folder/victim");
	row_done();
	close(folder);

	row_folder("full");
	row_touch("full/kept");
	stat("full", &before);
	result = syscall(SYS_unlinkat, AT_FDCWD, "full", AT_REMOVEDIR);
	row_named("unlinkat", "dir.delete", result, "full");
	row_inode("", &before);
	row_json("flags", "[\"AT_REMOVEDIR\"]");
	row_done();
	stat("folder", &before);
	result = syscall(SYS_unlinkat, AT_FDCWD, "folder", AT_REMOVEDIR);
	row_named("unlinkat", "dir.delete", result, "folder");
	row_inode("", &before);
	row_json("flags", "[\"AT_REMOVEDIR\"]");
	row_done();
}

static void test_rmdir(void)
{
	struct stat before;

	row_folder("folder");
	stat("folder", &before);
	removed("rmdir", "dir.delete", syscall(SYS_rmdir, "folder"), "folder", &before);
	failed("rmdir", "dir.delete", syscall(SYS_rmdir, "folder"), "folder");

	row_folder("full");
	row_touch("full/kept");
	stat("full", &before);
	removed("rmdir", "dir.delete", syscall(SYS_rmdir, "full"), "full", &before);
	stat("full/kept", &before);
	removed("rmdir", "dir.delete", syscall(SYS_rmdir, "full/kept"), "full/kept", &before);
}

static void test_mkdir(void)
{
	long result = syscall(SYS_mkdir, "by-mkdir", 0750);
	row_named("mkdir", "dir.create", result, "by-mkdir");
	row_inode_of("", "by-mkdir");
	row_mode(0750);
	row_done();

	result = syscall(SYS_mkdir, "by-mkdir", 0700);
	row_named("mkdir", "dir.create", result, "by-mkdir");
	row_inode_of("", "by-mkdir");
	row_mode(0700);
	row_done();

	result = syscall(SYS_mkdir, "with-slash/", 0755);
	row_given("mkdir", "dir.create", result, "with-slash/", "with-slash");
	row_inode_of("", "with-slash");
	row_done();

	failed("mkdir", "dir.create", syscall(SYS_mkdir, "absent/below", 0755), "absent/below");
	row_touch("file");
	failed("mkdir", "dir.create", syscall(SYS_mkdir, "file/below", 0755), "file/below");
	closed_folder("closed");
	failed("mkdir", "dir.create", ROW_AS_NOBODY(syscall(SYS_mkdir, "closed/new", 0755)), "closed/new");
}

static void test_mkdirat(void)
{
	row_folder("folder");
	int folder = open("folder", O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (int round = 0; round < 2; round++) {
		long result = syscall(SYS_mkdirat, folder, "below", 0711);
		row_given("mkdirat", "dir.create", result, "below", "folder/below");
		row_inode_of("", "folder/below");
		row_mode(0711);
		row_done();
	}
	long result = syscall(SYS_mkdirat, AT_FDCWD, row_path("absolute"), 0755);
	row_expect("mkdirat", "dir.create", result);
	row_text("path", row_path("absolute"));
	row_inode_of("", "absolute");
	row_done();
	close(folder);
}

typedef long (*maker)(const char *name, mode_t mode, dev_t device);

static long call_mknod(const char *name, mode_t mode, dev_t device)
{
	return syscall(SYS_mknod, name, mode, device);
}

static long call_mknodat(const char *name, mode_t mode, dev_t device)
{
	return syscall(SYS_mknodat, AT_FDCWD, name, mode, device);
}

static void made_node(const char *row, const char *kind, maker call, const char *name, mode_t mode)
{
	/* the second time it is there */
	for (int round = 0; round < 2; round++) {
		row_named(row, kind, call(name, mode, 0), name);
		row_inode_of("", name);
		row_mode(mode);
		row_done();
	}
	unlink(name);
}

/* /dev/null again: harmless, and still only root may make it. */
static void made_device(const char *row, maker call)
{
	long result = call("device", S_IFCHR | 0600, makedev(1, 3));

	row_named(row, "node.create", result, "device");
	if (result == 0)
		row_inode_of("", "device");
	row_mode(S_IFCHR | 0600);
	row_text("args.dev", "1:3");
	row_done();
	unlink("device");

	result = ROW_AS_NOBODY(call("device", S_IFBLK | 0600, makedev(7, 300)));
	row_named(row, "node.create", result, "device");
	row_mode(S_IFBLK | 0600);
	row_text("args.dev", "7:300");
	row_done();
}

static void nodes(const char *row, maker call)
{
	made_node(row, "node.create", call, "fifo", S_IFIFO | 0640);
	made_node(row, "node.create", call, "socket", S_IFSOCK | 0600);
	made_node(row, "file.create", call, "regular", S_IFREG | 0644);
	made_node(row, "file.create", call, "typeless", 0600);
	made_device(row, call);
}

static void test_mknod(void)
{
	nodes("mknod", call_mknod);
}

static void test_mknodat(void)
{
	nodes("mknodat", call_mknodat);
	row_folder("folder");
	int folder = open("folder", O_PATH | O_DIRECTORY | O_CLOEXEC);
	long result = syscall(SYS_mknodat, folder, "fifo", S_IFIFO | 0600, 0);
	row_given("mknodat", "node.create", result, "fifo", "folder/fifo");
	row_inode_of("", "folder/fifo");
	row_done();
	close(folder);
	unlink("folder/fifo");
}

/* Link `from`, made here, to `to`; twice, so that the second one finds it there. */
static void linked(const char *row, const char *from, const char *to)
{
	for (int round = 0; round < 2; round++) {
		long result = strcmp(row, "link") == 0 ? syscall(SYS_link, from, to)
						       : syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
		row_named(row, "file.link", result, from);
		row_inode_of("", from);
		row_to(to);
		row_inode_of("to.", to);
		row_done();
	}
	unlink(to);
}

static void failing_links(const char *row)
{
	bool plain = strcmp(row, "link") == 0;
	long result =
	    plain ? syscall(SYS_link, "absent", "new") : syscall(SYS_linkat, AT_FDCWD, "absent", AT_FDCWD, "new", 0);
	row_named(row, "file.link", result, "absent");
	row_to("new");
	row_done();

	row_folder("folder");
	result =
	    plain ? syscall(SYS_link, "folder", "new") : syscall(SYS_linkat, AT_FDCWD, "folder", AT_FDCWD, "new", 0);
	row_named(row, "file.link", result, "folder");
	row_inode_of("", "folder");
	row_to("new");
	row_done();
}

static void test_link(void)
{
	row_touch("first");
	row_link("first", "to-first");
	linked("link", "first", "second");
	linked("link", "to-first", "second-link");
	failing_links("link");
}

static void test_linkat(void)
{
	row_touch("first");
	row_link("first", "to-first");
	linked("linkat", "first", "second");
	linked("linkat", "to-first", "second-link");
	failing_links("linkat");

	/* with the flag it is the file that gets the name */
	row_folder("folder");
	int folder = open("folder", O_PATH | O_DIRECTORY | O_CLOEXEC);
	long result = syscall(SYS_linkat, AT_FDCWD, "to-first", folder, "third", AT_SYMLINK_FOLLOW);
	row_given("linkat", "file.link", result, "to-first", "first");
	row_inode_of("", "first");
	row_text("to.path", row_path("folder/third"));
	row_text("to.as_given", "third");
	row_inode_of("to.", "first");
	row_json("flags", "[\"AT_SYMLINK_FOLLOW\"]");
	row_done();
	close(folder);
	unlink("folder/third");
}

static void symlinked(const char *row, long result, const char *text, const char *name)
{
	row_named(row, "file.symlink", result, name);
	row_text("to.text", text);
	row_inode_of("", name);
	row_done();
}

static void test_symlink(void)
{
	symlinked("symlink", syscall(SYS_symlink, "../any text", "by-symlink"), "../any text", "by-symlink");
	symlinked("symlink", syscall(SYS_symlink, "another", "by-symlink"), "another", "by-symlink");
	long result = syscall(SYS_symlink, "text", "absent/below");
	row_named("symlink", "file.symlink", result, "absent/below");
	row_text("to.text", "text");
	row_done();
}

static void test_symlinkat(void)
{
	row_folder("folder");
	int folder = open("folder", O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (int round = 0; round < 2; round++) {
		long result = syscall(SYS_symlinkat, "/no/such", folder, "by-symlinkat");
		row_given("symlinkat", "file.symlink", result, "by-symlinkat", "folder/by-symlinkat");
		row_text("to.text", "/no/such");
		row_inode_of("", "folder/by-symlinkat");
		row_done();
	}
	close(folder);
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {
	    {"rename", ROW_OLD_CALL(test_rename)},
	    {"renameat", test_renameat},
	    {"renameat2", test_renameat2},
	    {"unlink", ROW_OLD_CALL(test_unlink)},
	    {"unlinkat", test_unlinkat},
	    {"rmdir", ROW_OLD_CALL(test_rmdir)},
	    {"mkdir", ROW_OLD_CALL(test_mkdir)},
	    {"mkdirat", test_mkdirat},
	    {"mknod", ROW_OLD_CALL(test_mknod)},
	    {"mknodat", test_mknodat},
	    {"link", ROW_OLD_CALL(test_link)},
	    {"linkat", test_linkat},
	    {"symlink", ROW_OLD_CALL(test_symlink)},
	    {"symlinkat", test_symlinkat},
	    {NULL, NULL},
	};

	umask(022);
	return row_main(cases, argc, argv);
}
