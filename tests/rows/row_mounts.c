/*
 * Mounts and roots, in mount namespaces of their own.
 */
#include <linux/mount.h>

#include "row_child.h"

#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif
#ifndef MNT_DETACH
#define MNT_DETACH 2
#define UMOUNT_NOFOLLOW 8
#endif

static void (*in_private_mounts)(void);

/* Nothing of it may come out of this namespace. */
static void make_private(void)
{
	row_must(syscall(SYS_mount, "none", "/", NULL, (unsigned long)(MS_REC | MS_PRIVATE), NULL) == 0);
	in_private_mounts();
}

static void in_mounts(const char *row, void (*run)(void))
{
	in_private_mounts = run;
	row_in_child(row, CLONE_NEWNS, make_private);
}

static struct stat look(const char *path)
{
	struct stat status;

	row_must(stat(path, &status) == 0);
	return status;
}

static void begin(const char *row, const char *path, long result)
{
	row_expect(row, "mount.change", result);
	if (path)
		row_text("path", path);
}

/* A tmpfs in a new directory. */
static const char *new_mount(const char *name)
{
	const char *path = row_path(name);

	row_must(mkdir(path, 0755) == 0);
	row_must(syscall(SYS_mount, "none", path, "tmpfs", 0UL, "size=64k") == 0);
	return path;
}

static const char *new_directory(const char *name)
{
	const char *path = row_path(name);

	row_must(mkdir(path, 0755) == 0);
	return path;
}

