/*
 * Mounts, all of them in a mount namespace of the case's own: what is read-only, what lies across, what an overlay
 * copies, and file flags that forbid. As root.
 */
#include <linux/fs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/quota.h>
#include <sys/xattr.h>

#include "equal.h"

static void own_mounts(void)
{
	NEED(unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
}

static bool shell(const char *script)
{
	int status;
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", script, NULL);
		_exit(EQUAL_BROKEN);
	}
	return waitpid(pid, &status, 0) == pid && status == 0;
}

/* Each mutating call once, on one folder's content. */
static void ask_folder(const char *folder)
{
	static const struct timespec times[2] = {{1, 0}, {2, 0}};

	NEED(chdir(folder) == 0);
	step(mkdir("new", 0755), "%s: mkdir", folder);
	step(mkdir("folder", 0755), "%s: mkdir existing", folder);
	step(rmdir("new"), "%s: rmdir", folder);
	STEP_CLOSE(open("created", O_WRONLY | O_CREAT, 0644), "%s: create", folder);
	STEP_CLOSE(open("file", O_WRONLY | O_CREAT, 0644), "%s: create existing", folder);
	STEP_CLOSE(open("file", O_WRONLY | O_CREAT | O_EXCL, 0644), "%s: create existing, exclusive", folder);
	STEP_CLOSE(open("file", O_WRONLY), "%s: write", folder);
	STEP_CLOSE(open("file", O_RDONLY | O_CREAT, 0644), "%s: read and create", folder);
	STEP_CLOSE(open("file", O_RDONLY | O_TRUNC), "%s: read and truncate", folder);
	STEP_CLOSE(open("absent", O_WRONLY), "%s: write absent", folder);
	STEP_CLOSE(open(".", O_TMPFILE | O_RDWR, 0600), "%s: no name", folder);
	step(truncate("file", 1), "%s: truncate", folder);
	step(chmod("file", 0640), "%s: chmod", folder);
	step(chown("file", NOBODY, NOBODY), "%s: chown", folder);
	step(utimensat(AT_FDCWD, "file", times, 0), "%s: times", folder);
	step(setxattr("file", "user.a", "v", 1, 0), "%s: setxattr", folder);
	step(removexattr("file", "user.a"), "%s: removexattr", folder);
	step(symlink("x", "link"), "%s: symlink", folder);
	step(link("file", "second"), "%s: link", folder);
	step(mknod("node", S_IFCHR | 0600, makedev(1, 3)), "%s: mknod", folder);
	STEP_CLOSE(open("node", O_WRONLY), "%s: open the device", folder);
	step(mkfifo("fifo", 0600), "%s: mkfifo", folder);
	step(rename("file", "moved"), "%s: rename", folder);
	step(rename("moved", "file"), "%s: rename back", folder);
	step(rename("absent", "moved"), "%s: rename absent", folder);
	step(rename("../outside", "inside"), "%s: rename into", folder);
	step(rename("file", "../outside-too"), "%s: rename out of", folder);
	step(link("../outside", "inside"), "%s: link into", folder);
	step(unlink("file"), "%s: unlink", folder);
	step(unlink("absent"), "%s: unlink absent", folder);
	facts_of("file");
	facts_of("folder");
	NEED(chdir("..") == 0);
}

static void make_content(const char *folder)
{
	char name[64];

	make_folder(folder, 0755);
	snprintf(name, sizeof(name), "%s/file", folder);
	make_file(name, 0644, "hello");
	snprintf(name, sizeof(name), "%s/folder", folder);
	make_folder(name, 0755);
}

static void mounts_bind(void)
{
	static const struct {
		const char *name;
		unsigned long flags;
	} kinds[] = {{"plain", 0},          {"readonly", MS_RDONLY}, {"noexec", MS_NOEXEC}, {"nodev", MS_NODEV},
		     {"nosuid", MS_NOSUID}, {"noatime", MS_NOATIME}, {"nosymfollow", 256}};

	own_mounts();
	make_file("outside", 0644, "outside");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		const char *name = kinds[i].name;
		make_content(name);
		NEED(mount(name, name, NULL, MS_BIND, NULL) == 0);
		NEED(mount(NULL, name, NULL, MS_BIND | MS_REMOUNT | kinds[i].flags, NULL) == 0);
		ask_folder(name);
		step(rmdir(name), "%s: rmdir the mount point", name);
		step(rename(name, "elsewhere"), "%s: rename the mount point", name);
		step(chmod(name, 0700), "%s: chmod the mount point", name);
	}
}

static void mounts_noexec(void)
{
	own_mounts();
	make_content("noexec");
	make_file("noexec/script", 0755, "#!/bin/sh\nexit 3\n");
	NEED(mount("noexec", "noexec", NULL, MS_BIND, NULL) == 0);
	NEED(mount(NULL, "noexec", NULL, MS_BIND | MS_REMOUNT | MS_NOEXEC, NULL) == 0);
	step(execl("noexec/script", "script", NULL), "exec");
	step(access("noexec/script", X_OK), "access");
	NEED(mount(NULL, "noexec", NULL, MS_BIND | MS_REMOUNT, NULL) == 0);
	execl("noexec/script", "script", NULL);
	NEED(false);
}

