/*
 * Names that are no regular files: links of /proc that lead to what is open, devices, pipes, sockets, and files of
 * /proc and cgroups, where it matters who opens and who writes.
 */
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/utsname.h>

#include "equal.h"

static const char *link_of(int fd)
{
	static char name[64];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return name;
}

/* All that can be done by name, through a link of /proc. */
static void by_link(const char *label, int fd)
{
	static const int flags[] = {O_WRONLY,
				    O_RDONLY,
				    O_RDWR | O_CREAT,
				    O_WRONLY | O_TRUNC,
				    O_RDWR | O_NOFOLLOW,
				    O_PATH,
				    O_WRONLY | O_CREAT | O_EXCL};
	static const struct timespec times[2] = {{1, 0}, {2, 0}};
	const char *name = link_of(fd);

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		int other =
		    (int)step(open(name, flags[i] | O_NONBLOCK, 0600), "%s: open %x", label, (unsigned)flags[i]);
		facts(other);
		if (other >= 0)
			close(other);
	}
	step(chmod(name, 0640), "%s: chmod", label);
	step(chown(name, getuid(), getgid()), "%s: chown", label);
	step(lchown(name, getuid(), getgid()), "%s: lchown", label);
	step(utimensat(AT_FDCWD, name, times, 0), "%s: times", label);
	step(truncate(name, 2), "%s: truncate", label);
	step(rename(name, "out"), "%s: rename", label);
	step(unlink(name), "%s: unlink", label);
	step(mkdir(name, 0755), "%s: mkdir", label);
	step(symlink("x", name), "%s: symlink", label);
	step(link(name, "second"), "%s: link", label);
	step(linkat(AT_FDCWD, name, AT_FDCWD, "linked", AT_SYMLINK_FOLLOW), "%s: link followed", label);
	facts(fd);
	unlink("linked");
	unlink("second");
}

static void special_links(void)
{
	int pair[2];

	make_file("file", 0600, "hello");
	make_file("gone", 0600, "hello");
	make_folder("folder", 0755);
	NEED(symlink("file", "link") == 0);
	by_link("writable", open("file", O_RDWR));
	by_link("readable", open("file", O_RDONLY));
	by_link("path", open("file", O_PATH));
	int gone = open("gone", O_RDWR);
	NEED(unlink("gone") == 0);
	by_link("unlinked", gone);
	by_link("nameless", open(".", O_TMPFILE | O_RDWR, 0600));
	by_link("folder", open("folder", O_RDONLY));
	by_link("symlink", open("link", O_PATH | O_NOFOLLOW));
	NEED(pipe(pair) == 0);
	by_link("pipe", pair[0]);
	by_link("socket", socket(AF_UNIX, SOCK_STREAM, 0));
	by_link("closed", 555);
}

static void special_through_links(void)
{
	char name[128];

	make_folder("folder", 0755);
	int folder = open("folder", O_RDONLY);
	snprintf(name, sizeof(name), "/proc/self/fd/%d/file", folder);
	STEP_CLOSE(open(name, O_WRONLY | O_CREAT, 0644), "below a folder's link");
	snprintf(name, sizeof(name), "/dev/fd/%d/other", folder);
	step(mkdir(name, 0755), "below a folder's link of dev");
	step(mkdir("/proc/self/cwd/by-cwd", 0755), "below cwd");
	step(mkdir("/proc/thread-self/cwd/by-thread", 0755), "below the thread's cwd");
	snprintf(name, sizeof(name), "/proc/%d/cwd/by-number", getpid());
	step(mkdir(name, 0755), "below the number's cwd");
	NEED(chdir("folder") == 0);
	step(mkdir("/proc/self/cwd/after", 0755), "below cwd after chdir");
	STEP_CLOSE(open("/proc/self/root/dev/null", O_WRONLY), "below root");
	step(symlink("/proc/self/cwd", "here") == 0 ? mkdir("here/x", 0755) : -1, "through a link to a link");
	step(open("/proc/self/exe", O_WRONLY), "our own program");
}

static void special_output(void)
{
	int fd = open("out", O_RDWR | O_CREAT, 0600);

	NEED(fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0);
	int again = (int)step(open("/dev/stdout", O_WRONLY), "stdout");
	NEED(write(again, "one ", 4) == 4);
	again = (int)step(open("/dev/fd/1", O_WRONLY | O_APPEND), "fd 1");
	NEED(write(again, "two ", 4) == 4);
	again = (int)step(open("/proc/self/fd/1", O_WRONLY | O_CREAT | O_APPEND, 0644), "self fd 1");
	NEED(write(again, "three", 5) == 5);
	facts(again);
	content_of("out");
	STEP_CLOSE(open("/dev/stdout", O_WRONLY | O_TRUNC), "truncated");
	content_of("out");
	STEP_CLOSE(open("/dev/stdin", O_WRONLY), "stdin");
	STEP_CLOSE(open("/dev/fd/333", O_WRONLY), "fd 333");
	/* what the runner gave us is a pipe: only by its link can it be had once more */
	NEED(dup2(EQUAL_OUT, 2) == 2);
	STEP_CLOSE(open("/dev/stderr", O_WRONLY), "stderr");
}

