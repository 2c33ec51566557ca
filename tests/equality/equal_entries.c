/*
 * Names made, moved and removed: what each call answers to what stands there already, and what is there afterwards.
 */
#include <sys/mount.h>

#include "equal.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE 2
#define RENAME_WHITEOUT 4
#endif

static long rename2(const char *from, const char *to, unsigned flags)
{
	return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
}

static void entries_mkdir(void)
{
	static const mode_t modes[] = {0, 0700, 0755, 0777, 01777, 02755, 04755, 07777, 0170755, 0xffffffff};
	char name[32];

	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		snprintf(name, sizeof(name), "d%zu", i);
		step(syscall(SYS_mkdirat, AT_FDCWD, name, modes[i]), "mkdir %o", modes[i]);
		facts_of(name);
	}
	make_file("file", 0644, "");
	NEED(symlink("d1", "link") == 0 && symlink("absent", "dangling") == 0);
	step(mkdir("d1", 0755), "mkdir existing");
	step(mkdir("file", 0755), "mkdir on a file");
	step(mkdir("link", 0755), "mkdir on a link");
	step(mkdir("dangling", 0755), "mkdir on a dangling link");
	step(mkdir("dangling/", 0755), "mkdir on a dangling link with a slash");
	step(mkdir("file/x", 0755), "mkdir below a file");
	step(mkdir("absent/x", 0755), "mkdir below nothing");
	step(mkdir("link/x", 0755), "mkdir below a link");
	step(syscall(SYS_mkdirat, AT_FDCWD, "high", 0755L | 1L << 40), "high bits in mode");
	facts_of("high");
}

static void entries_rmdir(void)
{
	make_folder("empty", 0755);
	make_folder("full", 0755);
	make_folder("full/inner", 0755);
	make_file("file", 0644, "");
	NEED(symlink("empty", "link") == 0);
	step(rmdir("full"), "rmdir full");
	step(rmdir("file"), "rmdir file");
	step(rmdir("link"), "rmdir link");
	step(rmdir("link/"), "rmdir link with a slash");
	step(rmdir("absent"), "rmdir absent");
	step(rmdir("full/inner/.."), "rmdir ..");
	step(rmdir("full/."), "rmdir .");
	step(rmdir("/proc"), "rmdir a mount point");
	step(unlink("empty"), "unlink folder");
	step(syscall(SYS_unlinkat, AT_FDCWD, "empty", 0x400), "unlinkat bad flag");
	step(syscall(SYS_unlinkat, AT_FDCWD, "file", AT_REMOVEDIR), "unlinkat file as folder");
	NEED(chdir("empty") == 0);
	step(rmdir("../empty"), "rmdir where we are");
	NEED(chdir("../full") == 0);
	step(rmdir("/"), "rmdir root");
	step(rmdir("inner"), "rmdir inner");
}

static void entries_unlink(void)
{
	make_file("open", 0644, "kept");
	int fd = open("open", O_RDWR);
	step(unlink("open"), "unlink what is open");
	facts(fd);
	step(unlink("open"), "unlink again");
	NEED(symlink("nothing", "dangling") == 0 && mkfifo("pipe", 0644) == 0);
	step(unlink("dangling"), "unlink dangling");
	step(unlink("pipe"), "unlink fifo");
	make_folder("read-only", 0755);
	make_file("read-only/file", 0644, "");
	NEED(chmod("read-only", 0555) == 0);
	step(unlink("read-only/file"), "unlink in a folder without write permission");
	NEED(chmod("read-only", 0644) == 0);
	step(unlink("read-only/file"), "unlink in a folder without search permission");
	NEED(chmod("read-only", 0755) == 0);
	make_file("mode-0", 0000, "");
	step(unlink("mode-0"), "unlink a file without permissions");
	step(syscall(SYS_unlinkat, AT_FDCWD, "absent", 0xffff), "unlinkat all flags");
}

