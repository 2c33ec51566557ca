/*
 * The times of a descriptor's file: utimensat(2) and futimesat(2) without a name.
 */
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "equal.h"

static const struct timespec both[2] = {{1000, 1}, {2000, 999999999}};
static const struct timespec first[2] = {{3000, 3}, {0, UTIME_OMIT}};
static const struct timespec second[2] = {{0, UTIME_OMIT}, {4000, 4}};
static const struct timespec none[2] = {{5, UTIME_OMIT}, {5, UTIME_OMIT}};
static const struct timespec now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
static const struct timespec now_and_none[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
static const struct timespec now_and_one[2] = {{0, UTIME_NOW}, {6000, 6}};
static const struct timespec bad[2] = {{0, 1000000000}, {0, 0}};
static const struct timespec before[2] = {{-1, 5}, {-100000, 6}};

static const struct {
	const char *name;
	const struct timespec *times;
} every[] = {
    {"both", both},
    {"the first", first},
    {"the second", second},
    {"none", none},
    {"both now", now},
    {"one now, none", now_and_none},
    {"one now, one given", now_and_one},
    {"no times", NULL},
    {"out of range", bad},
    {"before the epoch", before},
    {"bad address", (const struct timespec *)8},
};

/* What is now differs from run to run. */
static void say_time(const char *what, const struct timespec *moment)
{
	if (labs(moment->tv_sec - time(NULL)) < 600)
		say("  %s: now", what);
	else
		say("  %s: %ld.%09ld", what, moment->tv_sec, moment->tv_nsec);
}

static void say_times(int fd)
{
	struct stat status;

	if (fstat(fd, &status) != 0)
		return;
	say_time("access", &status.st_atim);
	say_time("change", &status.st_mtim);
	say("  the inode changed just now: %d", labs(status.st_ctim.tv_sec - time(NULL)) < 600);
}

static void set_all(int fd)
{
	for (size_t i = 0; i < sizeof(every) / sizeof(every[0]); i++) {
		step(syscall(SYS_utimensat, fd, NULL, every[i].times, 0), "%s", every[i].name);
		say_times(fd);
	}
}

static void times_kinds(void)
{
	int pipes[2], pair[2];

	make_file("file", 0444, "text");
	make_folder("folder", 0555);
	NEED(mkfifo("fifo", 0400) == 0 && symlink("file", "link") == 0);
	NEED(pipe(pipes) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	say("file that is read only, by its owner:");
	set_all(open("file", O_RDONLY));
	say("folder:");
	set_all(open("folder", O_RDONLY));
	say("fifo:");
	set_all(open("fifo", O_RDONLY | O_NONBLOCK));
	say("pipe:");
	set_all(pipes[0]);
	say("socket:");
	set_all(pair[0]);
	say("memory:");
	set_all(memfd_create("memory", 0));
	say("O_PATH:");
	set_all(open("file", O_PATH));
	say("link:");
	set_all(open("link", O_PATH | O_NOFOLLOW));
	say("proc:");
	step(syscall(SYS_utimensat, open("/proc/self/comm", O_RDONLY), NULL, both, 0), "proc");
	say("closed:");
	set_all(555);
	say("working directory:");
	set_all(AT_FDCWD);
}

static void times_gone(void)
{
	make_file("file", 0644, "text");
	int fd = open("file", O_WRONLY), reader = open("file", O_RDONLY);

	NEED(unlink("file") == 0);
	step(syscall(SYS_utimensat, fd, NULL, both, 0), "without a name");
	say_times(reader);
	/* Another one has its name now. */
	make_file("file", 0644, "other");
	step(syscall(SYS_utimensat, reader, NULL, first, 0), "its name is another's");
	say_times(fd);
	int other = open("file", O_RDONLY);
	say_times(other);
}

static void times_flags(void)
{
	static const int flags[] = {AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, 1, -1};

	make_file("file", 0644, "text");
	int fd = open("file", O_RDWR);
	step(syscall(SYS_utimensat, fd, NULL, both, 0), "none");
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		step(syscall(SYS_utimensat, fd, NULL, before, flags[i]), "flags %#x", (unsigned)flags[i]);
		step(syscall(SYS_utimensat, fd, NULL, none, flags[i]), "flags %#x, no times", (unsigned)flags[i]);
		step(syscall(SYS_utimensat, 555, NULL, before, flags[i]), "flags %#x, closed", (unsigned)flags[i]);
		say_times(fd);
	}
}

static void times_old(void)
{
#ifdef SYS_futimesat
	static const struct timeval fine[2] = {{13, 14}, {15, 16}}, wrong[2] = {{0, 1000000}, {0, 0}};
	static const struct timeval negative[2] = {{1, -1}, {0, 0}};

	make_file("file", 0444, "text");
	int fds[] = {open("file", O_RDONLY), open("file", O_PATH), 555, AT_FDCWD};
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		step(syscall(SYS_futimesat, fds[i], NULL, fine), "given");
		say_times(fds[0]);
		step(syscall(SYS_futimesat, fds[i], NULL, wrong), "out of range");
		step(syscall(SYS_futimesat, fds[i], NULL, negative), "negative");
		step(syscall(SYS_futimesat, fds[i], NULL, 8), "bad address");
		step(syscall(SYS_futimesat, fds[i], NULL, NULL), "now");
		say_times(fds[0]);
	}
#else
	skip("this architecture has no futimesat");
#endif
}