static void special_devices(void)
{
	static const char *const names[] = {"/dev/null", "/dev/zero", "/dev/full",   "/dev/urandom",
					    "/dev/tty",  "/dev/ptmx", "/dev/absent", NULL};

	for (int i = 0; names[i]; i++) {
		STEP_CLOSE(open(names[i], O_WRONLY), "%s", names[i]);
		/* an absent one would be made */
		if (strcmp(names[i], "/dev/absent") != 0)
			STEP_CLOSE(open(names[i], O_RDWR | O_CREAT | O_TRUNC, 0600), "%s create", names[i]);
		STEP_CLOSE(open(names[i], O_WRONLY | O_NONBLOCK | O_APPEND | O_NOCTTY), "%s flags", names[i]);
		STEP_CLOSE(open(names[i], O_WRONLY | O_DIRECT), "%s direct", names[i]);
		STEP_CLOSE(open(names[i], O_WRONLY | O_DIRECTORY), "%s directory", names[i]);
	}
	int fd = open("/dev/full", O_WRONLY);
	step(write(fd, "x", 1), "write to full");
	facts(fd);
}

static void special_terminal(void)
{
	char name[64];
	int main_end = (int)step(open("/dev/ptmx", O_RDWR | O_NOCTTY), "ptmx");

	if (main_end < 0 || ioctl(main_end, TIOCSPTLCK, &(int){0}) != 0 ||
	    ptsname_r(main_end, name, sizeof(name)) != 0) {
		skip("no terminal can be made: %s", name_of_error(errno));
		return;
	}
	step(open("/dev/tty", O_RDWR), "no terminal yet");
	pid_t pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		NEED(setsid() > 0);
		int fd = (int)step(open(name, O_RDWR | O_NOCTTY), "not ours");
		step(open("/dev/tty", O_RDWR), "still none");
		close(fd);
		step(open(name, O_WRONLY), "to write only");
		step(open("/dev/tty", O_RDWR), "after an open to write only");
		fd = (int)step(open(name, O_RDWR), "ours");
		facts(fd);
		step(open("/dev/tty", O_RDWR), "now it is there");
		_exit(0);
	}
	join_child("session", pid);
}

static void read_pipe(void)
{
	char text[64] = "";
	int fd = open("fifo", O_RDONLY);

	NEED(fd >= 0 && read(fd, text, sizeof(text) - 1) >= 0);
	say("reader got \"%s\"", text);
}

static void write_pipe(void)
{
	int fd = (int)step(open("fifo", O_WRONLY), "writer waits for the reader");

	facts(fd);
	NEED(write(fd, "late", 4) == 4);
}

static void special_pipes(void)
{
	NEED(mkfifo("fifo", 0600) == 0);
	step(open("fifo", O_WRONLY | O_NONBLOCK), "write, no reader");
	step(open("fifo", O_WRONLY | O_NONBLOCK | O_CREAT | O_TRUNC, 0600), "write and create, no reader");
	int both = (int)step(open("fifo", O_RDWR), "both");
	facts(both);
	int writer = (int)step(open("fifo", O_WRONLY | O_NONBLOCK), "write, with a reader");
	facts(writer);
	writer = (int)step(open("fifo", O_WRONLY | O_CREAT, 0600), "write, waiting, with a reader");
	facts(writer);
	syscall(SYS_close_range, 3, 100, 0);
	int reader = (int)step(open("fifo", O_RDONLY | O_NONBLOCK), "read, no writer");
	facts(reader);
	writer = (int)step(open("fifo", O_WRONLY), "write");
	NEED(write(writer, "text", 4) == 4);
	close(reader);
	signal(SIGPIPE, SIG_IGN);
	step(write(writer, "text", 4), "write, reader gone");
	close(writer);
	pid_t pid = start_child(read_pipe);
	await_sleep(pid);
	writer = (int)step(open("fifo", O_WRONLY), "the reader waits");
	NEED(write(writer, "hello", 5) == 5);
	close(writer);
	join_child("reader", pid);
	pid = start_child(write_pipe);
	await_sleep(pid);
	reader = open("fifo", O_RDONLY);
	join_child("writer", pid);
	char text[8] = "";
	step(read(reader, text, 4), "read %s", "what came");
	say("%s", text);
}

