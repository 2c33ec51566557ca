/*
 * The descriptor that an open gives: its number, its limits, what is kept across exec, locks and leases taken with it,
 * and what /proc says of it.
 */
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "equal.h"

static void descriptors_lowest(void)
{
	int fds[8];

	close(0);
	step(open("a", O_WRONLY | O_CREAT, 0644), "in place of 0");
	close(2);
	step(open("b", O_WRONLY | O_CREAT | O_EXCL, 0644), "in place of 2");
	for (int i = 0; i < 8; i++)
		fds[i] = (int)step(open("a", O_RDWR), "next");
	close(fds[5]);
	close(fds[2]);
	step(open("c", O_WRONLY | O_CREAT, 0644), "the lower hole");
	step(open("d", O_WRONLY | O_CREAT | O_CLOEXEC, 0644), "the upper hole");
	NEED(dup2(fds[0], 200) == 200);
	step(open("e", O_WRONLY | O_CREAT, 0644), "behind all");
	step(open("absent/f", O_WRONLY | O_CREAT, 0644), "failed");
	step(open("g", O_WRONLY | O_CREAT, 0644), "after the failure");
	step(syscall(SYS_close_range, 3, 150, 0), "close all");
	step(open("h", O_RDWR | O_CREAT, 0644), "first again");
}

static void set_limit(int resource, rlim_t value)
{
	struct rlimit limit = {value, RLIM_INFINITY};

	NEED(getrlimit(resource, &limit) == 0);
	limit.rlim_cur = value;
	NEED(setrlimit(resource, &limit) == 0);
}

static void descriptors_limit(void)
{
	make_file("file", 0644, "hello");
	set_limit(RLIMIT_NOFILE, 5);
	step(open("a", O_WRONLY | O_CREAT, 0644), "third");
	step(open("b", O_WRONLY | O_CREAT, 0644), "fourth");
	step(open("c", O_WRONLY | O_CREAT, 0644), "create beyond");
	step(open("c", O_WRONLY | O_CREAT | O_EXCL, 0644), "exclusive beyond");
	step(open("file", O_WRONLY | O_TRUNC), "truncate beyond");
	step(open("file", O_WRONLY), "nothing to make beyond");
	step(open("file", O_RDWR | O_CREAT, 0644), "made already beyond");
	step(open("absent", O_WRONLY), "absent beyond");
	step(open("file/x", O_WRONLY), "no folder beyond");
	step(open(".", O_WRONLY), "folder beyond");
	step(open(".", O_TMPFILE | O_RDWR, 0644), "no name beyond");
	step(open("absent/x", O_WRONLY | O_CREAT, 0644), "in absent beyond");
	step(open("", O_WRONLY | O_CREAT, 0644), "empty beyond");
	step(syscall(SYS_openat, AT_FDCWD, 8, O_WRONLY | O_CREAT, 0644), "nowhere beyond");
	step(open("file", O_PATH), "O_PATH beyond");
	step(socket(AF_UNIX, SOCK_STREAM, 0), "socket beyond");
	step(mkdir("folder", 0755), "mkdir needs none");
	step(rename("a", "moved"), "rename needs none");
	step(truncate("file", 2), "truncate needs none");
	facts_of("c");
	close(3);
	step(open("c", O_WRONLY | O_CREAT, 0644), "there is room");
	set_limit(RLIMIT_NOFILE, 0);
	step(open("d", O_WRONLY | O_CREAT, 0644), "limit 0");
	step(mkdir("other", 0755), "mkdir needs none");
	set_limit(RLIMIT_NOFILE, 1000);
	content_of("file");
}

static void over_limit(void)
{
	set_limit(RLIMIT_FSIZE, 100);
	step(ftruncate(open("file", O_RDWR), 101), "not reached");
}

static void over_limit_by_name(void)
{
	set_limit(RLIMIT_FSIZE, 100);
	step(truncate("file", 101), "not reached");
}

static void write_over_limit(void)
{
	set_limit(RLIMIT_FSIZE, 3);
	int fd = (int)step(open("small", O_WRONLY | O_CREAT, 0644), "open");
	step(write(fd, "hello", 5), "write as much as fits");
	step(write(fd, "hello", 5), "not reached");
}

static void descriptors_file_size(void)
{
	make_file("file", 0644, "hello");
	in_child("ftruncate", over_limit);
	in_child("truncate", over_limit_by_name);
	in_child("write", write_over_limit);
	signal(SIGXFSZ, SIG_IGN);
	set_limit(RLIMIT_FSIZE, 100);
	step(truncate("file", 100), "up to the limit");
	step(truncate("file", 101), "beyond");
	step(ftruncate(open("file", O_RDWR), 101), "beyond by descriptor");
	step(mkdir("folder", 0755), "mkdir");
	step(symlink("a text that is as long as the limit for all files and then some more, and yet it is not content",
		     "link"),
	     "symlink");
	set_limit(RLIMIT_FSIZE, 0);
	STEP_CLOSE(open("empty", O_WRONLY | O_CREAT, 0644), "create with limit 0");
	STEP_CLOSE(open("file", O_WRONLY | O_TRUNC), "truncate to 0");
}