static void entries_rename(void)
{
	make_file("a", 0644, "a");
	make_file("b", 0600, "b");
	NEED(link("a", "same") == 0);
	make_folder("d", 0755);
	make_folder("e", 0700);
	make_folder("full", 0755);
	make_folder("full/inner", 0755);
	NEED(symlink("a", "l") == 0 && symlink("d", "dl") == 0);
	step(rename("a", "a"), "onto itself");
	step(rename("a", "same"), "onto its own link");
	facts_of("a");
	step(rename("d", "a"), "folder onto file");
	step(rename("a", "d"), "file onto folder");
	step(rename("d", "full"), "folder onto full folder");
	step(rename("full", "full/inner/x"), "into itself");
	step(rename("full", "full"), "folder onto itself");
	step(rename("full/inner", "full"), "onto its parent");
	step(rename("d", "e"), "folder onto empty folder");
	facts_of("e");
	step(rename("e/", "f/"), "folder with slashes");
	step(rename("a", "g/"), "file to a name with a slash");
	step(rename("a/", "g"), "file with a slash");
	step(rename("dl/", "g"), "dangling link with a slash");
	step(rename("l", "b"), "link over file");
	facts_of("b");
	step(rename("absent", "x"), "absent");
	step(rename("a", "absent/x"), "into absent");
	step(rename("f", "a/x"), "below a file");
	step(rename(".", "x"), "the dot");
	step(rename("full/..", "x"), "two dots");
	step(rename("f", "full/."), "to a dot");
	step(rename("f", "full/inner"), "into another folder, over an empty one");
	step(rename("a", "full/a"), "into another folder");
	step(rename("", "x"), "empty");
	step(rename("same", ""), "to empty");
}

static void entries_rename_flags(void)
{
	static const unsigned flags[] = {3, 5, 6, 7, 8, 0x80000000};

	make_file("a", 0644, "a");
	make_file("b", 0600, "bb");
	make_folder("d", 0755);
	make_folder("d/inner", 0755);
	NEED(symlink("a", "l") == 0);
	step(rename2("a", "b", RENAME_NOREPLACE), "noreplace on existing");
	step(rename2("a", "a", RENAME_NOREPLACE), "noreplace on itself");
	step(rename2("a", "c", RENAME_NOREPLACE), "noreplace");
	step(rename2("c", "l", RENAME_NOREPLACE), "noreplace on dangling link");
	step(rename2("c", "a", RENAME_NOREPLACE), "noreplace back");
	step(rename2("a", "b", RENAME_EXCHANGE), "exchange");
	content_of("a");
	step(rename2("a", "d", RENAME_EXCHANGE), "exchange file and folder");
	facts_of("a");
	step(rename2("a", "d", RENAME_EXCHANGE), "and back");
	step(rename2("a", "absent", RENAME_EXCHANGE), "exchange with absent");
	step(rename2("absent", "a", RENAME_EXCHANGE), "exchange absent");
	step(rename2("d", "d/inner", RENAME_EXCHANGE), "exchange with what is inside");
	step(rename2("d/inner", "d", RENAME_EXCHANGE), "exchange inside with outside");
	step(rename2("a", "l", RENAME_EXCHANGE), "exchange with link");
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		step(rename2("a", "b", flags[i]), "flags %x", flags[i]);
	step(rename2("b", "moved", RENAME_WHITEOUT), "whiteout");
	facts_of("b");
	facts_of("moved");
}

