/*
 * Processes that live elsewhere: behind chroot and pivot_root, in namespaces of users and mounts. A path means what it
 * means to them, and they may what they may there.
 */
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/xattr.h>

#include "equal.h"

static bool write_text(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

/* Become root of a user namespace of one user. Whoever may not make one skips. */
static bool become_root(int more)
{
	char map[64], groups[64];

	snprintf(map, sizeof(map), "0 %d 1", getuid());
	snprintf(groups, sizeof(groups), "0 %d 1", getgid());
	if (unshare(CLONE_NEWUSER | more) != 0) {
		skip("no user namespace: %s", name_of_error(errno));
		return false;
	}
	NEED(write_text("/proc/self/setgroups", "deny"));
	NEED(write_text("/proc/self/uid_map", map) && write_text("/proc/self/gid_map", groups));
	return true;
}

static void ask_here(const char *label)
{
	static const struct timespec times[2] = {{1, 0}, {2, 0}};
	char name[64], other[64];

	snprintf(name, sizeof(name), "%s-folder", label);
	step(mkdir(name, 02777), "%s: mkdir", label);
	facts_of(name);
	snprintf(name, sizeof(name), "%s-file", label);
	snprintf(other, sizeof(other), "%s-moved", label);
	int fd = (int)step(open(name, O_RDWR | O_CREAT | O_EXCL, 06666), "%s: create", label);
	facts(fd);
	NEED(fd >= 0 && write(fd, "text", 4) == 4 && close(fd) == 0);
	STEP_CLOSE(open(name, O_WRONLY | O_APPEND), "%s: append", label);
	step(chmod(name, 06755), "%s: chmod", label);
	step(chown(name, 0, 0), "%s: chown to 0", label);
	step(chown(name, 1, 1), "%s: chown to 1", label);
	step(chown(name, STRANGER, (gid_t)-1), "%s: chown to a stranger", label);
	step(lchown(name, getuid(), getgid()), "%s: chown to ourselves", label);
	step(utimensat(AT_FDCWD, name, times, 0), "%s: times", label);
	step(setxattr(name, "user.a", "v", 1, 0), "%s: setxattr", label);
	step(setxattr(name, "trusted.a", "v", 1, 0), "%s: trusted", label);
	step(truncate(name, 2), "%s: truncate", label);
	step(rename(name, other), "%s: rename", label);
	step(link(other, name), "%s: link", label);
	snprintf(name, sizeof(name), "%s-node", label);
	step(mknod(name, S_IFCHR | 0600, makedev(1, 3)), "%s: device", label);
	snprintf(name, sizeof(name), "%s-fifo", label);
	step(mknod(name, S_IFIFO | 0666, 0), "%s: fifo", label);
	step(symlink(other, name), "%s: symlink existing", label);
	step(unlink(name), "%s: unlink", label);
	facts_of(other);
}

static void spaces_user(void)
{
	make_file("before", 0600, "before");
	make_folder("sealed", 0000);
	if (!become_root(0))
		return;
	say("uid %u gid %u", getuid(), getgid());
	ask_here("inside");
	STEP_CLOSE(open("before", O_RDWR), "what was there before");
	step(mkdir("sealed/x", 0755), "in a folder without permissions");
	step(chmod("sealed", 0755), "chmod of it");
	STEP_CLOSE(open("/etc/shadow", O_RDONLY), "shadow");
	STEP_CLOSE(open("/etc/passwd", O_WRONLY), "passwd");
	step(setgroups(0, NULL), "setgroups");
	step(setresuid(1, 1, 1), "to an id that is none");
}

static void spaces_user_nested(void)
{
	if (!become_root(0) || !become_root(CLONE_NEWNS))
		return;
	ask_here("nested");
	step(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), "private");
	step(mkdir("tmpfs", 0755), "mkdir");
	step(mount("none", "tmpfs", "tmpfs", 0, NULL), "tmpfs");
	NEED(chdir("tmpfs") == 0);
	ask_here("tmpfs");
	if (!become_root(0))
		return;
	ask_here("deepest");
}

