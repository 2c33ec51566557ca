/*
 * What stands in a pathname argument: slashes, dots, lengths, bad pointers, links, and the descriptor that it is
 * relative to. Every call that takes a pathname is asked.
 */
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/xattr.h>

#include "equal.h"

struct named_call {
	const char *name;
	long (*run)(int dirfd, const char *path);
};

static long call_mkdir(int dirfd, const char *path)
{
	return syscall(SYS_mkdirat, dirfd, path, 0755);
}

static long call_mknod(int dirfd, const char *path)
{
	return syscall(SYS_mknodat, dirfd, path, S_IFIFO | 0644, 0);
}

static long closed(long fd)
{
	int error = errno;

	if (fd >= 0)
		close((int)fd);
	errno = error;
	return fd < 0 ? -1 : 0;
}

static long call_create(int dirfd, const char *path)
{
	return closed(syscall(SYS_openat, dirfd, path, O_WRONLY | O_CREAT | O_NONBLOCK, 0644));
}

static long call_exclusive(int dirfd, const char *path)
{
	return closed(syscall(SYS_openat, dirfd, path, O_WRONLY | O_CREAT | O_EXCL, 0644));
}

static long call_write(int dirfd, const char *path)
{
	return closed(syscall(SYS_openat, dirfd, path, O_WRONLY | O_NONBLOCK, 0));
}

static long call_symlink(int dirfd, const char *path)
{
	return syscall(SYS_symlinkat, "file", dirfd, path);
}

static long call_link_to(int dirfd, const char *path)
{
	return syscall(SYS_linkat, AT_FDCWD, "file", dirfd, path, 0);
}

static long call_link_from(int dirfd, const char *path)
{
	return syscall(SYS_linkat, dirfd, path, AT_FDCWD, "out", 0);
}

static long call_rename_to(int dirfd, const char *path)
{
	return syscall(SYS_renameat2, AT_FDCWD, "file", dirfd, path, 0);
}

static long call_rename_from(int dirfd, const char *path)
{
	return syscall(SYS_renameat2, dirfd, path, AT_FDCWD, "out", 0);
}

static long call_rename_folder_to(int dirfd, const char *path)
{
	return syscall(SYS_renameat2, AT_FDCWD, "empty", dirfd, path, 0);
}

static long call_exchange(int dirfd, const char *path)
{
	return syscall(SYS_renameat2, AT_FDCWD, "file", dirfd, path, 2);
}

static long call_unlink(int dirfd, const char *path)
{
	return syscall(SYS_unlinkat, dirfd, path, 0);
}

static long call_rmdir(int dirfd, const char *path)
{
	return syscall(SYS_unlinkat, dirfd, path, AT_REMOVEDIR);
}

static long call_chmod(int dirfd, const char *path)
{
	return syscall(SYS_fchmodat, dirfd, path, 0750);
}

static long call_chown(int dirfd, const char *path)
{
	return syscall(SYS_fchownat, dirfd, path, getuid(), getgid(), 0);
}

static long call_times(int dirfd, const char *path)
{
	static const struct timespec times[2] = {{1000, 1}, {2000, 2}};

	return syscall(SYS_utimensat, dirfd, path, times, 0);
}

/* The rest takes no descriptor: for these it is whatever the working directory says. */
static long call_truncate(int dirfd, const char *path)
{
	(void)dirfd;
	return syscall(SYS_truncate, path, 3);
}

static long call_setxattr(int dirfd, const char *path)
{
	(void)dirfd;
	return syscall(SYS_setxattr, path, "user.name", "value", 5, 0);
}

static long call_lremovexattr(int dirfd, const char *path)
{
	(void)dirfd;
	return syscall(SYS_lremovexattr, path, "user.name");
}