static void entries_link(void)
{
	make_file("file", 0644, "text");
	make_file("private", 0000, "text");
	make_folder("folder", 0755);
	NEED(symlink("file", "link") == 0 && symlink("nothing", "dangling") == 0 && mkfifo("pipe", 0600) == 0);
	step(link("file", "second"), "link");
	step(link("file", "second"), "link again");
	step(link("file", "file"), "link to itself");
	step(link("folder", "x"), "link folder");
	step(link("link", "to-link"), "link to a link");
	facts_of("to-link");
	step(link("dangling", "to-dangling"), "link to a dangling link");
	step(linkat(AT_FDCWD, "link", AT_FDCWD, "followed", AT_SYMLINK_FOLLOW), "followed");
	facts_of("followed");
	step(linkat(AT_FDCWD, "dangling", AT_FDCWD, "x", AT_SYMLINK_FOLLOW), "dangling followed");
	step(link("pipe", "pipe-too"), "link fifo");
	step(link("private", "private-too"), "link a file without permissions");
	step(link("absent", "x"), "link absent");
	step(link("file", "dangling"), "link onto dangling");
	step(link("file", "absent/x"), "link into absent");
	step(link("file", "new/"), "link with a slash");
	step(link("/proc/self/comm", "x"), "link from another file system");
	step(linkat(AT_FDCWD, "file", AT_FDCWD, "x", 0x1), "bad flag");
	step(linkat(AT_FDCWD, "", AT_FDCWD, "x", AT_EMPTY_PATH), "empty path of cwd");
	int fd = open("file", O_RDONLY), folder = open("folder", O_RDONLY), only = open("file", O_PATH);
	step(linkat(fd, "", AT_FDCWD, "by-descriptor", AT_EMPTY_PATH), "empty path of a file");
	step(linkat(only, "", AT_FDCWD, "by-path-descriptor", AT_EMPTY_PATH), "empty path of O_PATH");
	step(linkat(folder, "", AT_FDCWD, "x", AT_EMPTY_PATH), "empty path of a folder");
	step(linkat(fd, "", AT_FDCWD, "x", 0), "empty path without the flag");
	step(linkat(AT_FDCWD, "file", folder, "by-folder", 0), "into a folder's descriptor");
	step(linkat(AT_FDCWD, "file", fd, "x", 0), "into a file's descriptor");
	facts(fd);
	NEED(unlink("file") == 0 && unlink("second") == 0 && unlink("followed") == 0);
	facts(fd);
}

static void entries_symlink(void)
{
	char text[PATH_MAX + 2];

	step(symlink("", "empty"), "to empty text");
	step(symlink("anything \xff\n", "odd"), "to odd bytes");
	facts_of("odd");
	step(symlink("x", "odd"), "on a name that is there");
	step(symlink("odd", "absent/x"), "in absent");
	step(symlink("odd", "new/"), "with a slash");
	step(symlink("self", "self"), "to itself");
	for (int size = PATH_MAX - 2; size <= PATH_MAX; size++) {
		char name[32];
		memset(text, 't', sizeof(text));
		text[size] = 0;
		snprintf(name, sizeof(name), "long%d", size);
		step(symlink(text, name), "of %d bytes", size);
	}
	memset(text, 't', 60);
	text[60] = 0;
	step(symlink(text, "of-60"), "of 60 bytes");
	step(syscall(SYS_symlinkat, NULL, AT_FDCWD, "x"), "to NULL");
	step(syscall(SYS_symlinkat, "x", -1, "x"), "in a bad descriptor");
	umask(0777);
	step(symlink("x", "masked"), "with all masked");
	facts_of("masked");
}