static void spaces_user_unmapped(void)
{
	if (unshare(CLONE_NEWUSER) != 0) {
		skip("no user namespace: %s", name_of_error(errno));
		return;
	}
	say("uid %u", getuid());
	step(mkdir("folder", 0755), "mkdir");
	facts_of("folder");
	STEP_CLOSE(open("file", O_WRONLY | O_CREAT, 0644), "create");
	step(chown("file", 0, 0), "chown");
	step(chmod("file", 0600), "chmod");
	step(unlink("file"), "unlink");
}

static void without_numbers(void)
{
	NEED(setgroups(0, NULL) == 0 && setresgid(STRANGER, STRANGER, STRANGER) == 0);
	NEED(setresuid(STRANGER, STRANGER, STRANGER) == 0);
	if (unshare(CLONE_NEWUSER) != 0) {
		skip("no user namespace: %s", name_of_error(errno));
		return;
	}
	say("uid %u gid %u", getuid(), getgid());
	step(mkdir("ours/folder", 0755), "mkdir in root's folder");
	STEP_CLOSE(open("ours/file", O_WRONLY | O_APPEND), "root's file");
	step(unlink("ours/file"), "unlink");
	step(mkdir("all/folder", 0755), "mkdir in everybody's folder");
	STEP_CLOSE(open("all/file", O_WRONLY | O_CREAT, 0644), "create in it");
}

/* Neither it nor root has a number there, so both show as the same one. */
static void spaces_user_stranger(void)
{
	make_folder("ours", 0755);
	make_file("ours/file", 0644, "text");
	make_folder("all", 0777);
	NEED(chmod(".", 0755) == 0);
	in_child("stranger", without_numbers);
	facts_of("all/folder");
	facts_of("all/file");
}

static void make_in_root(void)
{
	NEED(chroot("mnt") == 0 && chdir("/") == 0);
	step(mkdir("/folder", 0755), "mkdir");
	STEP_CLOSE(open("/file", O_WRONLY | O_CREAT, 0644), "create");
}