static const struct named_call all_calls[] = {
    {"mkdir", call_mkdir},
    {"mknod", call_mknod},
    {"open create", call_create},
    {"open exclusive", call_exclusive},
    {"open write", call_write},
    {"symlink", call_symlink},
    {"link to", call_link_to},
    {"link from", call_link_from},
    {"rename to", call_rename_to},
    {"rename from", call_rename_from},
    {"rename folder to", call_rename_folder_to},
    {"exchange", call_exchange},
    {"unlink", call_unlink},
    {"rmdir", call_rmdir},
    {"chmod", call_chmod},
    {"chown", call_chown},
    {"utimensat", call_times},
    {"truncate", call_truncate},
    {"setxattr", call_setxattr},
    {"lremovexattr", call_lremovexattr},
    {NULL, NULL},
};

static void make_place(void)
{
	static unsigned round;
	char place[32];

	snprintf(place, sizeof(place), "%03u", round++);
	NEED(mkdir(place, 0755) == 0 && chdir(place) == 0);
	NEED(closed(open("file", O_WRONLY | O_CREAT | O_EXCL, 0644)) == 0);
	NEED(mkdir("empty", 0755) == 0 && mkdir("full", 0755) == 0 && mkdir("full/inner", 0755) == 0);
	NEED(symlink("file", "to-file") == 0 && symlink("empty", "to-empty") == 0);
	NEED(symlink("absent", "to-absent") == 0);
}

/* Run each call on a path, each where all is new: a call that fails leaves its place as it was to the next. */
static void ask_all(const char *label, const char *path)
{
	make_place();
	for (const struct named_call *one = all_calls; one->name; one++) {
		if (step(one->run(AT_FDCWD, path), "%s %s", one->name, label) != -1 && one[1].name) {
			NEED(chdir("..") == 0);
			make_place();
		}
	}
	NEED(chdir("..") == 0);
}

static void ask_list(const char *const *paths)
{
	for (; *paths; paths++)
		ask_all(*paths, *paths);
}

static void names_slashes(void)
{
	static const char *const paths[] = {"new/",      "file/",      "empty/", "full/", "to-file/",
					    "to-empty/", "to-absent/", "new//",  NULL};
	ask_list(paths);
}

static void names_dots(void)
{
	static const char *const paths[] = {".",     "..",     "",       "./",      "empty/.", "empty/..",
					    "new/.", "new/..", "file/.", "file/..", NULL};
	ask_list(paths);
}

static void names_inside(void)
{
	static const char *const paths[] = {"full//inner",
					    "full/./inner",
					    "./empty/../full/inner",
					    "full/new",
					    "file/inner",
					    "absent/inner",
					    "to-empty/inner",
					    "to-absent",
					    "to-file",
					    "to-empty",
					    "full",
					    "empty",
					    "file",
					    "to-absent/inner",
					    NULL};
	ask_list(paths);
}

/* The root folder of the machine: nothing here may succeed in changing it. */
static void names_root(void)
{
	static const char *const paths[] = {"/", "//", "/.", NULL};

	for (int i = 0; paths[i]; i++) {
		step(call_mkdir(AT_FDCWD, paths[i]), "mkdir %s", paths[i]);
		step(call_create(AT_FDCWD, paths[i]), "create %s", paths[i]);
		step(call_unlink(AT_FDCWD, paths[i]), "unlink %s", paths[i]);
		step(call_rmdir(AT_FDCWD, paths[i]), "rmdir %s", paths[i]);
		step(call_symlink(AT_FDCWD, paths[i]), "symlink %s", paths[i]);
		step(rename(paths[i], "new"), "rename %s", paths[i]);
		step(rename("new", paths[i]), "rename to %s", paths[i]);
		step(link(paths[i], "new"), "link %s", paths[i]);
		step(truncate(paths[i], 0), "truncate %s", paths[i]);
	}
}

static void names_long(void)
{
	char name[NAME_MAX + 8], path[PATH_MAX + 16];

	memset(name, 'n', sizeof(name));
	name[NAME_MAX] = 0;
	ask_all("of 255 bytes", name);
	name[NAME_MAX] = 'n';
	name[NAME_MAX + 1] = 0;
	ask_all("of 256 bytes", name);
	/* dots and slashes up to a name: what counts is the length of the whole */
	for (int size = PATH_MAX - 2; size <= PATH_MAX + 1; size++) {
		for (int i = 0; i < size; i++)
			path[i] = i % 2 ? '/' : '.';
		memcpy(path + size - 4, "/new", 5);
		if (path[size - 5] == '/')
			path[size - 5] = '.';
		snprintf(name, sizeof(name), "of %d bytes", size);
		ask_all(name, path);
	}
}

