/*
 * race_fuse fuse ROUNDS AT_ONCE DELAY_MS: calls whose path leads through a symbolic link in a file system that a
 * process of the tree serves. It answers DELAY_MS after it was asked, each time anew with one of two folders.
 */
#include "race_stall.h"

#include <poll.h>
#include <sys/mount.h>

#include "../fuse.h"

enum { REQUEST_SIZE = 1 << 17, FIRST_NODE = 2 };

/* Nothing is valid for longer than the call that asked for it, so every walk asks again. */
static void answer_lookup(const struct fuse_in_header *request)
{
	const char *name = (const char *)(request + 1);
	struct fuse_entry_out entry = {.nodeid = FIRST_NODE + strtoull(name + 1, NULL, 10)};

	entry.attr = fuse_attributes(entry.nodeid, S_IFLNK | 0777);
	if (*name == 's')
		fuse_answer(request->unique, 0, &entry, sizeof(entry));
	else
		fuse_answer(request->unique, ENOENT, NULL, 0);
}

static void handle(const struct fuse_in_header *request, struct stall_queue *queue)
{
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
				     .minor = 31,
				     .max_write = FUSE_ANSWER_SIZE,
				     .max_background = STALL_MOST,
				     .flags = FUSE_PARALLEL_DIROPS};
	struct fuse_attr_out attr = {.attr = fuse_attributes(request->nodeid, S_IFLNK | 0777)};
	struct fuse_open_out opened = {0};

	switch (request->opcode) {
	case FUSE_INIT:
		fuse_answer(request->unique, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		answer_lookup(request);
		break;
	case FUSE_READLINK:
		stall_later(queue, request->unique);
		break;
	case FUSE_GETATTR:
		fuse_answer(request->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPENDIR:
		fuse_answer(request->unique, 0, &opened, sizeof(opened));
		break;
	case FUSE_RELEASEDIR:
	case FUSE_FLUSH:
		fuse_answer(request->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		fuse_answer(request->unique, ENOSYS, NULL, 0);
	}
}

static void serve(pid_t parent)
{
	/* Aligned, because its begin is read as a struct. */
	static uint64_t request[REQUEST_SIZE / sizeof(uint64_t)];
	static struct stall_queue queue;
	struct pollfd ready = {.fd = fuse_device, .events = POLLIN};
	uint64_t state = 1, unique;

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	while (getppid() == parent) {
		if (poll(&ready, 1, stall_timeout(&queue)) > 0) {
			if (read(fuse_device, request, sizeof(request)) >= 0)
				handle((const void *)request, &queue);
			else if (errno != EINTR && errno != ENOENT && errno != EAGAIN)
				break; /* unmounted */
		}
		while (stall_next(&queue, &unique))
			fuse_answer(unique, 0, race_random(&state) & 1 ? "../a" : "../b", strlen("../a"));
	}
	_exit(0);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		race_skip(path);
	close(fd);
}

/* Who is not root may mount where they are root: in namespaces of their own. */
static void own_namespaces(void)
{
	char text[STALL_NAME];
	unsigned user = geteuid(), group = getegid();

	if (user == 0)
		return;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
		race_skip("user namespace");
	write_file("/proc/self/setgroups", "deny");
	snprintf(text, sizeof(text), "0 %u 1", user);
	write_file("/proc/self/uid_map", text);
	snprintf(text, sizeof(text), "0 %u 1", group);
	write_file("/proc/self/gid_map", text);
}

static void mount_device(void)
{
	char options[STALL_NAME * 2];

	fuse_device = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (fuse_device < 0)
		race_skip("/dev/fuse");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fuse_device);
	if (mkdir("mount", 0755) != 0)
		race_die("mount");
	if (mount("race", "mount", "fuse.race", MS_NOSUID | MS_NODEV, options) != 0)
		race_skip("mount");
}

int main(int argc, char **argv)
{
	static char paths[STALL_MOST][STALL_NAME];
	pid_t parent = getpid();

	own_namespaces();
	mount_device();
	stall_prepare(argc, argv);
	pid_t server = fork();
	if (server == 0)
		serve(parent);
	close(fuse_device);
	for (long done = 0; done < stall.rounds; done += stall.width) {
		int count = stall.rounds - done < stall.width ? (int)(stall.rounds - done) : stall.width;
		for (int i = 0; i < count; i++) {
			snprintf(paths[i], STALL_NAME, "mount/s%ld/n%ld", done + i, done + i);
			stall.calls[i].path = paths[i];
		}
		stall_batch(done, count);
	}
	stall_end();
	umount2("mount", MNT_DETACH);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	return 0;
}
