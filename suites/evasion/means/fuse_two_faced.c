/*
 * A file system that a process of the tree serves. Its file is a script whose text is another one at every second
 * opening, and it is run by name and by a shell.
 */
#include "../../../tests/fuse.h"
#include "ev2.h"

#include <sys/ioctl.h>

enum { REQUEST = 1 << 17, NODE = 2 };

/* As long as each other: the size is asked for before the text. */
static const char *const texts[] = {"#!/bin/sh\n: >f1\n", "#!/bin/sh\n: >f2\n"};
static int openings;

static struct fuse_attr attributes(uint64_t node)
{
	struct fuse_attr attr = fuse_attributes(node, S_IFREG | 0755);

	attr.size = node == NODE ? strlen(texts[0]) : 0;
	return attr;
}

static void answer_open(uint64_t unique)
{
	struct fuse_open_out opened = {.open_flags = FOPEN_DIRECT_IO};

	opened.fh = (uint64_t)openings++ % 2;
	fuse_answer(unique, 0, &opened, sizeof(opened));
}

static void answer(const struct fuse_in_header *request)
{
	const struct fuse_read_in *range = (const void *)(request + 1);
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = FUSE_ANSWER_SIZE};
	struct fuse_entry_out entry = {.nodeid = NODE, .attr = attributes(NODE)};
	struct fuse_attr_out attr = {.attr = attributes(request->nodeid)};
	size_t size = strlen(texts[0]);

	if (request->opcode == FUSE_INIT)
		fuse_answer(request->unique, 0, &init, sizeof(init));
	else if (request->opcode == FUSE_LOOKUP)
		fuse_answer(request->unique, strcmp((const char *)range, "script") == 0 ? 0 : ENOENT, &entry,
			    sizeof(entry));
	else if (request->opcode == FUSE_GETATTR)
		fuse_answer(request->unique, 0, &attr, sizeof(attr));
	else if (request->opcode == FUSE_OPEN || request->opcode == FUSE_OPENDIR)
		answer_open(request->unique);
	else if (request->opcode == FUSE_READ)
		fuse_answer(request->unique, 0, texts[range->fh] + (range->offset < size ? range->offset : size),
			    range->offset < size ? size - range->offset : 0);
	else if (request->opcode == FUSE_RELEASE || request->opcode == FUSE_RELEASEDIR || request->opcode == FUSE_FLUSH)
		fuse_answer(request->unique, 0, NULL, 0);
	else if (request->opcode != FUSE_FORGET && request->opcode != FUSE_BATCH_FORGET &&
		 request->opcode != FUSE_INTERRUPT)
		fuse_answer(request->unique, ENOSYS, NULL, 0);
}

static void serve_folder(void)
{
	/* Aligned, because its begin is read as a struct. */
	static uint64_t request[REQUEST / sizeof(uint64_t)];

	for (;;) {
		if (read(fuse_device, request, sizeof(request)) >= 0)
			answer((const void *)request);
		else if (errno != EINTR && errno != ENOENT)
			_exit(0); /* unmounted */
	}
}

static int run(char *const arguments[])
{
	pid_t child = fork();

	MUST(child >= 0);
	if (child == 0) {
		execv(arguments[0], arguments);
		_exit(127);
	}
	return join(child);
}

int main(void)
{
	char options[128];

	private_mounts();
	fuse_device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fuse_device < 0)
		skip("/dev/fuse");
	MUST(mkdir("mnt", 0755) == 0);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%u,group_id=%u,allow_other", fuse_device,
		 geteuid(), getegid());
	if (mount("evasion", "mnt", "fuse.evasion", 0, options) != 0)
		skip("mounting a file system of our own");
	pid_t server = fork();
	MUST(server >= 0);
	if (server == 0)
		serve_folder();
	MUST(run((char *[]){"/bin/sh", "mnt/script", NULL}) == 0);
	MUST(run((char *[]){"mnt/script", NULL}) == 0);
	MUST(access("f1", F_OK) == 0 || access("f2", F_OK) == 0);
	did("run script server~%d", server);
	umount2("mnt", MNT_DETACH);
	kill(server, SIGKILL);
	join(server);
	return 0;
}