static void names_bad_pointers(void)
{
	long page = sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 3 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	NEED(pages != MAP_FAILED && mprotect(pages + page, (size_t)page, PROT_NONE) == 0);
	ask_all("NULL", NULL);
	ask_all("far away", (const char *)-1L);
	ask_all("not readable", pages + page);
	memcpy(pages + page - 4, "last", 4);
	ask_all("that runs out of its page", pages + page - 4);
	memcpy(pages + page - 4, "new", 4);
	ask_all("that ends with its page", pages + page - 4);
	memcpy(pages + page - 5, "empty", 5);
	NEED(mprotect(pages + page, (size_t)page, PROT_READ) == 0);
	ask_all("that lies on two pages", pages + page - 5);
}

static void names_odd_bytes(void)
{
	ask_all("with a newline", "a\nb");
	ask_all("that is not UTF-8", "\xff\xfe\x80");
	ask_all("with an escape", "\x1b[31m");
	ask_all("with spaces", " ");
	ask_all("with quotes", "\"'\\");
	facts_of("000/a\nb");
}

static void names_loops(void)
{
	char from[16], to[16];

	make_file("end", 0644, "hello");
	make_folder("folder", 0755);
	NEED(symlink("end", "s0") == 0 && symlink("folder", "d0") == 0);
	for (int i = 1; i <= 41; i++) {
		snprintf(from, sizeof(from), "s%d", i);
		snprintf(to, sizeof(to), "s%d", i - 1);
		NEED(symlink(to, from) == 0);
		from[0] = to[0] = 'd';
		NEED(symlink(to, from) == 0);
	}
	static const char *const names[] = {"s38", "s39", "s40", "s41", "d39/x", "d40/x", "loop", "loop/x", NULL};
	NEED(symlink("loop", "loop") == 0);
	for (int i = 0; names[i]; i++) {
		step(call_write(AT_FDCWD, names[i]), "write %s", names[i]);
		step(call_create(AT_FDCWD, names[i]), "create %s", names[i]);
		step(call_chmod(AT_FDCWD, names[i]), "chmod %s", names[i]);
		step(call_truncate(AT_FDCWD, names[i]), "truncate %s", names[i]);
		step(call_mkdir(AT_FDCWD, names[i]), "mkdir %s", names[i]);
		step(call_unlink(AT_FDCWD, names[i]), "unlink %s", names[i]);
	}
}

/* Links in the middle, and a link that is exchanged for another. */
static void names_links(void)
{
	make_folder("a", 0755);
	make_folder("b", 0755);
	NEED(symlink("a", "now") == 0 && symlink("b", "next") == 0);
	step(call_create(AT_FDCWD, "now/one"), "create in now");
	step(syscall(SYS_renameat2, AT_FDCWD, "now", AT_FDCWD, "next", 2), "exchange");
	step(call_create(AT_FDCWD, "now/two"), "create in now");
	step(rename("next", "now"), "rename over");
	step(call_create(AT_FDCWD, "now/three"), "create in now");
	step(call_mkdir(AT_FDCWD, "now/../c"), "up from the link's folder");
	step(call_mkdir(AT_FDCWD, "now/../now/d"), "and down again");
	NEED(symlink("../b/./../a/deep", "a/to-deep") == 0);
	step(call_create(AT_FDCWD, "a/to-deep"), "create behind the link");
	step(call_exclusive(AT_FDCWD, "a/to-deep"), "exclusive on the link");
}