/* A file of root's, which the caller may write and does not own: the present is all that it may set. */
static void as_nobody(void)
{
	static const char *const names[] = {"writable", "readable"};

	int opened[2] = {open("root's", O_RDONLY), open("root's", O_RDWR)};
	NEED(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
	for (size_t i = 0; i < 2; i++) {
		say("%s:", names[i]);
		set_all(open(names[i], i == 0 ? O_WRONLY : O_RDONLY));
	}
	/* It is not the descriptor that gives the right. */
	say("opened by root:");
	set_all(opened[0]);
	set_all(opened[1]);
}

static void times_nobody(void)
{
	make_file("writable", 0622, "text");
	make_file("readable", 0644, "text");
	make_file("root's", 0600, "text");
	in_child("nobody", as_nobody);
}

static void times_stranger(void)
{
	int fd = open("/etc/passwd", O_RDONLY);

	if (geteuid() == 0) {
		skip("it is root's, and so are we");
		return;
	}
	step(syscall(SYS_utimensat, fd, NULL, both, 0), "what is root's");
	step(syscall(SYS_utimensat, fd, NULL, NULL, 0), "now");
	step(syscall(SYS_utimensat, fd, NULL, now, 0), "both now");
	step(syscall(SYS_utimensat, fd, NULL, none, 0), "none");
}

/* Whoever watches the file is told once for each. */
static void times_watched(void)
{
	_Alignas(struct inotify_event) char events[4096];

	make_file("file", 0644, "text");
	int fd = open("file", O_RDONLY), watch = inotify_init1(IN_NONBLOCK);
	NEED(inotify_add_watch(watch, "file", IN_ALL_EVENTS) > 0 && inotify_add_watch(watch, ".", IN_ALL_EVENTS) > 0);
	for (size_t i = 0; i < sizeof(every) / sizeof(every[0]); i++) {
		step(syscall(SYS_utimensat, fd, NULL, every[i].times, 0), "%s", every[i].name);
		ssize_t size = read(watch, events, sizeof(events));
		for (ssize_t at = 0; at < size;) {
			const struct inotify_event *event = (const struct inotify_event *)(events + at);
			say("  event %#x of %d", event->mask, event->wd);
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	}
}

static const struct equal_case cases[] = {
    {"times_kinds", false, times_kinds},     {"times_gone", false, times_gone},
    {"times_flags", false, times_flags},     {"times_old", false, times_old},
    {"times_nobody", true, times_nobody},    {"times_stranger", false, times_stranger},
    {"times_watched", false, times_watched}, {NULL},
};

int main(int argc, char **argv)
{
	return equal_main(cases, argc, argv);
}
