/*
 * Who may do what: user and group ids, supplementary groups, the file system's own ids, capabilities, sticky folders,
 * access control lists. Whoever makes the call in a process's place must have its rights, no more and no less.
 */
#include <grp.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/xattr.h>

#include "equal.h"

/* One of each call on what belongs to root and to nobody, in folders that belong to each. */
static void ask_everything(const char *label)
{
	static const char *const names[] = {"root/root-600",    "root/root-666",   "root/other-600",
					    "world/root-600",   "world/other-644", "sticky/root-666",
					    "sticky/other-600", "group/root-660",  NULL};
	static const struct timespec times[2] = {{1, 0}, {2, 0}}, now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
	char other[64];

	for (int i = 0; names[i]; i++) {
		const char *name = names[i];
		snprintf(other, sizeof(other), "%s-moved", name);
		STEP_CLOSE(open(name, O_WRONLY), "%s: write %s", label, name);
		STEP_CLOSE(open(name, O_RDONLY), "%s: read %s", label, name);
		STEP_CLOSE(open(name, O_WRONLY | O_TRUNC | O_NOATIME), "%s: noatime %s", label, name);
		step(truncate(name, 4), "%s: truncate %s", label, name);
		step(chmod(name, 06660), "%s: chmod %s", label, name);
		facts_of(name);
		step(chown(name, (uid_t)-1, getegid()), "%s: chgrp %s", label, name);
		step(chown(name, STRANGER, (gid_t)-1), "%s: chown %s", label, name);
		step(utimensat(AT_FDCWD, name, times, 0), "%s: times %s", label, name);
		step(utimensat(AT_FDCWD, name, now, 0), "%s: now %s", label, name);
		step(setxattr(name, "user.a", "v", 1, 0), "%s: setxattr %s", label, name);
		step(setxattr(name, "trusted.a", "v", 1, 0), "%s: trusted %s", label, name);
		step(link(name, other), "%s: link %s", label, name);
		step(unlink(other), "%s: unlink link of %s", label, name);
		step(rename(name, other), "%s: rename %s", label, name);
		step(rename(other, name), "%s: back %s", label, name);
		facts_of(name);
	}
	static const char *const folders[] = {"root", "world", "sticky", "group", NULL};
	for (int i = 0; folders[i]; i++) {
		snprintf(other, sizeof(other), "%s/new", folders[i]);
		step(mkdir(other, 0777), "%s: mkdir %s", label, other);
		facts_of(other);
		step(rmdir(other), "%s: rmdir %s", label, other);
		STEP_CLOSE(open(other, O_WRONLY | O_CREAT | O_EXCL, 06666), "%s: create %s", label, other);
		facts_of(other);
		step(mknod(other, S_IFCHR | 0600, makedev(1, 3)), "%s: device %s", label, other);
		STEP_CLOSE(open(folders[i], O_TMPFILE | O_RDWR, 0600), "%s: no name in %s", label, folders[i]);
		unlink(other);
	}
	STEP_CLOSE(open("/etc/shadow", O_RDWR), "%s: shadow", label);
	STEP_CLOSE(open("/etc/shadow", O_RDONLY), "%s: read shadow", label);
}

static void give(const char *name, mode_t mode, uid_t uid, gid_t gid)
{
	make_file(name, 0600, "text");
	NEED(chown(name, uid, gid) == 0 && chmod(name, mode) == 0);
}

static void make_rights(void)
{
	make_folder("root", 0755);
	make_folder("world", 0777);
	make_folder("sticky", 01777);
	make_folder("group", 02770);
	NEED(chown("group", 0, STRANGER) == 0 && chmod("group", 02770) == 0);
	give("root/root-600", 0600, 0, 0);
	give("root/root-666", 0666, 0, 0);
	give("root/other-600", 0600, NOBODY, NOBODY);
	give("world/root-600", 0600, 0, 0);
	give("world/other-644", 0644, NOBODY, NOBODY);
	give("sticky/root-666", 0666, 0, 0);
	give("sticky/other-600", 0600, NOBODY, NOBODY);
	give("group/root-660", 0660, 0, STRANGER);
}

