/*
 * What belongs to a thread and what to several: umask, working directory, descriptor table, credentials. The one who
 * makes the call decides, at the moment of the call.
 */
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>

#include "equal.h"

static void make_each(const char *label)
{
	char name[64];

	snprintf(name, sizeof(name), "%s-folder", label);
	step(mkdir(name, 0777), "%s", name);
	facts_of(name);
	snprintf(name, sizeof(name), "%s-file", label);
	STEP_CLOSE(open(name, O_WRONLY | O_CREAT, 06666), "%s", name);
	facts_of(name);
	snprintf(name, sizeof(name), "%s-fifo", label);
	step(mkfifo(name, 0666), "%s", name);
	facts_of(name);
	snprintf(name, sizeof(name), "%s-link", label);
	step(symlink("x", name), "%s", name);
	facts_of(name);
	int fd = (int)step(open(".", O_TMPFILE | O_RDWR, 0666), "%s without a name", label);
	facts(fd);
	NEED(close(fd) == 0);
}

static void shared_umask(void)
{
	static const mode_t masks[] = {0, 022, 027, 077, 0777, 0111};
	char label[32];

	for (size_t i = 0; i < sizeof(masks) / sizeof(*masks); i++) {
		say("umask was %o", umask(masks[i]));
		snprintf(label, sizeof(label), "masked-%03o", masks[i]);
		make_each(label);
	}
	/* changed between two calls, many times: no value that was read earlier may be used */
	for (int i = 0; i < 64; i++) {
		mode_t mask = (mode_t)(i * 37 % 512);
		umask(mask);
		snprintf(label, sizeof(label), "each-%02d", i);
		NEED(mkdir(label, 0777) == 0);
		facts_of(label);
		NEED(chmod(label, 0755) == 0);
	}
}

/* Threads that take turns: what one does is done when the other goes on. */
static pthread_barrier_t turn;

static void next_turn(void)
{
	pthread_barrier_wait(&turn);
}

static void with_thread(void *(*run)(void *), void (*other)(void))
{
	pthread_t thread;

	NEED(pthread_barrier_init(&turn, NULL, 2) == 0 && pthread_create(&thread, NULL, run, NULL) == 0);
	other();
	pthread_join(thread, NULL);
}

static void *set_mask(void *unused)
{
	(void)unused;
	next_turn();
	umask(077);
	next_turn();
	next_turn();
	NEED(chdir("deeper") == 0);
	next_turn();
	return NULL;
}

static void feel_mask(void)
{
	make_each("before");
	next_turn();
	next_turn();
	make_each("masked-by-other");
	NEED(mkdir("deeper", 0755) == 0);
	next_turn();
	next_turn();
	make_each("moved-by-other");
}

static void shared_by_threads(void)
{
	umask(0);
	with_thread(set_mask, feel_mask);
}

static void *own_place(void *unused)
{
	(void)unused;
	NEED(unshare(CLONE_FS) == 0);
	umask(077);
	NEED(chdir("deeper") == 0);
	next_turn();
	make_each("thread");
	next_turn();
	next_turn();
	step(rename("thread-file", "../from-thread"), "out of the own place");
	return NULL;
}

static void other_place(void)
{
	next_turn();
	next_turn();
	make_each("main");
	next_turn();
}

static void shared_place_of_thread(void)
{
	umask(0);
	NEED(mkdir("deeper", 0755) == 0);
	with_thread(own_place, other_place);
}

static void *own_root(void *unused)
{
	(void)unused;
	NEED(unshare(CLONE_FS) == 0 && chroot("cell") == 0 && chdir("/") == 0);
	next_turn();
	step(mkdir("/in-cell", 0755), "mkdir in the cell");
	STEP_CLOSE(open("/../../file", O_WRONLY | O_CREAT, 0600), "create above the cell");
	step(rename("/file", "/in-cell/file"), "rename in the cell");
	step(symlink("/in-cell/file", "/link"), "symlink in the cell");
	step(chmod("/link", 0640), "chmod through an absolute link");
	next_turn();
	return NULL;
}

static void outside(void)
{
	next_turn();
	next_turn();
	facts_of("cell/in-cell/file");
	step(chmod("cell/link", 0600), "the link leads elsewhere here");
}

static void shared_root_of_thread(void)
{
	make_folder("cell", 0755);
	with_thread(own_root, outside);
}