static void names_descriptors(void)
{
	static const char *const paths[] = {"new", "", "../up", NULL};
	int folder, file, path_only, ended;
	char absolute[PATH_MAX];

	make_folder("folder", 0755);
	make_folder("ended", 0755);
	make_file("file", 0644, "hello");
	folder = open("folder", O_RDONLY | O_DIRECTORY);
	path_only = open("folder", O_PATH);
	file = open("file", O_RDWR);
	ended = open("ended", O_RDONLY | O_DIRECTORY);
	NEED(rmdir("ended") == 0 && getcwd(absolute, sizeof(absolute) - 16));
	strcat(absolute, "/absolute");
	const struct {
		const char *name;
		int fd;
	} bases[] = {{"folder", folder}, {"path only", path_only}, {"file", file}, {"removed folder", ended},
		     {"-1", -1},         {"closed", 77},           {"-99", -99},   {"cwd", AT_FDCWD}};
	for (const struct named_call *one = all_calls; one->name; one++) {
		for (size_t i = 0; i < sizeof(bases) / sizeof(*bases); i++) {
			for (int j = 0; paths[j]; j++)
				step(one->run(bases[i].fd, paths[j]), "%s %s \"%s\"", one->name, bases[i].name,
				     paths[j]);
			step(one->run(bases[i].fd, absolute), "%s %s absolute", one->name, bases[i].name);
			step(one->run(bases[i].fd, NULL), "%s %s NULL", one->name, bases[i].name);
			/* the next call finds the same */
			syscall(SYS_unlinkat, AT_FDCWD, "out", 0);
			rmdir("out");
			syscall(SYS_renameat2, AT_FDCWD, "new", AT_FDCWD, "file", 1);
		}
	}
}

/* The working directory is deeper than any path can say. */
static void names_deep(void)
{
	char name[201];
	int top = open(".", O_RDONLY | O_DIRECTORY);

	memset(name, 'd', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	for (int i = 0; i < 23; i++)
		NEED(mkdir(name, 0755) == 0 && chdir(name) == 0);
	step(call_mkdir(AT_FDCWD, "folder"), "mkdir");
	step(call_create(AT_FDCWD, "file"), "create");
	step(call_create(AT_FDCWD, "folder/file"), "create below");
	step(rename("file", "other"), "rename");
	step(symlink("other", "link"), "symlink");
	step(link("other", "second"), "link");
	step(chmod("link", 0600), "chmod");
	step(setxattr("other", "user.name", "value", 5, 0), "setxattr");
	step(unlink("second"), "unlink");
	step(syscall(SYS_linkat, AT_FDCWD, "other", top, "at-the-top", 0), "link to the top");
	step(syscall(SYS_renameat2, top, "at-the-top", AT_FDCWD, "back", 0), "and back");
	facts_of("back");
	char *where = getcwd(NULL, 0);
	say("getcwd: %s", where ? "given" : name_of_error(errno));
}

static void names_no_folder(void)
{
	make_folder("gone", 0755);
	NEED(chdir("gone") == 0 && rmdir("../gone") == 0);
	step(call_mkdir(AT_FDCWD, "new"), "mkdir");
	step(call_create(AT_FDCWD, "new"), "create");
	step(call_symlink(AT_FDCWD, "new"), "symlink");
	step(call_unlink(AT_FDCWD, "new"), "unlink");
	step(call_chmod(AT_FDCWD, "."), "chmod .");
	step(call_times(AT_FDCWD, "."), "times .");
	step(call_create(AT_FDCWD, "../up"), "create above");
	step(call_rmdir(AT_FDCWD, "."), "rmdir .");
	step(call_rmdir(AT_FDCWD, "../absent"), "rmdir above");
	step(open(".", O_TMPFILE | O_RDWR, 0600), "without a name");
}

static const struct equal_case cases[] = {
    {"names_slashes", false, names_slashes},
    {"names_dots", false, names_dots},
    {"names_inside", false, names_inside},
    {"names_root", false, names_root},
    {"names_long", false, names_long},
    {"names_bad_pointers", false, names_bad_pointers},
    {"names_odd_bytes", false, names_odd_bytes},
    {"names_loops", false, names_loops},
    {"names_links", false, names_links},
    {"names_descriptors", false, names_descriptors},
    {"names_deep", false, names_deep},
    {"names_no_folder", false, names_no_folder},
    {NULL},
};

int main(int argc, char **argv)
{
	return equal_main(cases, argc, argv);
}