static void mounts_tmpfs(void)
{
	own_mounts();
	make_file("outside", 0644, "outside");
	make_folder("tmpfs", 0755);
	NEED(mount("none", "tmpfs", "tmpfs", 0, "size=64k,nr_inodes=20,mode=0755") == 0);
	make_file("tmpfs/file", 0644, "hello");
	make_folder("tmpfs/folder", 0755);
	ask_folder("tmpfs");
	NEED(chdir("tmpfs") == 0);
	char name[32];
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		if (step(mknod(name, S_IFREG | 0600, 0), "%s", name) != 0)
			break;
	}
	step(mkdir("one-more", 0755), "no inode left");
	step(open("one-more", O_WRONLY | O_CREAT, 0600), "no inode left for a file");
	int fd = open("n1", O_WRONLY);
	static char block[4096];
	for (int i = 0; i < 20 && step(write(fd, block, sizeof(block)), "write") > 0; i++)
		;
	step(unlink("n2"), "unlink");
	step(symlink("x", "one-more"), "symlink");
}

static void mounts_across(void)
{
	own_mounts();
	make_content("a");
	make_content("b");
	make_folder("same", 0755);
	NEED(mount("none", "b", "tmpfs", 0, NULL) == 0 && mount("a", "same", NULL, MS_BIND, NULL) == 0);
	make_file("b/file", 0644, "in tmpfs");
	step(rename("a/file", "b/moved"), "rename across file systems");
	step(rename("a/file", "same/moved"), "rename across mounts of one file system");
	step(link("a/file", "b/linked"), "link across file systems");
	step(link("a/file", "same/linked"), "link across mounts of one file system");
	step(syscall(SYS_renameat2, AT_FDCWD, "a/file", AT_FDCWD, "b/file", 2), "exchange across");
	step(rename("same/file", "same/moved"), "rename inside the other mount");
	facts_of("a/moved");
	step(mkdir("b/../through", 0755), "up out of the mount");
	step(mount("a", "b", NULL, MS_BIND, NULL), "a mount over a mount");
	STEP_CLOSE(open("b/late", O_WRONLY | O_CREAT, 0644), "create in the upper one");
	step(umount2("b", MNT_DETACH), "umount");
	STEP_CLOSE(open("b/lower", O_WRONLY | O_CREAT, 0644), "create in the lower one");
	int fd = open("b", O_RDONLY | O_DIRECTORY);
	step(umount2("b", MNT_DETACH), "umount what is open");
	STEP_CLOSE(openat(fd, "detached", O_WRONLY | O_CREAT, 0644), "create in the detached mount");
	step(mkdirat(fd, "detached-folder", 0755), "mkdir in the detached mount");
	step(fchmodat(fd, "detached", 0600, 0), "chmod in the detached mount");
	step(rmdir("same"), "rmdir a mount point");
	make_file("over", 0644, "under");
	NEED(mount("a/moved", "over", NULL, MS_BIND, NULL) == 0);
	step(unlink("over"), "unlink a file that is mounted over");
	STEP_CLOSE(open("over", O_WRONLY | O_TRUNC), "write to what is mounted over it");
	facts_of("a/moved");
}

static void mounts_overlay(void)
{
	own_mounts();
	make_file("outside", 0644, "outside");
	make_content("lower");
	make_file("lower/folder/inner", 0644, "inner");
	make_file("lower/deleted", 0644, "to be deleted");
	make_file("lower/owned", 0600, "owned");
	NEED(chown("lower/owned", NOBODY, NOBODY) == 0);
	NEED(mkdir("upper", 0755) == 0 && mkdir("work", 0755) == 0 && mkdir("merged", 0755) == 0);
	if (mount("overlay", "merged", "overlay", 0, "lowerdir=lower,upperdir=upper,workdir=work") != 0) {
		skip("no overlay: %s", name_of_error(errno));
		return;
	}
	step(chmod("merged/owned", 0640), "chmod copies up");
	facts_of("upper/owned");
	step(unlink("merged/deleted"), "unlink leaves a whiteout");
	facts_of("upper/deleted");
	STEP_CLOSE(open("merged/deleted", O_WRONLY | O_CREAT | O_EXCL, 0604), "create over a whiteout");
	facts_of("upper/deleted");
	step(rename("merged/folder", "merged/renamed"), "rename a lower folder");
	step(rename("merged/folder/inner", "merged/inner"), "rename a lower file");
	step(link("merged/inner", "merged/linked"), "link");
	int reader = open("merged/file", O_RDONLY);
	int writer = (int)step(open("merged/file", O_WRONLY), "write copies up");
	NEED(write(writer, "HE", 2) == 2 && close(writer) == 0);
	char text[8] = "";
	NEED(read(reader, text, 5) == 5);
	say("who had it open for reading: %s", text);
	content_of("merged/file");
	content_of("lower/file");
	ask_folder("merged");
	step(rmdir("merged/folder"), "rmdir a lower folder");
	step(mkdir("merged/folder", 0700), "mkdir in its place: opaque");
	NEED(umount2("merged", MNT_DETACH) == 0);
	/* what the overlay keeps for itself goes by numbers */
	NEED(shell("rm -rf work"));
}

