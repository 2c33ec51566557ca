/*
 * endure_fs FOLDER FAULT AFTER: a file system in memory, mounted on FOLDER until it is unmounted or told to end
 * (SIGTERM), that goes wrong once AFTER bytes were written to it. FAULT is
 *
 *   none    nothing goes wrong            eio      every write fails with EIO from then on
 *   short   writes write half (or less)   enospc   every write fails with ENOSPC from then on
 *   fsync   fsync fails with EIO          passing  a few writes fail with EIO, then all is well again
 *
 * Prints at the end how often something went wrong. Status 77: there can be no such file system here.
 */
#include <signal.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/statfs.h>

#include "../fuse.h"
#include "endure.h"

enum { REQUEST_SIZE = 1 << 18, WRITE_SIZE = 1 << 16, NODES = 256, NAME_SIZE = 128, PASSING = 2 };

struct node {
	bool used;
	uint64_t parent; /* 0: it has no name any more */
	char name[NAME_SIZE];
	uint32_t mode, uid, gid;
	char *data; /* of a symbolic link: its text */
	size_t size;
	struct timespec changed;
};

static struct node nodes[NODES]; /* by number; FUSE_ROOT_ID is the root */
static const char *fault;
static unsigned long long after, written;
static long faults;
static volatile sig_atomic_t over;

static bool is_fault(const char *name)
{
	return written >= after && strcmp(fault, name) == 0;
}

static struct fuse_attr attributes_of(uint64_t number)
{
	const struct node *node = &nodes[number];
	struct fuse_attr attr = fuse_attributes(number, node->mode);

	attr.nlink = node->parent || number == FUSE_ROOT_ID;
	attr.mode = node->mode;
	attr.uid = node->uid;
	attr.gid = node->gid;
	attr.size = node->size;
	attr.blocks = (node->size + 511) / 512;
	attr.mtime = attr.ctime = attr.atime = (uint64_t)node->changed.tv_sec;
	attr.mtimensec = attr.ctimensec = attr.atimensec = (uint32_t)node->changed.tv_nsec;
	return attr;
}

static uint64_t find(uint64_t parent, const char *name)
{
	for (uint64_t number = FUSE_ROOT_ID + 1; number < NODES; number++)
		if (nodes[number].used && nodes[number].parent == parent && strcmp(nodes[number].name, name) == 0)
			return number;
	return 0;
}

static void touch(struct node *node)
{
	clock_gettime(CLOCK_REALTIME, &node->changed);
}

static bool resize(struct node *node, size_t size)
{
	if (size > node->size) {
		char *data = realloc(node->data, size);
		if (!data)
			return false;
		memset(data + node->size, 0, size - node->size);
		node->data = data;
	}
	node->size = size;
	touch(node);
	return true;
}

static uint64_t make(const struct fuse_in_header *request, const char *name, uint32_t mode)
{
	for (uint64_t number = FUSE_ROOT_ID + 1; number < NODES; number++) {
		struct node *node = &nodes[number];
		if (node->used)
			continue;
		*node = (struct node){.used = true, .parent = request->nodeid, .mode = mode};
		snprintf(node->name, sizeof(node->name), "%s", name);
		node->uid = request->uid;
		node->gid = request->gid;
		touch(node);
		return number;
	}
	return 0;
}

static struct fuse_entry_out entry_of(uint64_t number)
{
	/* Nothing is kept by the kernel: removed names are free at once. */
	struct fuse_entry_out entry = {.nodeid = number, .attr = attributes_of(number)};

	return entry;
}

static void answer_entry(const struct fuse_in_header *request, uint64_t number, int error)
{
	struct fuse_entry_out entry;

	if (!number) {
		fuse_answer(request->unique, error, NULL, 0);
		return;
	}
	entry = entry_of(number);
	fuse_answer(request->unique, 0, &entry, sizeof(entry));
}

static void answer_attributes(const struct fuse_in_header *request)
{
	struct fuse_attr_out out = {.attr = attributes_of(request->nodeid)};

	fuse_answer(request->unique, 0, &out, sizeof(out));
}

static void set_attributes(const struct fuse_in_header *request, const struct fuse_setattr_in *wanted)
{
	struct node *node = &nodes[request->nodeid];

	if (wanted->valid & FATTR_MODE)
		node->mode = (node->mode & (uint32_t)S_IFMT) | (wanted->mode & 07777);
	if (wanted->valid & FATTR_UID)
		node->uid = wanted->uid;
	if (wanted->valid & FATTR_GID)
		node->gid = wanted->gid;
	if ((wanted->valid & FATTR_SIZE) && !resize(node, wanted->size)) {
		fuse_answer(request->unique, ENOMEM, NULL, 0);
		return;
	}
	answer_attributes(request);
}