/* Nothing may stand in the root of who is gone. */
static void spaces_root_unmounted(void)
{
	NEED(unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	make_folder("mnt", 0755);
	for (int i = 0; i < 4; i++) {
		NEED(mount("none", "mnt", "tmpfs", 0, NULL) == 0);
		in_child("inside", make_in_root);
		step(umount("mnt"), "umount");
	}
}

static void spaces_mounts_of_user(void)
{
	if (!become_root(CLONE_NEWNS))
		return;
	NEED(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	make_folder("a", 0755);
	make_folder("b", 0755);
	step(mount("none", "a", "tmpfs", 0, "mode=0755"), "tmpfs");
	step(mount("a", "b", NULL, MS_BIND, NULL), "bind");
	NEED(chdir("a") == 0);
	ask_here("private");
	step(rename("private-moved", "../out"), "rename out of it");
	NEED(chdir("..") == 0);
	step(mkdir("b/through", 0755), "through the other mount");
	facts_of("a/through");
	step(mount("none", "b", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), "read-only");
	step(mkdir("b/no", 0755), "mkdir in it");
	step(mkdir("a/yes", 0755), "mkdir beside it");
}

static void enter(void)
{
	step(chroot("cell"), "chroot");
	step(mkdir("outside-cwd", 0755), "cwd is outside still");
	step(mkdir("/in-cell", 0755), "absolute");
	NEED(chdir("/") == 0);
	ask_here("cell");
	step(mkdir("../../up", 0755), "above the root");
	step(symlink("/in-cell", "link"), "symlink");
	STEP_CLOSE(open("link/file", O_WRONLY | O_CREAT, 0644), "through an absolute link");
	step(open("/proc/self/comm", O_WRONLY), "no proc here");
	step(open("/dev/null", O_WRONLY), "no devices here");
	step(chroot("in-cell"), "deeper");
	step(mkdir("/deepest", 0755), "mkdir in the deeper one");
	step(mkdir("../beside-deepest", 0755), "cwd is above its root");
}

static void spaces_chroot(void)
{
	make_folder("cell", 0755);
	in_child("cell", enter);
	step(mkdir("after", 0755), "who stayed");
}

static void enter_as_user(void)
{
	if (become_root(0))
		enter();
}

static void spaces_chroot_of_user(void)
{
	make_folder("cell", 0755);
	in_child("cell", enter_as_user);
}

static void spaces_pivot(void)
{
	NEED(unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	make_folder("root", 0755);
	int outside = open(".", O_RDONLY | O_DIRECTORY);
	NEED(mount("none", "root", "tmpfs", 0, "mode=0755") == 0 && mkdir("root/old", 0755) == 0);
	NEED(chdir("root") == 0);
	step(syscall(SYS_pivot_root, ".", "old"), "pivot_root");
	NEED(chdir("/") == 0);
	ask_here("pivoted");
	STEP_CLOSE(open("/old/dev/null", O_WRONLY), "the old root");
	step(mkdirat(outside, "by-descriptor", 0755), "by a descriptor of outside");
	step(umount2("/old", MNT_DETACH), "old root away");
	step(mkdir("/old/x", 0755), "in its place");
	step(mkdirat(outside, "detached", 0755), "by a descriptor of outside");
	STEP_CLOSE(open("/alone", O_WRONLY | O_CREAT, 0600), "create");
	STEP_CLOSE(openat(outside, "../spaces_pivot/late", O_WRONLY | O_CREAT, 0644), "up by the descriptor");
}

static void spaces_pivot_of_user(void)
{
	if (!become_root(CLONE_NEWNS))
		return;
	NEED(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	make_folder("root", 0755);
	int outside = open(".", O_RDONLY | O_DIRECTORY);
	NEED(mount("none", "root", "tmpfs", 0, "mode=0755") == 0 && mkdir("root/old", 0755) == 0);
	NEED(chdir("root") == 0);
	step(syscall(SYS_pivot_root, ".", "old"), "pivot_root");
	NEED(chdir("/") == 0);
	ask_here("pivoted");
	step(mkdirat(outside, "by-descriptor", 0755), "by a descriptor of outside");
	step(umount2("/old", MNT_DETACH), "old root away");
	step(mkdir("/old/x", 0755), "in its place");
}

/* Who joins another's namespace acts there from the next call on. */
static void spaces_joined(void)
{
	int ready[2], done[2];
	char byte = 'x', name[64];

	make_folder("mnt", 0755);
	NEED(pipe(ready) == 0 && pipe(done) == 0);
	pid_t pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		NEED(unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
		NEED(mount("none", "mnt", "tmpfs", 0, NULL) == 0 && write(ready[1], &byte, 1) == 1);
		close(done[1]);
		NEED(read(done[0], &byte, 1) >= 0);
		facts_of("mnt/joined");
		_exit(0);
	}
	NEED(read(ready[0], &byte, 1) == 1);
	step(mkdir("mnt/before", 0755), "before");
	snprintf(name, sizeof(name), "/proc/%d/ns/mnt", pid);
	int fd = open(name, O_RDONLY), here = open(".", O_RDONLY | O_DIRECTORY),
	    old = open("/proc/self/ns/mnt", O_RDONLY);
	step(setns(fd, CLONE_NEWNS), "join");
	char place[PATH_MAX];
	snprintf(name, sizeof(name), "/proc/self/fd/%d", here);
	ssize_t size = readlink(name, place, sizeof(place) - 1);
	NEED(size > 0);
	place[size] = 0;
	NEED(chdir(place) == 0);
	step(mkdir("mnt/joined", 0750), "inside");
	step(mkdirat(here, "mnt/by-descriptor", 0750), "by a descriptor of before");
	step(setns(old, CLONE_NEWNS), "back");
	NEED(chdir(place) == 0);
	step(mkdir("mnt/after", 0755), "after");
	close(done[1]);
	join_child("other", pid);
}

static const struct equal_case cases[] = {
    {"spaces_user", false, spaces_user},
    {"spaces_user_nested", false, spaces_user_nested},
    {"spaces_user_unmapped", false, spaces_user_unmapped},
    {"spaces_user_stranger", true, spaces_user_stranger},
    {"spaces_root_unmounted", true, spaces_root_unmounted},
    {"spaces_mounts_of_user", false, spaces_mounts_of_user},
    {"spaces_chroot", true, spaces_chroot},
    {"spaces_chroot_of_user", false, spaces_chroot_of_user},
    {"spaces_pivot", true, spaces_pivot},
    {"spaces_pivot_of_user", false, spaces_pivot_of_user},
    {"spaces_joined", true, spaces_joined},
    {NULL},
};

int main(int argc, char **argv)
{
	return equal_main(cases, argc, argv);
}