static void *own_table(void *unused)
{
	(void)unused;
	NEED(unshare(CLONE_FILES) == 0);
	NEED(close(40) == 0);
	next_turn();
	for (int i = 0; i < 5; i++)
		NEED(close((int)step(open("/dev/null", O_RDONLY), "thread reads")) == 0);
	int fd = (int)step(open("thread", O_WRONLY | O_CREAT, 0644), "thread opens");
	NEED(write(fd, "thread", 6) == 6);
	step(openat(41, "by-thread", O_WRONLY | O_CREAT, 0644), "thread's own folder");
	next_turn();
	next_turn();
	facts(fd);
	say("thread's 40: %s", fcntl(40, F_GETFD) < 0 ? name_of_error(errno) : "open");
	return NULL;
}

static void other_table(void)
{
	next_turn();
	next_turn();
	NEED(dup2(1, 3) == 3);
	int fd = (int)step(open("main", O_WRONLY | O_CREAT, 0644), "main opens");
	NEED(write(fd, "main", 4) == 4);
	step(close(41), "main closes its folder");
	step(openat(41, "by-main", O_WRONLY | O_CREAT, 0644), "main's folder");
	next_turn();
}

static void shared_table_of_thread(void)
{
	make_folder("folder", 0755);
	NEED(dup2(1, 40) == 40);
	NEED(dup2(open("folder", O_RDONLY | O_DIRECTORY), 41) == 41 && close(3) == 0);
	with_thread(own_table, other_table);
}

/* Two processes that share one descriptor table or one place, as vfork's cousins do. */
static char child_stack[65536] __attribute__((aligned(16)));

static int sharer(void *unused)
{
	(void)unused;
	umask(0);
	if (chdir("deeper") != 0)
		return 1;
	int fd = open("by-child", O_RDWR | O_CREAT, 0666);
	return fd < 0 || write(fd, "text", 4) != 4 ? 2 : 0;
}

static void share(const char *label, int flags)
{
	char name[64];

	umask(022);
	pid_t pid = clone(sharer, child_stack + sizeof(child_stack), flags | SIGCHLD, NULL);
	NEED(pid > 0);
	join_child(label, pid);
	snprintf(name, sizeof(name), "after-%s", label);
	int fd = (int)step(open(name, O_WRONLY | O_CREAT, 0666), "%s", name);
	facts(fd);
	NEED(fchdir(50) == 0);
}

static void shared_by_clone(void)
{
	make_folder("deeper", 0755);
	NEED(dup2(open(".", O_RDONLY), 50) == 50);
	share("nothing", 0);
	share("place", CLONE_FS);
	share("table", CLONE_FILES);
	share("both", CLONE_FS | CLONE_FILES);
	share("memory", CLONE_VM);
}

static void *other_ids(void *unused)
{
	(void)unused;
	/* raw: the C library would change every thread */
	NEED(syscall(SYS_setresgid, NOBODY, NOBODY, NOBODY) == 0);
	NEED(syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY) == 0);
	next_turn();
	make_each("nobody");
	STEP_CLOSE(open("secret", O_RDWR), "nobody opens the secret");
	step(unlink("sticky/root"), "nobody unlinks root's");
	next_turn();
	return NULL;
}

static void same_ids(void)
{
	next_turn();
	next_turn();
	make_each("root");
	STEP_CLOSE(open("secret", O_RDWR), "root opens the secret");
	step(unlink("sticky/root"), "root unlinks its own");
}

static void shared_ids_of_thread(void)
{
	make_file("secret", 0600, "text");
	make_folder("sticky", 01777);
	make_file("sticky/root", 0666, "");
	NEED(chmod(".", 0777) == 0);
	with_thread(other_ids, same_ids);
}

static void *fs_ids(void *unused)
{
	(void)unused;
	syscall(SYS_setfsgid, STRANGER);
	syscall(SYS_setfsuid, STRANGER);
	next_turn();
	make_each("stranger");
	STEP_CLOSE(open("secret", O_RDWR), "stranger opens the secret");
	syscall(SYS_setfsuid, 0);
	make_each("back");
	next_turn();
	return NULL;
}

static void still_root(void)
{
	next_turn();
	next_turn();
	make_each("main");
}

static void shared_fs_ids_of_thread(void)
{
	make_file("secret", 0600, "text");
	NEED(chmod(".", 0777) == 0);
	with_thread(fs_ids, still_root);
}

enum { WRITERS = 20, FILES_EACH = 12 };