static void special_sockets(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	NEED(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	step(open("socket", O_RDWR), "open");
	step(open("socket", O_WRONLY | O_CREAT | O_TRUNC, 0600), "create");
	step(open("socket", O_RDONLY), "read");
	STEP_CLOSE(open("socket", O_PATH), "path");
	step(truncate("socket", 0), "truncate");
	step(chmod("socket", 0600), "chmod");
	step(link("socket", "second"), "link");
	facts_of("socket");
}

static void special_made_devices(void)
{
	NEED(mknod("null", S_IFCHR | 0600, makedev(1, 3)) == 0 && mknod("none", S_IFCHR | 0600, makedev(511, 7)) == 0);
	NEED(mknod("block", S_IFBLK | 0600, makedev(511, 7)) == 0);
	int fd = (int)step(open("null", O_WRONLY | O_CREAT | O_TRUNC, 0600), "null");
	facts(fd);
	step(open("none", O_RDWR), "no such character device");
	step(open("block", O_RDWR), "no such block device");
	step(truncate("null", 0), "truncate");
}

static void put(const char *name, const char *text)
{
	int fd = (int)step(open(name, O_WRONLY), "%s", name);

	if (fd < 0)
		return;
	step(write(fd, text, strlen(text)), "  write");
	close(fd);
}

/* Files of which each process has its own: another's would be written if another opened them. */
static void special_own_files(void)
{
	put("/proc/self/comm", "renamed");
	content_of("/proc/self/comm");
	put("/proc/thread-self/comm", "again");
	content_of("/proc/self/comm");
	put("/proc/self/oom_score_adj", "500");
	content_of("/proc/self/oom_score_adj");
	put("/proc/self/oom_score_adj", "-1000");
	put("/proc/self/setgroups", "deny");
	put("/proc/self/uid_map", "0 0 1");
	put("/proc/self/timerslack_ns", "60000");
	put("/proc/self/coredump_filter", "0x11");
	content_of("/proc/self/coredump_filter");
	put("/proc/self/clear_refs", "1");
	put("/proc/self/sched", "0");
	put("/proc/self/mem", "");
	put("/proc/self/attr/exec", "x");
	step(open("/proc/self/comm", O_WRONLY | O_CREAT | O_EXCL, 0600), "exclusive");
	STEP_CLOSE(open("/proc/self/comm", O_WRONLY | O_CREAT | O_TRUNC, 0600), "create");
	step(mkdir("/proc/self/new", 0755), "mkdir");
	step(unlink("/proc/self/comm"), "unlink");
	step(open("/proc/self/new", O_WRONLY | O_CREAT, 0600), "create new");
	step(chmod("/proc/self/comm", 0644), "chmod");
	step(rename("/proc/self/comm", "/proc/self/new"), "rename");
}

static void special_kernel_files(void)
{
	struct utsname names;

	if (unshare(CLONE_NEWUTS) != 0) {
		skip("no own host name: %s", name_of_error(errno));
		return;
	}
	put("/proc/sys/kernel/domainname", "equal.example");
	NEED(uname(&names) == 0);
	say("domain %s", names.domainname);
	content_of("/proc/sys/kernel/domainname");
	put("/proc/sys/kernel/ostype", "x");
	step(open("/proc/sys/kernel/new", O_WRONLY | O_CREAT, 0600), "create");
	step(chmod("/proc/sys/kernel/domainname", 0600), "chmod");
	if (unshare(CLONE_NEWNET) == 0) {
		put("/proc/sys/net/ipv4/ip_forward", "1");
		content_of("/proc/sys/net/ipv4/ip_forward");
	}
}

static void special_refused_kernel_files(void)
{
	if (getuid() == 0) {
		skip("root could change these for all");
		return;
	}
	put("/proc/sys/kernel/hostname", "x");
	put("/proc/sys/vm/overcommit_memory", "0");
	put("/proc/1/oom_score_adj", "0");
	put("/proc/sysrq-trigger", "h");
	put("/sys/power/state", "x");
}

static void special_cgroup(void)
{
	static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", NULL};
	char name[128], events[160];

	for (int i = 0; roots[i]; i++) {
		snprintf(name, sizeof(name), "%s/equality-%d", roots[i], getpid());
		snprintf(events, sizeof(events), "%s/cgroup.procs", name);
		if (mkdir(name, 0755) != 0)
			continue;
		if (access(events, W_OK) == 0) {
			int fd = (int)step(open(events, O_WRONLY), "procs");
			step(write(fd, "0", 1), "enter by 0");
			snprintf(events, sizeof(events), "%s/cgroup.procs", roots[i]);
			fd = open(events, O_WRONLY);
			step(write(fd, "0", 1), "leave by 0");
			step(rmdir(name), "remove");
			return;
		}
		rmdir(name);
	}
	skip("no cgroup can be made here");
}

static const struct equal_case cases[] = {
    {"special_links", false, special_links},
    {"special_through_links", false, special_through_links},
    {"special_output", false, special_output},
    {"special_devices", false, special_devices},
    {"special_terminal", false, special_terminal},
    {"special_pipes", false, special_pipes},
    {"special_sockets", false, special_sockets},
    {"special_made_devices", true, special_made_devices},
    {"special_own_files", false, special_own_files},
    {"special_kernel_files", true, special_kernel_files},
    {"special_refused_kernel_files", false, special_refused_kernel_files},
    {"special_cgroup", true, special_cgroup},
    {NULL},
};

int main(int argc, char **argv)
{
	return equal_main(cases, argc, argv);
}