/* Capabilities in and out of the effective set. The ids stay. */
static void keep_capabilities(uint64_t effective, uint64_t permitted)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {
	    {.effective = (uint32_t)effective, .permitted = (uint32_t)permitted},
	    {.effective = (uint32_t)(effective >> 32), .permitted = (uint32_t)(permitted >> 32)}};

	NEED(syscall(SYS_capset, &header, data) == 0);
}

static uint64_t permitted_now(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	NEED(syscall(SYS_capget, &header, data) == 0);
	return data[0].permitted | (uint64_t)data[1].permitted << 32;
}

static void as_uid(void)
{
	NEED(setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0);
	NEED(setresuid(NOBODY, NOBODY, NOBODY) == 0);
	ask_everything("nobody");
}

static void rights_uid(void)
{
	make_rights();
	in_child("all ids", as_uid);
}

static void as_effective(void)
{
	NEED(setegid(NOBODY) == 0 && seteuid(NOBODY) == 0);
	ask_everything("effective");
	NEED(seteuid(0) == 0 && setegid(0) == 0);
	STEP_CLOSE(open("root/root-600", O_WRONLY), "root again");
}

static void rights_effective(void)
{
	make_rights();
	in_child("effective ids", as_effective);
}

static void as_file_system_uid(void)
{
	syscall(SYS_setfsgid, STRANGER);
	syscall(SYS_setfsuid, STRANGER);
	ask_everything("fsuid");
	syscall(SYS_setfsuid, 0);
	STEP_CLOSE(open("root/root-600", O_WRONLY), "root again");
	STEP_CLOSE(open("root/of-group", O_WRONLY | O_CREAT, 0644), "with the group still");
	facts_of("root/of-group");
}

static void rights_file_system_uid(void)
{
	make_rights();
	in_child("file system ids", as_file_system_uid);
}

static void with_group(void)
{
	gid_t group = STRANGER;

	NEED(setgroups(1, &group) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0);
	NEED(setresuid(NOBODY, NOBODY, NOBODY) == 0);
	ask_everything("member");
	give("world/mine", 02755, (uid_t)-1, (gid_t)-1);
	facts_of("world/mine");
	step(chown("world/mine", (uid_t)-1, STRANGER), "to a group of ours");
	step(chmod("world/mine", 02755), "setgid in it");
	step(chown("world/mine", (uid_t)-1, 777), "to a group that is not");
	facts_of("world/mine");
}

static void rights_groups(void)
{
	make_rights();
	in_child("supplementary group", with_group);
}

static void without(const char *label, uint64_t dropped)
{
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0) {
		keep_capabilities(permitted_now() & ~dropped, permitted_now());
		ask_everything(label);
		_exit(0);
	}
	join_child(label, pid);
}

#define BIT(capability) (1ULL << (capability))

static void rights_no_override(void)
{
	make_rights();
	without("no override", BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH));
}

static void rights_no_owner(void)
{
	make_rights();
	without("no fowner", BIT(CAP_FOWNER));
}

static void rights_no_chown(void)
{
	make_rights();
	without("no chown", BIT(CAP_CHOWN));
}

static void rights_no_setid(void)
{
	make_rights();
	without("no fsetid, mknod, admin", BIT(CAP_FSETID) | BIT(CAP_MKNOD) | BIT(CAP_SYS_ADMIN));
}

static void rights_no_capabilities(void)
{
	make_rights();
	without("none", ~0ULL);
}

