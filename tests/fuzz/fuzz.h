/*
 * What fuzz targets share: taking values from an input, a folder that leaves nothing behind, and checks.
 */
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"

struct input {
	const uint8_t *data;
	size_t size;
};

/* Says what does not hold, past whatever the target did to its streams. */
#define need(condition)                                                                    \
	do {                                                                               \
		if (!(condition)) {                                                        \
			dprintf(2, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                           \
		}                                                                          \
	} while (0)

/* Big-endian; what is missing at the input's end is left out. */
static inline uint64_t take_number(struct input *input, size_t bytes)
{
	uint64_t value = 0;

	for (; bytes > 0 && input->size > 0; bytes--, input->data++, input->size--)
		value = value << 8 | *input->data;
	return value;
}

static inline struct bytes take_bytes(struct input *input, size_t size)
{
	struct bytes taken = {(const char *)input->data, size < input->size ? size : input->size};

	input->data += taken.size;
	input->size -= taken.size;
	return taken;
}

/* One byte says how many follow. */
static inline struct bytes take_short(struct input *input)
{
	return take_bytes(input, take_number(input, 1));
}

/* The same as a string: a NUL ends it. */
static inline const char *take_string(struct input *input, char text[256])
{
	struct bytes taken = take_short(input);

	if (taken.size > 0)
		memcpy(text, taken.data, taken.size);
	text[taken.size] = 0;
	return text;
}

/* The function that is called once, before anything else. */
#define PREPARE_BY(function)                                                                            \
	int LLVMFuzzerInitialize(int *argc, char ***argv) /* NOLINT(readability-non-const-parameter) */ \
	{                                                                                               \
		(void)argc;                                                                             \
		(void)argv;                                                                             \
		function();                                                                             \
		return 0;                                                                               \
	}

static inline void skip_target(const char *reason)
{
	fprintf(stderr, "skipped: %s\n", reason);
	exit(0);
}

static inline void write_map(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		skip_target("no ids in a user namespace");
	close(fd);
}

/* Who is not root becomes it in a user namespace of his own. */
static inline void enter_user_namespace(void)
{
	char users[32], groups[32];

	snprintf(users, sizeof(users), "0 %u 1", geteuid());
	snprintf(groups, sizeof(groups), "0 %u 1", getegid());
	if (unshare(CLONE_NEWUSER) != 0)
		skip_target("no user namespace");
	write_map("/proc/self/setgroups", "deny");
	write_map("/proc/self/uid_map", users);
	write_map("/proc/self/gid_map", groups);
}

/* Once: a mount namespace of our own. */
static inline void enter_namespace(void)
{
	static bool entered;

	if (entered)
		return;
	if (geteuid() != 0)
		enter_user_namespace();
	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		skip_target("no mount namespace");
	entered = true;
}

/*
 * A folder in memory that no name leads to and that goes with the process. To be made by PREPARE_BY(), before there
 * are threads: who is not root has to enter a user namespace.
 */
static inline int private_folder(void)
{
	enum { CREATE = 6 /* FSCONFIG_CMD_CREATE, which older headers lack */, CLOSE_ON_EXEC = 1 };

	enter_namespace();
	int context = (int)syscall(SYS_fsopen, "tmpfs", CLOSE_ON_EXEC);
	if (context < 0 || syscall(SYS_fsconfig, context, CREATE, NULL, NULL, 0) != 0)
		skip_target("no file system in memory");
	int folder = (int)syscall(SYS_fsmount, context, CLOSE_ON_EXEC, 0);
	if (folder < 0)
		skip_target("no mount of a file system in memory");
	close(context);
	return folder;
}

/*
 * The same under a name, for what does not take descriptors: in a mount namespace of our own, where nobody else sees it.
 */
#define PRIVATE_PLACE "/mnt"
static inline int private_place(void)
{
	int folder = private_folder();
	if (syscall(SYS_move_mount, folder, "", AT_FDCWD, PRIVATE_PLACE, 4 /* MOVE_MOUNT_F_EMPTY_PATH */) != 0)
		skip_target("nothing can be mounted on " PRIVATE_PLACE);
	return folder;
}

static inline void put_file(int folder, const char *name, struct bytes content)
{
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);

	need(fd >= 0 && (content.size == 0 || write(fd, content.data, content.size) == (ssize_t)content.size));
	close(fd);
}

/* Which descriptors are open: a target must leave as many as it found. */
enum { FUZZ_FD_LIMIT = 128 };
struct open_set {
	bool open[FUZZ_FD_LIMIT];
};

static inline struct open_set open_now(void)
{
	struct open_set set;

	for (int fd = 0; fd < FUZZ_FD_LIMIT; fd++)
		set.open[fd] = fcntl(fd, F_GETFD) >= 0;
	return set;
}

static inline void need_same_open(const struct open_set *before)
{
	struct open_set now = open_now();

	need(memcmp(before, &now, sizeof(now)) == 0);
}

/* UTF-8 that a terminal shows and does not obey; lines may end. */
static inline bool is_shown(struct bytes text, bool lines)
{
	while (text.size != 0) {
		uint32_t c;
		size_t size = text_utf8_decode(text, &c);
		bool control = c < 0x20 || (c >= 0x7f && c <= 0x9f);
		if (size == 0 || (control && !(lines && c == '\n')))
			return false;
		if ((c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
		    c == 0xfeff || (c >= 0xe0000 && c <= 0xe007f))
			return false;
		text.data += size;
		text.size -= size;
	}
	return true;
}