/* Bigger than what fuse_answer takes. */
static void answer_read(const struct fuse_in_header *request, const struct fuse_read_in *wanted)
{
	static char message[sizeof(struct fuse_out_header) + REQUEST_SIZE];
	const struct node *node = &nodes[request->nodeid];
	struct fuse_out_header header = {.unique = request->unique};
	size_t size = wanted->offset < node->size ? node->size - wanted->offset : 0;

	if (size > wanted->size)
		size = wanted->size;
	if (size > REQUEST_SIZE)
		size = REQUEST_SIZE;
	header.len = (uint32_t)(sizeof(header) + size);
	memcpy(message, &header, sizeof(header));
	if (size)
		memcpy(message + sizeof(header), node->data + wanted->offset, size);
	if (write(fuse_device, message, header.len) < 0 && errno != ENOENT)
		_exit(1);
}

/* What goes wrong with a write, if anything does: an error, or fewer bytes. */
static int spoil(uint32_t *size)
{
	bool passing = is_fault("passing") && faults < PASSING;

	if (is_fault("eio") || passing) {
		faults++;
		return EIO;
	}
	if (is_fault("enospc")) {
		faults++;
		return ENOSPC;
	}
	if (is_fault("short") && *size > 1) {
		faults++;
		*size /= 2;
	}
	return 0;
}

static void take_write(const struct fuse_in_header *request, const struct fuse_write_in *what)
{
	struct node *node = &nodes[request->nodeid];
	struct fuse_write_out out = {.size = what->size};
	int error = spoil(&out.size);
	size_t end = what->offset + out.size;

	if (!error && end > node->size && !resize(node, end))
		error = ENOMEM;
	if (error) {
		fuse_answer(request->unique, error, NULL, 0);
		return;
	}
	memcpy(node->data + what->offset, what + 1, out.size);
	written += out.size;
	touch(node);
	fuse_answer(request->unique, 0, &out, sizeof(out));
}

static void answer_names(const struct fuse_in_header *request, const struct fuse_read_in *wanted)
{
	_Alignas(8) char out[FUSE_ANSWER_SIZE - sizeof(struct fuse_out_header)] = {0};
	size_t used = 0;

	for (uint64_t number = wanted->offset > FUSE_ROOT_ID ? wanted->offset : FUSE_ROOT_ID + 1; number < NODES;
	     number++) {
		if (!nodes[number].used || nodes[number].parent != request->nodeid)
			continue;
		size_t length = strlen(nodes[number].name);
		struct fuse_dirent entry = {number, number + 1, (uint32_t)length,
					    (nodes[number].mode & (uint32_t)S_IFMT) >> 12};
		size_t whole = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + length);
		if (used + whole > sizeof(out) || used + whole > wanted->size)
			break;
		memcpy(out + used, &entry, FUSE_NAME_OFFSET);
		memcpy(out + used + FUSE_NAME_OFFSET, nodes[number].name, length);
		used += whole;
	}
	fuse_answer(request->unique, 0, out, used);
}

static void create(const struct fuse_in_header *request, const struct fuse_create_in *wanted)
{
	struct {
		struct fuse_entry_out entry;
		struct fuse_open_out opened;
	} out = {.opened = {.fh = 0}};
	uint64_t number = make(request, (const char *)(wanted + 1), S_IFREG | (wanted->mode & 07777));

	if (!number) {
		fuse_answer(request->unique, ENOSPC, NULL, 0);
		return;
	}
	out.entry = entry_of(number);
	fuse_answer(request->unique, 0, &out, sizeof(out));
}

/* Descriptors of it stay good; its place is taken when the kernel forgets it. */
static void remove_name(const struct fuse_in_header *request, const char *name)
{
	uint64_t number = find(request->nodeid, name);

	if (number)
		nodes[number].parent = 0;
	fuse_answer(request->unique, number ? 0 : ENOENT, NULL, 0);
}

static void rename_to(const struct fuse_in_header *request, uint64_t folder, const char *old)
{
	const char *new = old + strlen(old) + 1;
	uint64_t number = find(request->nodeid, old), there = find(folder, new);

	if (there)
		nodes[there].parent = 0;
	if (number) {
		nodes[number].parent = folder;
		snprintf(nodes[number].name, NAME_SIZE, "%s", new);
	}
	fuse_answer(request->unique, number ? 0 : ENOENT, NULL, 0);
}