static void descriptors_at_exec(void)
{
	static const char script[] = "for i in 3 4 5 6 7; do if [ -e /proc/self/fd/$i ]; then echo $i open >&900; "
				     "else echo $i closed >&900; fi; done; echo written >&5";

	step(open("a", O_RDONLY | O_CREAT, 0644), "kept");
	step(open("b", O_WRONLY | O_CREAT | O_CLOEXEC, 0644), "closed at exec");
	step(open("c", O_RDWR | O_CREAT | O_TRUNC, 0644), "kept, writable");
	step(open("d", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644), "closed, exclusive");
	step(open(".", O_RDWR | O_TMPFILE, 0644), "kept, without a name");
	for (int fd = 3; fd < 8; fd++)
		say("%d: %d", fd, fcntl(fd, F_GETFD));
	pid_t pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		execl("/bin/bash", "bash", "-c", script, NULL);
		_exit(EQUAL_BROKEN);
	}
	join_child("shell", pid);
	content_of("c");
}

static void say_link(int fd, const char *what)
{
	char name[64], to[PATH_MAX];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	ssize_t size = readlink(name, to, sizeof(to) - 1);
	NEED(size > 0);
	to[size] = 0;
	/* the number of a file without a name is its own */
	char *mark = strchr(to, '#');
	if (mark)
		strcpy(mark, "#");
	char *slash = strrchr(to, '/');
	say("%s: %s", what, slash ? slash : to);
}

static void say_info(int fd)
{
	char name[64], text[1024];

	snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", fd);
	int info = open(name, O_RDONLY);
	NEED(info >= 0);
	ssize_t size = read(info, text, sizeof(text) - 1);
	NEED(size > 0 && close(info) == 0);
	text[size] = 0;
	/* mount and inode numbers differ between runs */
	for (char *rest, *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (strncmp(line, "ino:", 4) != 0 && strncmp(line, "mnt_id:", 7) != 0)
			say("  fdinfo %s", line);
	}
}

static void descriptors_in_proc(void)
{
	make_folder("folder", 0755);
	int fd = (int)step(open("folder/../name", O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK, 0644), "open");
	say_link(fd, "as opened");
	say_info(fd);
	NEED(rename("name", "folder/renamed") == 0);
	say_link(fd, "renamed");
	NEED(unlink("folder/renamed") == 0);
	say_link(fd, "unlinked");
	NEED(symlink("target", "link") == 0);
	fd = (int)step(open("link", O_WRONLY | O_CREAT | O_CLOEXEC, 0644), "through a link");
	say_link(fd, "target");
	say_info(fd);
	fd = (int)step(open(".", O_TMPFILE | O_RDWR, 0644), "without a name");
	say_link(fd, "nameless");
	say_info(fd);
	fd = (int)step(open("/dev/null", O_WRONLY), "device");
	say_link(fd, "device");
	say_info(fd);
	NEED(mkfifo("fifo", 0600) == 0);
	fd = (int)step(open("fifo", O_RDWR | O_NONBLOCK), "fifo");
	say_info(fd);
	say_link(open("folder", O_PATH), "path");
}

static void try_lock(void)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = open("file", O_RDWR);

	step(fcntl(fd, F_SETLK, &lock), "child: POSIX");
	lock.l_type = F_WRLCK;
	lock.l_pid = 0;
	if (step(fcntl(fd, F_GETLK, &lock), "child: who") == 0)
		say("  type %d by the parent: %d, by nobody in particular: %d", lock.l_type, lock.l_pid == getppid(),
		    lock.l_pid == -1);
	lock = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
	step(fcntl(fd, F_OFD_SETLK, &lock), "child: OFD");
	step(flock(fd, LOCK_EX | LOCK_NB), "child: flock");
}

static void descriptors_locks(void)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = (int)step(open("file", O_RDWR | O_CREAT, 0644), "open");

	step(fcntl(fd, F_SETLK, &lock), "POSIX");
	in_child("with a POSIX lock", try_lock);
	int other = (int)step(open("file", O_RDWR), "open again");
	step(close(other), "closing the other releases it");
	in_child("after the close", try_lock);
	step(fcntl(fd, F_OFD_SETLK, &lock), "OFD");
	in_child("with an OFD lock", try_lock);
	close(open("file", O_RDWR));
	in_child("and after another's close", try_lock);
	close(fd);
	fd = (int)step(open("file", O_WRONLY | O_TRUNC), "open to write");
	step(flock(fd, LOCK_EX), "flock");
	in_child("with flock", try_lock);
	close(fd);
	in_child("with nothing", try_lock);
}