static void set_flags(const char *name, int flags)
{
	int fd = open(name, O_RDONLY), now = 0;

	NEED(fd >= 0 && ioctl(fd, FS_IOC_GETFLAGS, &now) == 0);
	now = (now & ~(FS_IMMUTABLE_FL | FS_APPEND_FL)) | flags;
	NEED(ioctl(fd, FS_IOC_SETFLAGS, &now) == 0);
	close(fd);
}

static void with_flags(const char *label, int flags)
{
	make_file("outside", 0644, "outside");
	make_content(label);
	char name[64];
	snprintf(name, sizeof(name), "%s/file", label);
	set_flags(name, flags);
	ask_folder(label);
	STEP_CLOSE(open(name, O_WRONLY | O_APPEND), "%s: append", label);
	STEP_CLOSE(open(name, O_WRONLY | O_APPEND | O_TRUNC), "%s: append and truncate", label);
	set_flags(label, flags);
	snprintf(name, sizeof(name), "%s/new", label);
	step(mkdir(name, 0755), "%s: mkdir in the folder", label);
	snprintf(name, sizeof(name), "%s/folder", label);
	step(rmdir(name), "%s: rmdir in the folder", label);
	step(rename(label, "elsewhere"), "%s: rename the folder", label);
	step(chmod(label, 0700), "%s: chmod the folder", label);
	set_flags(label, 0);
	snprintf(name, sizeof(name), "%s/file", label);
	set_flags(name, 0);
}

static bool flags_possible(void)
{
	int now, fd = open(".", O_RDONLY);
	bool possible = ioctl(fd, FS_IOC_GETFLAGS, &now) == 0;

	if (!possible)
		skip("this file system has no flags: %s", name_of_error(errno));
	close(fd);
	return possible;
}

static void mounts_immutable(void)
{
	if (flags_possible())
		with_flags("immutable", FS_IMMUTABLE_FL);
}

static void mounts_append_only(void)
{
	if (flags_possible())
		with_flags("append-only", FS_APPEND_FL);
}

static void as_quota_user(void)
{
	char name[32];

	NEED(setresgid(STRANGER, STRANGER, STRANGER) == 0 && setresuid(STRANGER, STRANGER, STRANGER) == 0);
	for (int i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "q/d%d", i);
		step(mkdir(name, 0755), "%s", name);
		snprintf(name, sizeof(name), "q/f%d", i);
		STEP_CLOSE(open(name, O_WRONLY | O_CREAT, 0644), "%s", name);
	}
	step(symlink("x", "q/link"), "symlink");
	STEP_CLOSE(open("q", O_TMPFILE | O_RDWR, 0600), "without a name");
	step(rename("q/root", "q/moved"), "rename what is root's");
	step(unlink("q/f0"), "unlink");
	step(symlink("x", "q/link"), "symlink again");
}

static void mounts_quota(void)
{
	static const char device[] = "truncate -s 8M image && mkfs.ext4 -q -O quota -E root_owner image && "
				     "mount -o loop image q 2>/dev/null && findmnt -n -o SOURCE q > device";
	struct dqblk limit = {.dqb_ihardlimit = 6, .dqb_isoftlimit = 6, .dqb_valid = QIF_ILIMITS};
	char name[64] = "";

	own_mounts();
	make_folder("q", 0755);
	if (!shell(device)) {
		skip("no ext4 with a quota can be mounted from a loop device");
		unlink("image");
		return;
	}
	int fd = open("device", O_RDONLY);
	NEED(read(fd, name, sizeof(name) - 1) > 0 && strchr(name, '\n') && chmod("q", 0777) == 0);
	*strchr(name, '\n') = 0;
	make_file("q/root", 0644, "");
	if (step(quotactl(QCMD(Q_SETQUOTA, USRQUOTA), name, STRANGER, (char *)&limit), "limit") == 0)
		in_child("stranger", as_quota_user);
	NEED(umount2("q", MNT_DETACH) == 0 && unlink("image") == 0 && unlink("device") == 0);
}

static const struct equal_case cases[] = {
    {"mounts_bind", true, mounts_bind},
    {"mounts_noexec", true, mounts_noexec},
    {"mounts_tmpfs", true, mounts_tmpfs},
    {"mounts_across", true, mounts_across},
    {"mounts_overlay", true, mounts_overlay},
    {"mounts_immutable", true, mounts_immutable},
    {"mounts_append_only", true, mounts_append_only},
    {"mounts_quota", true, mounts_quota},
    {NULL},
};

int main(int argc, char **argv)
{
	return equal_main(cases, argc, argv);
}
