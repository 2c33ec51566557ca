/*
 * For programs that serve a file system from inside the tree (fuse(4)).
 */
#pragma once

#include <errno.h>
#include <linux/fuse.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FUSE_ANSWER_SIZE = 4096 };

static int fuse_device;

static void fuse_answer(uint64_t unique, int error, const void *data, size_t size)
{
	char message[FUSE_ANSWER_SIZE];
	struct fuse_out_header header = {.len = (uint32_t)(sizeof(header) + size), .error = -error, .unique = unique};

	memcpy(message, &header, sizeof(header));
	if (size)
		memcpy(message + sizeof(header), data, size);
	/* Whoever was interrupted meanwhile wants no answer any more. */
	if (write(fuse_device, message, sizeof(header) + size) < 0 && errno != ENOENT)
		_exit(1);
}

/* Of a root folder, and nodes of this type and mode. */
static struct fuse_attr fuse_attributes(uint64_t node, uint32_t mode)
{
	struct fuse_attr attr = {.ino = node, .nlink = 1, .blksize = FUSE_ANSWER_SIZE};

	attr.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0777 : mode;
	return attr;
}