static void entries_mknod(void)
{
	const struct {
		const char *name;
		mode_t mode;
		dev_t device;
	} nodes[] = {{"fifo", S_IFIFO | 0666, 0},       {"regular", S_IFREG | 0666, 0},
		     {"socket", S_IFSOCK | 0666, 0},    {"typeless", 0666, 0},
		     {"folder", S_IFDIR | 0755, 0},     {"link", S_IFLNK | 0777, 0},
		     {"bad", 0150000 | 0666, 0},        {"null", S_IFCHR | 0666, makedev(1, 3)},
		     {"whiteout", S_IFCHR | 0000, 0},   {"block", S_IFBLK | 0660, makedev(7, 99)},
		     {"setuid", S_IFREG | 07777, 0},    {"high", S_IFREG | 0200644, 0},
		     {"odd-fifo", S_IFIFO | 07000, 77}, {"large", S_IFCHR | 0600, makedev(4095, 1048575)}};

	umask(027);
	for (size_t i = 0; i < sizeof(nodes) / sizeof(*nodes); i++) {
		step(mknodat(AT_FDCWD, nodes[i].name, nodes[i].mode, nodes[i].device), "mknod %s", nodes[i].name);
		facts_of(nodes[i].name);
	}
	step(mknod("fifo", S_IFIFO | 0600, 0), "mknod existing");
	step(mknod("absent/x", S_IFIFO | 0600, 0), "mknod in absent");
	step(mknod("new/", S_IFREG | 0600, 0), "mknod with a slash");
	NEED(symlink("nothing", "dangling") == 0);
	step(mknod("dangling", S_IFREG | 0600, 0), "mknod on a dangling link");
	step(syscall(SYS_mknodat, -1, "x", S_IFIFO | 0600, 0), "mknod in a bad descriptor");
#ifdef SYS_mknod
	step(syscall(SYS_mknod, "old", S_IFREG | 0666, 0), "the old call");
	facts_of("old");
#endif
}

/* Calls that have no descriptor, from the time before there were such. */
static void entries_old_calls(void)
{
#ifdef SYS_mkdir
	umask(022);
	step(syscall(SYS_mkdir, "d", 0777), "mkdir");
	step(syscall(SYS_symlink, "d", "l"), "symlink");
	step(syscall(SYS_rename, "d", "e"), "rename");
	step(syscall(SYS_unlink, "l"), "unlink");
	step(syscall(SYS_unlink, "e"), "unlink folder");
	step(syscall(SYS_rmdir, "e"), "rmdir");
	make_file("f", 0644, "");
	step(syscall(SYS_link, "f", "g"), "link");
	step(syscall(SYS_chmod, "f", 0604), "chmod");
	step(syscall(SYS_renameat, AT_FDCWD, "f", AT_FDCWD, "h"), "renameat");
	facts_of("g");
#else
	skip("this architecture has none of them");
#endif
}

static void entries_other_folder(void)
{
	make_folder("gone", 0755);
	int gone = open("gone", O_RDONLY | O_DIRECTORY);
	make_folder("there", 0755);
	int there = open("there", O_PATH | O_DIRECTORY);

	NEED(rmdir("gone") == 0 && rename("there", "moved") == 0);
	step(mkdirat(gone, "x", 0755), "mkdir in a removed folder");
	step(openat(gone, "x", O_WRONLY | O_CREAT, 0644), "create in a removed folder");
	step(symlinkat("x", gone, "x"), "symlink in a removed folder");
	step(fchmodat(gone, ".", 0700, 0), "chmod of a removed folder");
	step(unlinkat(gone, "x", 0), "unlink in a removed folder");
	step(mkdirat(there, "x", 0755), "mkdir in a moved folder");
	STEP_CLOSE(openat(there, "../beside", O_WRONLY | O_CREAT, 0644), "create beside a moved folder");
	step(renameat(there, "x", AT_FDCWD, "out"), "rename out of a moved folder");
	step(fchdir(there), "fchdir");
	step(renameat(AT_FDCWD, "../out", there, "in"), "rename into it");
}

static const struct equal_case cases[] = {
    {"entries_mkdir", false, entries_mkdir},
    {"entries_rmdir", false, entries_rmdir},
    {"entries_unlink", false, entries_unlink},
    {"entries_rename", false, entries_rename},
    {"entries_rename_flags", false, entries_rename_flags},
    {"entries_link", false, entries_link},
    {"entries_symlink", false, entries_symlink},
    {"entries_mknod", false, entries_mknod},
    {"entries_old_calls", false, entries_old_calls},
    {"entries_other_folder", false, entries_other_folder},
    {NULL},
};

int main(int argc, char **argv)
{
	return equal_main(cases, argc, argv);
}