static void mount_in_child(void)
{
	const char *path = new_directory("mount");
	struct stat before = look(path);

	long result = syscall(SYS_mount, "some name", path, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k");
	begin("mount", path, result);
	row_inode("", &before);
	row_text("args.source", "some name");
	row_text("args.filesystemtype", "tmpfs");
	row_json("flags", "[\"MS_NOSUID\",\"MS_NODEV\"]");
	row_done();
	row_must(look(path).st_dev != before.st_dev);

	const char *other = new_directory("bound");
	before = look(other);
	result = syscall(SYS_mount, "mount", "bound", NULL, MS_BIND | MS_REC, NULL);
	begin("mount", other, result);
	row_inode("", &before);
	row_text("as_given", "bound");
	row_text("args.source", "mount");
	row_json("flags", "[\"MS_BIND\",\"MS_REC\"]");
	row_done();
	row_must(look(other).st_dev == look(path).st_dev);

	result = syscall(SYS_mount, "none", path, "nosuchfs", 0UL, NULL);
	begin("mount", path, result);
	row_text("args.filesystemtype", "nosuchfs");
	row_done();
	result = syscall(SYS_mount, "none", row_path("absent"), "tmpfs", 0UL, NULL);
	begin("mount", row_path("absent"), result);
	row_done();
}

static void run_mount(void)
{
	if (geteuid() != 0) {
		long result = syscall(SYS_mount, "none", row_path("."), "tmpfs", 0UL, NULL);
		row_expect("mount", "mount.change", result);
		row_text("args.filesystemtype", "tmpfs");
		row_done();
	}
	in_mounts("mount", mount_in_child);
}

static void umount_in_child(void)
{
	const char *path = new_mount("umount");
	struct stat mounted = look(path);
	const char *plain = new_directory("umount-plain");

	int inside = open(path, O_RDONLY | O_DIRECTORY);
	row_must(inside >= 0);
	long result = syscall(SYS_umount2, path, 0);
	begin("umount2", path, result);
	row_inode("", &mounted);
	row_json("flags", "[]");
	row_done();

	result = syscall(SYS_umount2, "umount", MNT_DETACH);
	begin("umount2", path, result);
	row_inode("", &mounted);
	row_text("as_given", "umount");
	row_json("flags", "[\"MNT_DETACH\"]");
	row_done();
	row_must(look(path).st_dev != mounted.st_dev);

	result = syscall(SYS_umount2, plain, UMOUNT_NOFOLLOW);
	begin("umount2", plain, result);
	row_json("flags", "[\"UMOUNT_NOFOLLOW\"]");
	row_done();
}

static void run_umount2(void)
{
	in_mounts("umount2", umount_in_child);
}

static int say_fsopen(const char *name)
{
	long result = syscall(SYS_fsopen, name, FSOPEN_CLOEXEC);

	begin("fsopen", NULL, result);
	row_text("args.fsname", name);
	row_hex("args.flags", FSOPEN_CLOEXEC);
	row_value(result);
	row_done();
	return (int)result;
}

static void fsopen_in_child(void)
{
	row_must(say_fsopen("tmpfs") >= 0);
	row_must(say_fsopen("nosuchfs") == -1);
}

static void run_fsopen(void)
{
	in_mounts("fsopen", fsopen_in_child);
}

static void say_fsconfig(int fd, unsigned command, const char *name, const char *key, const char *value)
{
	long result = syscall(SYS_fsconfig, fd, command, key, value, 0);

	begin("fsconfig", NULL, result);
	row_number("args.fd", fd);
	row_text("args.cmd", name);
	if (key)
		row_text("args.key", key);
	row_done();
}

static void fsconfig_in_child(void)
{
	int fd = (int)syscall(SYS_fsopen, "tmpfs", 0);

	row_must(fd >= 0);
	say_fsconfig(fd, FSCONFIG_SET_STRING, "FSCONFIG_SET_STRING", "size", "64k");
	say_fsconfig(fd, FSCONFIG_SET_STRING, "FSCONFIG_SET_STRING", "nosuchkey", "1");
	say_fsconfig(fd, FSCONFIG_SET_FLAG, "FSCONFIG_SET_FLAG", "ro", NULL);
	say_fsconfig(fd, FSCONFIG_CMD_CREATE, "FSCONFIG_CMD_CREATE", NULL, NULL);
	/* It is made already. */
	say_fsconfig(fd, FSCONFIG_CMD_CREATE, "FSCONFIG_CMD_CREATE", NULL, NULL);
}

static void run_fsconfig(void)
{
	in_mounts("fsconfig", fsconfig_in_child);
}

static int say_fsmount(int fd)
{
	long result = syscall(SYS_fsmount, fd, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOATIME);

	begin("fsmount", NULL, result);
	row_number("args.fd", fd);
	row_hex("args.flags", FSMOUNT_CLOEXEC);
	row_json("flags", "[\"MOUNT_ATTR_NOSUID\",\"MOUNT_ATTR_NOATIME\"]");
	row_value(result);
	row_done();
	return (int)result;
}

static int new_context(void)
{
	int fd = (int)syscall(SYS_fsopen, "tmpfs", 0);

	row_must(fd >= 0 && syscall(SYS_fsconfig, fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0);
	return fd;
}

static void fsmount_in_child(void)
{
	row_must(say_fsmount((int)syscall(SYS_fsopen, "tmpfs", 0)) == -1);
	row_must(say_fsmount(new_context()) >= 0);
}

static void run_fsmount(void)
{
	in_mounts("fsmount", fsmount_in_child);
}

static void move_mount_in_child(void)
{
	const char *path = new_directory("move");
	const char *plain = new_directory("move-plain");
	struct stat before = look(path), root;
	int fd = (int)syscall(SYS_fsmount, new_context(), 0, 0);

	row_must(fd >= 0 && fstat(fd, &root) == 0);
	long result = syscall(SYS_move_mount, fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH);
	begin("move_mount", NULL, result);
	row_inode("", &root);
	row_text("to.path", path);
	row_inode("to.", &before);
	row_json("flags", "[\"MOVE_MOUNT_F_EMPTY_PATH\"]");
	row_done();
	row_must(look(path).st_dev == root.st_dev && look(path).st_ino == root.st_ino);

	before = look(plain);
	result = syscall(SYS_move_mount, AT_FDCWD, path, AT_FDCWD, "move-plain", 0);
	begin("move_mount", path, result);
	row_inode("", &root);
	row_text("to.path", plain);
	row_text("to.as_given", "move-plain");
	row_inode("to.", &before);
	row_json("flags", "[]");
	row_done();
	row_must(look(plain).st_dev == root.st_dev);

	/* Nothing is mounted there any more. */
	result = syscall(SYS_move_mount, AT_FDCWD, path, AT_FDCWD, plain, 0);
	begin("move_mount", path, result);
	row_text("to.path", plain);
	row_done();
}

static void run_move_mount(void)
{
	in_mounts("move_mount", move_mount_in_child);
}

static void open_tree_in_child(void)
{
	const char *path = new_mount("tree");
	struct stat mounted = look(path);

	long result = syscall(SYS_open_tree, AT_FDCWD, "tree", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	begin("open_tree", path, result);
	row_inode("", &mounted);
	row_text("as_given", "tree");
	row_json("flags", "[\"OPEN_TREE_CLONE\",\"OPEN_TREE_CLOEXEC\"]");
	row_value(result);
	row_done();

	result = syscall(SYS_open_tree, AT_FDCWD, row_path("absent"), OPEN_TREE_CLONE);
	begin("open_tree", row_path("absent"), result);
	row_json("flags", "[\"OPEN_TREE_CLONE\"]");
	row_done();

	/* Only opens, as with O_PATH. */
	const char *plain = new_directory("tree-plain");
	row_must(syscall(SYS_open_tree, AT_FDCWD, plain, OPEN_TREE_CLOEXEC) >= 0);
	row_absent("open_tree");
	row_text("path", plain);
	row_done();
}

static void run_open_tree(void)
{
	in_mounts("open_tree", open_tree_in_child);
}

static void open_tree_attr_in_child(void)
{
	const char *path = new_mount("tree-attr");
	struct stat mounted = look(path);
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

	long result = syscall(SYS_open_tree_attr, AT_FDCWD, path, OPEN_TREE_CLONE, &attr, sizeof(attr));
	if (result == -1 && errno == ENOSYS) {
		row_skip("open_tree_attr", "this kernel has no such call (Linux 6.15)");
		return;
	}
	begin("open_tree_attr", path, result);
	row_inode("", &mounted);
	row_json("flags", "[\"OPEN_TREE_CLONE\"]");
	row_number("args.size", sizeof(attr));
	row_value(result);
	row_done();
	row_must(openat((int)result, "new", O_CREAT | O_WRONLY, 0600) == -1 && errno == EROFS);

	attr = (struct mount_attr){.propagation = ~UINT64_C(0)};
	result = syscall(SYS_open_tree_attr, AT_FDCWD, path, OPEN_TREE_CLONE, &attr, sizeof(attr));
	begin("open_tree_attr", path, result);
	row_inode("", &mounted);
	row_done();
}

static void run_open_tree_attr(void)
{
	in_mounts("open_tree_attr", open_tree_attr_in_child);
}

static void mount_setattr_in_child(void)
{
	const char *path = new_mount("setattr");
	const char *plain = new_directory("setattr-plain");
	struct stat mounted = look(path);
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

	long result = syscall(SYS_mount_setattr, AT_FDCWD, "setattr", AT_RECURSIVE, &attr, sizeof(attr));
	begin("mount_setattr", path, result);
	row_inode("", &mounted);
	row_text("as_given", "setattr");
	row_json("flags", "[\"AT_RECURSIVE\"]");
	row_number("args.size", sizeof(attr));
	row_done();
	row_must(mkdir(row_path("setattr/new"), 0700) == -1 && errno == EROFS);

	int fd = open(path, O_PATH);
	attr = (struct mount_attr){.attr_clr = MOUNT_ATTR_RDONLY};
	result = syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attr, sizeof(attr));
	begin("mount_setattr", path, result);
	row_inode("", &mounted);
	row_json("flags", "[\"AT_EMPTY_PATH\"]");
	row_done();
	row_must(mkdir(row_path("setattr/new"), 0700) == 0);

	result = syscall(SYS_mount_setattr, AT_FDCWD, plain, 0, &attr, sizeof(attr));
	begin("mount_setattr", plain, result);
	row_json("flags", "[]");
	row_done();
}

static void run_mount_setattr(void)
{
	in_mounts("mount_setattr", mount_setattr_in_child);
}

static void say_fspick(const char *given, const char *path)
{
	struct stat status = look(path);
	long result = syscall(SYS_fspick, AT_FDCWD, given, FSPICK_CLOEXEC);

	begin("fspick", path, result);
	row_inode("", &status);
	if (strcmp(given, path) != 0)
		row_text("as_given", given);
	row_hex("args.flags", FSPICK_CLOEXEC);
	row_value(result);
	row_done();
}

static void fspick_in_child(void)
{
	const char *path = new_mount("pick");
	const char *plain = new_directory("pick/plain");

	say_fspick("pick", path);
	/* Not the root of a mount. */
	say_fspick(plain, plain);
}

static void run_fspick(void)
{
	in_mounts("fspick", fspick_in_child);
}

static void pivot_root_in_child(void)
{
	const char *path = new_mount("pivot");
	const char *old = new_directory("pivot/old");
	const char *plain = new_directory("pivot-plain");
	struct stat root = look(path), put = look(old);

	long result = syscall(SYS_pivot_root, plain, plain);
	row_expect("pivot_root", "priv.root", result);
	row_text("path", plain);
	row_text("to.path", plain);
	row_done();

	/* The paths as they were before it: afterwards they mean nothing. */
	char new_root[PATH_MAX], put_old[PATH_MAX];
	snprintf(new_root, sizeof(new_root), "%s", path);
	snprintf(put_old, sizeof(put_old), "%s", old);
	result = syscall(SYS_pivot_root, "pivot", put_old);
	if (result != 0) {
		row_skip("pivot_root", "the root here is one that cannot be moved");
		return;
	}
	row_expect("pivot_root", "priv.root", result);
	row_text("path", new_root);
	row_text("as_given", "pivot");
	row_inode("", &root);
	row_text("to.path", put_old);
	row_inode("to.", &put);
	row_done();
	struct stat now = look("/");
	row_must(now.st_dev == root.st_dev && now.st_ino == root.st_ino);
}

static void run_pivot_root(void)
{
	in_mounts("pivot_root", pivot_root_in_child);
}

static void say_chroot(const char *given, const char *path)
{
	struct stat status;
	bool there = stat(path, &status) == 0;
	long result = syscall(SYS_chroot, given);

	row_expect("chroot", "priv.root", result);
	row_text("path", path);
	if (strcmp(given, path) != 0)
		row_text("as_given", given);
	if (there)
		row_inode("", &status);
	row_done();
	if (result != 0)
		return;
	struct stat now = look("/");
	row_must(now.st_dev == status.st_dev && now.st_ino == status.st_ino);
}

static void chroot_in_child(void)
{
	say_chroot(row_path("absent"), row_path("absent"));
	int file = open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	row_must(file >= 0);
	say_chroot("file", row_path("file"));
	say_chroot("root", row_path("root"));
}

static void run_chroot(void)
{
	const char *path = new_directory("root");

	if (geteuid() != 0)
		say_chroot(path, path);
	row_in_child("chroot", CLONE_NEWNS, chroot_in_child);
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {
	    {"mount", run_mount},
	    {"umount2", run_umount2},
	    {"fsopen", run_fsopen},
	    {"fsconfig", run_fsconfig},
	    {"fsmount", run_fsmount},
	    {"move_mount", run_move_mount},
	    {"open_tree", run_open_tree},
	    {"open_tree_attr", run_open_tree_attr},
	    {"mount_setattr", run_mount_setattr},
	    {"fspick", run_fspick},
	    {"pivot_root", run_pivot_root},
	    {"chroot", run_chroot},
	    {0},
	};

	return row_main(cases, argc, argv);
}