static void make_link(const struct fuse_in_header *request, const char *name)
{
	const char *text = name + strlen(name) + 1;
	uint64_t number = make(request, name, S_IFLNK | 0777);

	if (number && resize(&nodes[number], strlen(text)))
		memcpy(nodes[number].data, text, strlen(text));
	answer_entry(request, number, ENOSPC);
}

static void forget(uint64_t number)
{
	if (number <= FUSE_ROOT_ID || number >= NODES || nodes[number].parent)
		return;
	free(nodes[number].data);
	nodes[number] = (struct node){.used = false};
}

static void start_up(const struct fuse_in_header *request)
{
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = WRITE_SIZE};

	init.flags = FUSE_BIG_WRITES;
	fuse_answer(request->unique, 0, &init, sizeof(init));
}

static void tell_space(const struct fuse_in_header *request)
{
	struct fuse_statfs_out out = {.st = {.blocks = 1 << 20, .bfree = 1 << 20, .bavail = 1 << 20, .files = NODES}};

	out.st.bsize = out.st.frsize = 4096;
	out.st.namelen = NAME_SIZE - 1;
	fuse_answer(request->unique, 0, &out, sizeof(out));
}

static void synchronise(const struct fuse_in_header *request)
{
	bool bad = is_fault("fsync");

	faults += bad;
	fuse_answer(request->unique, bad ? EIO : 0, NULL, 0);
}

static void handle(const struct fuse_in_header *request)
{
	const void *body = request + 1;
	const char *name = body;
	struct fuse_open_out opened = {.fh = 0};

	switch (request->opcode) {
	case FUSE_INIT:
		start_up(request);
		break;
	case FUSE_LOOKUP:
		answer_entry(request, find(request->nodeid, name), ENOENT);
		break;
	case FUSE_GETATTR:
		answer_attributes(request);
		break;
	case FUSE_SETATTR:
		set_attributes(request, body);
		break;
	case FUSE_READ:
		answer_read(request, body);
		break;
	case FUSE_WRITE:
		take_write(request, body);
		break;
	case FUSE_READDIR:
		answer_names(request, body);
		break;
	case FUSE_CREATE:
		create(request, body);
		break;
	case FUSE_UNLINK:
	case FUSE_RMDIR:
		remove_name(request, name);
		break;
	case FUSE_RENAME:
		rename_to(request, *(const uint64_t *)body, name + sizeof(struct fuse_rename_in));
		break;
	case FUSE_RENAME2:
		rename_to(request, *(const uint64_t *)body, name + sizeof(struct fuse_rename2_in));
		break;
	case FUSE_SYMLINK:
		make_link(request, name);
		break;
	case FUSE_READLINK:
		fuse_answer(request->unique, 0, nodes[request->nodeid].data, nodes[request->nodeid].size);
		break;
	case FUSE_STATFS:
		tell_space(request);
		break;
	case FUSE_FORGET:
		forget(request->nodeid);
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		fuse_answer(request->unique, 0, &opened, sizeof(opened));
		break;
	case FUSE_MKDIR:
		name += sizeof(struct fuse_mkdir_in);
		answer_entry(request,
			     make(request, name, S_IFDIR | (((const struct fuse_mkdir_in *)body)->mode & 07777)),
			     ENOSPC);
		break;
	case FUSE_FSYNC:
	case FUSE_FSYNCDIR:
		synchronise(request);
		break;
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FLUSH:
		fuse_answer(request->unique, 0, NULL, 0);
		break;
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		fuse_answer(request->unique, ENOSYS, NULL, 0);
	}
}

/* A copy of the mount in somebody's namespace would keep it mounted. */
static void on_term(int number)
{
	(void)number;
	over = 1;
}

int main(int argc, char **argv)
{
	/* Aligned, because its begin is read as a struct. */
	static uint64_t request[REQUEST_SIZE / sizeof(uint64_t)];
	struct sigaction action = {.sa_handler = on_term};
	char options[128];

	if (argc != 4)
		return 64;
	fault = argv[2];
	after = strtoull(argv[3], NULL, 10);
	nodes[FUSE_ROOT_ID] = (struct node){.used = true, .mode = S_IFDIR | 0700};
	fuse_device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fuse_device < 0)
		return 77;
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,default_permissions",
		 fuse_device);
	if (mount("endurance", argv[1], "fuse.endurance", MS_NOSUID | MS_NODEV, options) != 0)
		return 77;
	sigaction(SIGTERM, &action, NULL);
	while (!over) {
		if (read(fuse_device, request, sizeof(request)) >= 0)
			handle((const void *)request);
		else if (errno != EINTR && errno != ENOENT)
			break; /* unmounted */
	}
	endure_say("faults", faults);
	return 0;
}