static void *create_many(void *number)
{
	char name[64];

	for (int i = 0; i < FILES_EACH; i++) {
		snprintf(name, sizeof(name), "t%02d-%02d", (int)(intptr_t)number, i);
		int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		NEED(fd >= 0 && write(fd, name, strlen(name)) == (ssize_t)strlen(name) && close(fd) == 0);
		if (i % 3 == 0)
			NEED(chmod(name, 0600) == 0);
		if (i % 5 == 0)
			NEED(unlink(name) == 0);
	}
	return NULL;
}

static void shared_by_twenty(void)
{
	pthread_t threads[WRITERS];

	for (int i = 0; i < WRITERS; i++)
		NEED(pthread_create(&threads[i], NULL, create_many, (void *)(intptr_t)i) == 0);
	for (int i = 0; i < WRITERS; i++)
		NEED(pthread_join(threads[i], NULL) == 0);
}

static void *race_for_names(void *won)
{
	char name[32];

	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "race-%03d", i);
		int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (fd >= 0)
			__atomic_add_fetch((int *)won, 1, __ATOMIC_RELAXED);
		else
			NEED(errno == EEXIST);
		if (fd >= 0)
			close(fd);
		if (mkdir("only-one", 0755) == 0)
			__atomic_add_fetch((int *)won, 1000, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* However many ask at once, one of them gets the name. */
static void shared_exclusive(void)
{
	pthread_t threads[4];
	int won = 0;

	for (int i = 0; i < 4; i++)
		NEED(pthread_create(&threads[i], NULL, race_for_names, &won) == 0);
	for (int i = 0; i < 4; i++)
		NEED(pthread_join(threads[i], NULL) == 0);
	say("won: %d", won);
}

static char flipped_path[8] __attribute__((aligned(8))) = "aaaa";
static volatile bool flipping = true;

static void *flip(void *unused)
{
	(void)unused;
	for (unsigned i = 0; flipping; i++)
		__atomic_store_n((uint32_t *)(void *)flipped_path, i % 2 ? 0x62626262 : 0x61616161, __ATOMIC_RELAXED);
	return NULL;
}

/* While a path changes under the call, the call means one of the two and never a third. */
static void shared_path_flips(void)
{
	pthread_t thread;
	int made = 0, unlinked = 0;

	NEED(pthread_create(&thread, NULL, flip, NULL) == 0);
	for (int i = 0; i < 100; i++) {
		made += mkdir(flipped_path, 0755) == 0;
		unlinked += rmdir(flipped_path) == 0;
	}
	flipping = false;
	NEED(pthread_join(thread, NULL) == 0);
	int left = (rmdir("aaaa") == 0) + (rmdir("bbbb") == 0);
	say("some: %d, as many as there must be: %d", made > 0, made - unlinked == left);
}

static void send_descriptor(int channel, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr header;
	} control = {0};
	struct iovec part = {&(char){'x'}, 1};
	struct msghdr message = {
	    .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};

	control.header = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	step(sendmsg(channel, &message, 0), "send");
}

static void shared_by_message(void)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr header;
	} control;
	char byte;
	struct iovec part = {&byte, 1};
	struct msghdr message = {
	    .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	int pair[2], fd;

	NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	pid_t pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		fd = (int)step(open("passed", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0640), "open");
		NEED(write(fd, "by the child ", 13) == 13);
		send_descriptor(pair[1], fd);
		_exit(0);
	}
	join_child("sender", pid);
	step(recvmsg(pair[0], &message, 0), "receive");
	memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
	say("received %d", fd);
	NEED(write(fd, "by the parent", 13) == 13);
	facts(fd);
	content_of("passed");
}

static const struct equal_case cases[] = {
    {"shared_umask", false, shared_umask},
    {"shared_by_threads", false, shared_by_threads},
    {"shared_place_of_thread", false, shared_place_of_thread},
    {"shared_root_of_thread", true, shared_root_of_thread},
    {"shared_table_of_thread", false, shared_table_of_thread},
    {"shared_by_clone", false, shared_by_clone},
    {"shared_ids_of_thread", true, shared_ids_of_thread},
    {"shared_fs_ids_of_thread", true, shared_fs_ids_of_thread},
    {"shared_by_twenty", false, shared_by_twenty},
    {"shared_exclusive", false, shared_exclusive},
    {"shared_path_flips", false, shared_path_flips},
    {"shared_by_message", false, shared_by_message},
    {NULL},
};

int main(int argc, char **argv)
{
	return equal_main(cases, argc, argv);
}
