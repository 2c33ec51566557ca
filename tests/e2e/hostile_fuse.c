/*
 * hostile_fuse FOLDER COUNT: a file system served from inside the tree, whose server does calls of its own before it
 * answers, and COUNT processes that look a name up there at once. Prints how many of them got an answer; 77 when there
 * can be no such file system here.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../fuse.h"

enum { REQUEST_SIZE = 1 << 17, FIRST_NODE = 2, NODES = 1000000 };

static void handle(const struct fuse_in_header *request)
{
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = FUSE_ANSWER_SIZE};
	struct fuse_entry_out entry = {.nodeid = FIRST_NODE + request->unique % NODES};
	struct fuse_attr_out attr = {.attr = fuse_attributes(request->nodeid, S_IFREG | 0666)};
	struct fuse_open_out opened = {0};

	switch (request->opcode) {
	case FUSE_INIT:
		fuse_answer(request->unique, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		entry.attr = fuse_attributes(entry.nodeid, S_IFREG | 0666);
		fuse_answer(request->unique, 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		fuse_answer(request->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		fuse_answer(request->unique, 0, &opened, sizeof(opened));
		break;
	case FUSE_RELEASE:
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

static void serve(void)
{
	/* Aligned, because its begin is read as a struct. */
	static uint64_t request[REQUEST_SIZE / sizeof(uint64_t)];
	int waited = 0;

	for (;;) {
		if (read(fuse_device, request, sizeof(request)) < 0) {
			if (errno == EINTR || errno == ENOENT)
				continue;
			_exit(0); /* unmounted */
		}
		const struct fuse_in_header *header = (const void *)request;
		if (header->opcode == FUSE_LOOKUP && !waited) {
			waited = 1;
			sleep(1); /* until all clients wait */
		}
		/* A call that somebody has to look at, for which all those who could are waiting for us. */
		close(open("/dev/null", O_WRONLY | O_CLOEXEC));
		handle(header);
	}
}

static int open_below(const char *folder, long number)
{
	char name[512];

	snprintf(name, sizeof(name), "%s/f%ld", folder, number);
	return open(name, O_WRONLY | O_CLOEXEC) < 0;
}

int main(int argc, char **argv)
{
	char options[128];
	long count = argc == 3 ? strtol(argv[2], NULL, 10) : 0, answered = 0;
	int status;

	if (count < 1)
		return 64;
	fuse_device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fuse_device < 0)
		return 77;
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fuse_device);
	if (mount("hostile", argv[1], "fuse.hostile", MS_NOSUID | MS_NODEV, options) != 0)
		return 77;
	pid_t server = fork();
	if (server == 0)
		serve();
	for (long i = 0; i < count; i++)
		if (fork() == 0)
			_exit(open_below(argv[1], i));
	for (long i = 0; i < count && wait(&status) > 0; i++)
		answered += status == 0;
	printf("%ld\n", answered);
	umount2(argv[1], MNT_DETACH);
	kill(server, SIGKILL);
	return 0;
}