static volatile sig_atomic_t broken_leases;

static void count_lease(int number)
{
	(void)number;
	broken_leases++;
}

static void open_leased(void)
{
	step(open("file", O_WRONLY | O_NONBLOCK), "write, not waiting");
	step(open("file", O_RDONLY | O_NONBLOCK), "read, not waiting");
	step(open("file", O_WRONLY | O_TRUNC), "write, waiting");
	step(truncate("file", 1), "truncate");
}

static void descriptors_lease(void)
{
	struct sigaction action = {.sa_handler = count_lease, .sa_flags = SA_RESTART};

	make_file("file", 0644, "hello");
	sigaction(SIGIO, &action, NULL);
	int fd = (int)step(open("file", O_RDONLY), "open");
	if (step(fcntl(fd, F_SETLEASE, F_RDLCK), "lease") != 0)
		return;
	say("%d", fcntl(fd, F_GETLEASE));
	step(open("file", O_WRONLY | O_NONBLOCK), "write by the holder, not waiting");
	step(fcntl(fd, F_SETLEASE, F_UNLCK), "released");
	step(fcntl(fd, F_SETLEASE, F_RDLCK), "lease again");
	broken_leases = 0;
	pid_t pid = start_child(open_leased);
	while (broken_leases == 0)
		pause_ms(2);
	/* the first wakes us and gives up; the one that waits goes on when we release */
	await_sleep(pid);
	NEED(fcntl(fd, F_SETLEASE, F_UNLCK) == 0);
	join_child("opener", pid);
	say("the lease was broken: %d", broken_leases > 0);
	content_of("file");
	fd = (int)step(open("mine", O_WRONLY | O_CREAT, 0644), "open to write");
	step(fcntl(fd, F_SETLEASE, F_WRLCK), "write lease");
	step(fcntl(fd, F_SETLEASE, F_UNLCK), "released");
	int other = (int)step(open("mine", O_RDONLY), "open to read");
	step(fcntl(fd, F_SETLEASE, F_WRLCK), "write lease beside a reader");
	step(fcntl(other, F_SETLEASE, F_RDLCK), "read lease beside a writer");
	/* whoever keeps one more descriptor of the file open stands in a lease's way */
	close(other);
	close(fd);
	other = (int)step(open("mine", O_RDONLY), "open to read, alone");
	step(fcntl(other, F_SETLEASE, F_RDLCK), "read lease, alone");
}

static void descriptors_mapped(void)
{
	make_file("file", 0644, "hello, this is mapped");
	int fd = (int)step(open("file", O_RDWR), "open");
	char *bytes = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	NEED(bytes != MAP_FAILED);
	memcpy(bytes, "HELLO", 5);
	close(fd);
	content_of("file");
	fd = (int)step(open("file", O_WRONLY), "open to write only");
	bytes = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	say("mapped: %s", bytes == MAP_FAILED ? name_of_error(errno) : "yes");
	fd = (int)step(open("new", O_RDWR | O_CREAT | O_EXCL, 0600), "open new");
	step(ftruncate(fd, 10), "ftruncate");
	bytes = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(bytes != MAP_FAILED);
	memcpy(bytes, "0123456789abc", 13);
	NEED(munmap(bytes, 4096) == 0);
	content_of("new");
}

static void descriptors_signalled(void)
{
	int fd = (int)step(open("file", O_RDWR | O_CREAT | O_ASYNC, 0644), "open");

	say("owner is nobody: %d", fcntl(fd, F_GETOWN) == 0);
	say("signal: %d", fcntl(fd, F_GETSIG));
	step(fcntl(fd, F_SETFL, O_APPEND | O_NONBLOCK), "setfl");
	facts(fd);
	step(fcntl(fd, F_SETOWN, getpid()), "setown");
	say("owner are we: %d", fcntl(fd, F_GETOWN) == getpid());
	fd = (int)step(open("file", O_RDWR | O_NOATIME), "noatime");
	facts(fd);
	step(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), "advice");
	step(fcntl(fd, F_GET_SEALS), "seals");
}

static const struct equal_case cases[] = {
    {"descriptors_lowest", false, descriptors_lowest},       {"descriptors_limit", false, descriptors_limit},
    {"descriptors_file_size", false, descriptors_file_size}, {"descriptors_at_exec", false, descriptors_at_exec},
    {"descriptors_in_proc", false, descriptors_in_proc},     {"descriptors_locks", false, descriptors_locks},
    {"descriptors_lease", false, descriptors_lease},         {"descriptors_mapped", false, descriptors_mapped},
    {"descriptors_signalled", false, descriptors_signalled}, {NULL},
};

int main(int argc, char **argv)
{
	return equal_main(cases, argc, argv);
}
