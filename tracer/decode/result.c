/*
 * What becomes known only when the call is over.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/procfs.h"
#include "reading.h"

/* As the kernel's limit on nested #! lines, and the part of a file that it looks at (BINPRM_BUF_SIZE). */
enum { SCRIPT_DEPTH = 5, SCRIPT_HEAD = 256 };

/* The file that an open gave, whatever its name meant by then. */
static void settle_open(struct decoder *decoder, const struct target *target, struct decoded *decoded, int fd)
{
	struct effect *effect = decoded->effects;
	struct effect_object object;
	struct path_facts facts;
	struct stat status;
	char name[32];

	snprintf(name, sizeof(name), "fd/%d", fd);
	if (effect->object.has_inode && fstatat(target->task, name, &status, 0) == 0 &&
	    status.st_ino == effect->object.ino && major(status.st_dev) == effect->object.dev_major &&
	    minor(status.st_dev) == effect->object.dev_minor)
		return;
	path_of_descriptor(decoder->cache, target, fd, &decoder->arena, &object, &facts);
	if (!object.has_inode)
		return;
	/* A name seen before the call knows its directory, from which more can be told than from the file. */
	if (bytes_equal(object.path, effect->object.path) && !object.host_path.data)
		object.host_path = effect->object.host_path;
	object.as_given = effect->object.as_given;
	if (!object.as_given.data && !bytes_equal(object.path, decoded->request.path))
		object.as_given = decoded->request.path;
	effect->object = object;
}

static bool is_open(const struct decoded *decoded)
{
	enum effect_kind kind = decoded->effects->kind;

	return kind == EFFECT_file_create || kind == EFFECT_file_write || kind == EFFECT_file_read;
}

static void look_again(struct decoder *decoder, const struct target *target, const struct path_request *request,
		       struct effect_object *object)
{
	struct effect_object now;
	struct path_facts facts;

	if (!request->path.data || object->has_inode)
		return;
	path_resolve(decoder->cache, target, request, &decoder->arena, &now, &facts);
	if (now.has_inode)
		*object = now;
}

/* The second name means what the first one did: what it had replaced is gone. An exchange swapped the two. */
static void settle_second_name(struct effect *effect)
{
	for (size_t i = 0; i < effect->flag_count; i++)
		if (strcmp(effect->flags[i], "RENAME_EXCHANGE") == 0)
			return;
	if (!effect->object.has_inode)
		return;
	effect->to.has_inode = true;
	effect->to.dev_major = effect->object.dev_major;
	effect->to.dev_minor = effect->object.dev_minor;
	effect->to.ino = effect->object.ino;
	effect->to.type = effect->object.type;
}

void decode_result(struct decoder *decoder, const struct target *target, struct decoded *decoded, int64_t value)
{
	struct effect *effect = decoded->effects;

	if (value < 0) {
		effect->result.state = RESULT_FAILED;
		effect->result.error = (int)-value;
		return;
	}
	effect->result.state = RESULT_OK;
	if (value > 0) {
		effect->result.has_value = true;
		effect->result.value = value;
	}
	if (is_open(decoded) && decoded->opens && value <= INT_MAX) {
		effect->result.has_value = true;
		effect->result.value = value;
		settle_open(decoder, target, decoded, (int)value);
		return;
	}
	look_again(decoder, target, &decoded->request, &effect->object);
	look_again(decoder, target, &decoded->to_request, &effect->to);
	if (effect->kind == EFFECT_file_rename || effect->kind == EFFECT_file_link)
		settle_second_name(effect);
	if (effect->local.present && effect->kind == EFFECT_node_create)
		effect->local.object = effect->object;
}

/* "#! interpreter [argument]": the interpreter's name, or absent when the file is no script. */
static struct bytes script_interpreter(int file, struct arena *arena)
{
	char head[SCRIPT_HEAD];
	ssize_t size = pread(file, head, sizeof(head), 0);

	if (size < 3 || head[0] != '#' || head[1] != '!')
		return BYTES_NONE;
	const char *end = memchr(head, '\n', (size_t)size);
	const char *limit = end ? end : head + size;
	const char *start = head + 2;
	while (start < limit && (*start == ' ' || *start == '\t'))
		start++;
	const char *stop = start;
	while (stop < limit && *stop != ' ' && *stop != '\t' && *stop != 0)
		stop++;
	return stop == start ? BYTES_NONE : arena_copy(arena, (struct bytes){start, (size_t)(stop - start)});
}

/* Open for reading what the task would find under this path; -1 unless it is a regular file of a local file system. */
static int open_script(struct decoder *decoder, const struct target *target, struct bytes path)
{
	struct path_request request = {.base = PATH_BASE_CWD, .path = path, .follow = true};
	struct effect_object object;
	struct path_facts facts;

	path_resolve(decoder->cache, target, &request, &decoder->arena, &object, &facts);
	if (!facts.exists || !S_ISREG(facts.mode) || !facts.local || facts.procfs)
		return -1;
	/* In the task's own root. The name may mean something else by now: what is opened is looked at again. */
	struct open_how how = {
	    .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
	    .resolve = RESOLVE_NO_MAGICLINKS | (target->same_root ? 0 : RESOLVE_IN_ROOT),
	};
	int fd CLEANUP_FD = (int)syscall(SYS_openat2, target->root, object.path.data, &how, sizeof(how));
	struct stat status;
	if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
		return -1;
	return fd_steal(&fd);
}

void decode_interpreters(struct decoder *decoder, const struct target *target, struct bytes program,
			 struct effect_image *image)
{
	struct bytes *chain = arena_alloc(&decoder->arena, SCRIPT_DEPTH * sizeof(*chain));

	image->interpreters = chain;
	image->interpreter_count = 0;
	while (chain && program.data && image->interpreter_count < SCRIPT_DEPTH) {
		int file CLEANUP_FD = open_script(decoder, target, program);
		program = file < 0 ? BYTES_NONE : script_interpreter(file, &decoder->arena);
		if (program.data)
			chain[image->interpreter_count++] = program;
	}
}

void decode_image(struct decoder *decoder, const struct target *target, struct effect_image *image)
{
	char text[PATH_MAX];
	ssize_t length = procfs_link(target->task, "exe", text, sizeof(text));
	struct stat status;

	if (length < 0)
		return;
	image->present = true;
	struct bytes seen = arena_copy(&decoder->arena, (struct bytes){text, (size_t)length});
	image->object.path = path_as_task_sees(target, seen);
	if (!bytes_equal(image->object.path, seen))
		image->object.host_path = seen;
	/* Through the link itself: the name may be gone or mean another file by now. */
	if (fstatat(target->task, "exe", &status, 0) != 0)
		return;
	image->object.has_inode = true;
	image->object.dev_major = major(status.st_dev);
	image->object.dev_minor = minor(status.st_dev);
	image->object.ino = status.st_ino;
	image->object.type = status.st_mode & S_IFMT;
}