static void ambient(void)
{
	NEED(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0);
	NEED(setgroups(0, NULL) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
	ask_everything("kept, not effective");
	keep_capabilities(BIT(CAP_DAC_OVERRIDE), BIT(CAP_DAC_OVERRIDE));
	ask_everything("nobody who overrides");
}

static void rights_kept_capabilities(void)
{
	make_rights();
	in_child("capabilities of nobody", ambient);
}

static void rights_setgid_folder(void)
{
	make_folder("shared", 0755);
	/* for a user, any of the own groups is the only group there is */
	NEED(chown("shared", (uid_t)-1, getuid() == 0 ? STRANGER : getgid()) == 0 && chmod("shared", 02777) == 0);
	umask(0);
	step(mkdir("shared/folder", 0755), "mkdir");
	facts_of("shared/folder");
	STEP_CLOSE(open("shared/file", O_WRONLY | O_CREAT, 02775), "create setgid");
	facts_of("shared/file");
	STEP_CLOSE(open("shared/plain", O_WRONLY | O_CREAT, 0644), "create");
	facts_of("shared/plain");
	step(mknod("shared/fifo", S_IFIFO | 02755, 0), "mknod");
	facts_of("shared/fifo");
	step(symlink("x", "shared/link"), "symlink");
	facts_of("shared/link");
	int fd = (int)step(open("shared", O_TMPFILE | O_RDWR, 02755), "no name");
	facts(fd);
	step(chmod("shared/file", 02770), "chmod setgid");
	facts_of("shared/file");
	step(chown("shared/file", (uid_t)-1, (gid_t)-1), "chown clears");
	facts_of("shared/file");
}

/* An access control list as the kernel stores it. */
struct acl {
	uint32_t version;
	struct {
		uint16_t tag, permissions;
		uint32_t id;
	} entries[5];
};

static void rights_default_acl(void)
{
	const struct acl list = {.version = 2,
				 .entries = {{1, 7, (uint32_t)-1},
					     {2, 6, STRANGER},
					     {4, 5, (uint32_t)-1},
					     {16, 7, (uint32_t)-1},
					     {32, 4, (uint32_t)-1}}};
	static const mode_t masks[] = {0, 022, 077};
	char name[32];

	make_folder("folder", 0755);
	step(setxattr("folder", "system.posix_acl_default", &list, sizeof(list), 0), "set default");
	for (size_t i = 0; i < sizeof(masks) / sizeof(*masks); i++) {
		umask(masks[i]);
		snprintf(name, sizeof(name), "folder/d%zu", i);
		step(mkdir(name, 0777), "mkdir");
		facts_of(name);
		snprintf(name, sizeof(name), "folder/f%zu", i);
		STEP_CLOSE(open(name, O_WRONLY | O_CREAT, 0666), "create");
		facts_of(name);
		step(chmod(name, 0640), "chmod sets the mask");
		facts_of(name);
		snprintf(name, sizeof(name), "folder/n%zu", i);
		step(mknod(name, S_IFIFO | 0666, 0), "mknod");
		facts_of(name);
		int fd = (int)step(open("folder", O_TMPFILE | O_RDWR, 0666), "no name");
		facts(fd);
		NEED(close(fd) == 0);
	}
	make_file("file", 0640, "");
	step(setxattr("file", "system.posix_acl_access", &list, sizeof(list), 0), "set access");
	facts_of("file");
	step(setxattr("file", "system.posix_acl_default", &list, sizeof(list), 0), "default on a file");
	step(setxattr("folder", "system.posix_acl_access", "junk", 4, 0), "junk");
	step(removexattr("folder", "system.posix_acl_default"), "remove");
}

static void by_acl(void)
{
	NEED(setgroups(0, NULL) == 0 && setresgid(STRANGER, STRANGER, STRANGER) == 0);
	NEED(setresuid(STRANGER, STRANGER, STRANGER) == 0);
	STEP_CLOSE(open("file", O_RDWR), "by the list");
	STEP_CLOSE(open("file", O_RDWR | O_TRUNC), "truncated by the list");
	step(chmod("file", 0600), "not the owner");
	step(setxattr("file", "user.a", "v", 1, 0), "attribute by the list");
	step(utimensat(AT_FDCWD, "file", NULL, 0), "times by the list");
}

static void rights_access_acl(void)
{
	const struct acl list = {.version = 2,
				 .entries = {{1, 6, (uint32_t)-1},
					     {2, 6, STRANGER},
					     {4, 0, (uint32_t)-1},
					     {16, 6, (uint32_t)-1},
					     {32, 0, (uint32_t)-1}}};

	make_file("file", 0600, "text");
	NEED(setxattr("file", "system.posix_acl_access", &list, sizeof(list), 0) == 0);
	in_child("stranger", by_acl);
	content_of("file");
}

static bool protection(const char *name)
{
	char path[64], text[16] = "0";

	snprintf(path, sizeof(path), "/proc/sys/fs/%s", name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '0';
	if (fd >= 0)
		close(fd);
	if (text[0] == '0')
		skip("fs.%s is 0 on this machine", name);
	return text[0] != '0';
}

static void make_sticky(void)
{
	make_folder("sticky", 01777);
	give("sticky/file", 0666, NOBODY, NOBODY);
	NEED(mkfifo("sticky/fifo", 0666) == 0 && chown("sticky/fifo", NOBODY, NOBODY) == 0);
	NEED(chmod("sticky/fifo", 0666) == 0 && symlink("../target", "sticky/link") == 0);
	NEED(lchown("sticky/link", NOBODY, NOBODY) == 0);
	make_file("target", 0666, "text");
}

static void rights_protected_files(void)
{
	if (!protection("protected_regular"))
		return;
	make_sticky();
	STEP_CLOSE(open("sticky/file", O_WRONLY), "write");
	STEP_CLOSE(open("sticky/file", O_WRONLY | O_CREAT, 0600), "create");
	STEP_CLOSE(open("sticky/file", O_WRONLY | O_CREAT | O_TRUNC, 0600), "create and truncate");
	STEP_CLOSE(open("sticky/mine", O_WRONLY | O_CREAT, 0600), "create the own");
	STEP_CLOSE(open("sticky/mine", O_WRONLY | O_CREAT, 0600), "and again");
}

static void rights_protected_fifos(void)
{
	if (!protection("protected_fifos"))
		return;
	make_sticky();
	STEP_CLOSE(open("sticky/fifo", O_RDWR), "open");
	STEP_CLOSE(open("sticky/fifo", O_RDWR | O_CREAT, 0600), "create");
}

static void rights_protected_symlinks(void)
{
	if (!protection("protected_symlinks"))
		return;
	make_sticky();
	STEP_CLOSE(open("sticky/link", O_WRONLY), "through a foreign link");
	STEP_CLOSE(open("sticky/link", O_WRONLY | O_CREAT, 0600), "and with create");
	step(chmod("sticky/link", 0600), "chmod through it");
	step(truncate("sticky/link", 0), "truncate through it");
	step(rename("sticky/link", "sticky/renamed"), "rename it");
}

static void linking(void)
{
	NEED(setresgid(STRANGER, STRANGER, STRANGER) == 0 && setresuid(STRANGER, STRANGER, STRANGER) == 0);
	step(link("sticky/file", "world/a"), "what can be written");
	step(link("only-read", "world/b"), "what can only be read");
	step(link("setuid", "world/c"), "setuid");
	step(link("sticky/fifo", "world/d"), "fifo");
	step(link("own", "world/e"), "the own");
}

static void rights_protected_hardlinks(void)
{
	if (!protection("protected_hardlinks"))
		return;
	make_sticky();
	make_folder("world", 0777);
	give("only-read", 0644, 0, 0);
	give("setuid", 04777, 0, 0);
	give("own", 0600, STRANGER, STRANGER);
	in_child("stranger", linking);
}

static const struct equal_case cases[] = {
    {"rights_uid", true, rights_uid},
    {"rights_effective", true, rights_effective},
    {"rights_file_system_uid", true, rights_file_system_uid},
    {"rights_groups", true, rights_groups},
    {"rights_no_override", true, rights_no_override},
    {"rights_no_owner", true, rights_no_owner},
    {"rights_no_chown", true, rights_no_chown},
    {"rights_no_setid", true, rights_no_setid},
    {"rights_no_capabilities", true, rights_no_capabilities},
    {"rights_kept_capabilities", true, rights_kept_capabilities},
    {"rights_setgid_folder", false, rights_setgid_folder},
    {"rights_default_acl", false, rights_default_acl},
    {"rights_access_acl", true, rights_access_acl},
    {"rights_protected_files", true, rights_protected_files},
    {"rights_protected_fifos", true, rights_protected_fifos},
    {"rights_protected_symlinks", true, rights_protected_symlinks},
    {"rights_protected_hardlinks", true, rights_protected_hardlinks},
    {NULL},
};

int main(int argc, char **argv)
{
	return equal_main(cases, argc, argv);
}
