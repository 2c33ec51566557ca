/*
 * Scripts: what #! lines say, as load_script() of the kernel (fs/binfmt_script.c) takes them.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "file_systems.h"
#include "location.h"
#include "os/procfs.h"
#include "program.h"

/* The part of a file that the kernel looks at (BINPRM_BUF_SIZE). */
enum { SCRIPT_HEAD = 256 };

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The first byte from `at` to `last` that is no blank; NULL when all are. */
static const char *skip_blanks(const char *at, const char *last)
{
	while (at <= last && is_blank(*at))
		at++;
	return at <= last ? at : NULL;
}

/* The first blank or NUL from `at` to `last`. */
static const char *word_end(const char *at, const char *last)
{
	while (at <= last && !is_blank(*at) && *at != 0)
		at++;
	return at <= last ? at : NULL;
}

/* Where the line ends; NULL when the kernel does not take it for one, because the interpreter's name may go on. */
static const char *line_end(const char head[SCRIPT_HEAD])
{
	const char *last = head + SCRIPT_HEAD - 1;
	const char *end = memchr(head, '\n', strnlen(head, SCRIPT_HEAD));

	if (!end) {
		const char *name = skip_blanks(head + 2, last);
		if (!name || !word_end(name, last))
			return NULL;
		end = last;
	}
	while (is_blank(end[-1]))
		end--;
	return end;
}

/* Up to a NUL, but not beyond `end`. */
static struct bytes text_until(struct arena *arena, const char *start, const char *end)
{
	return arena_copy(arena, (struct bytes){start, strnlen(start, (size_t)(end - start))});
}

static bool read_line(int file, struct arena *arena, struct script_line *line)
{
	char head[SCRIPT_HEAD] = "";

	*line = (struct script_line){0};
	if (pread(file, head, sizeof(head), 0) < 3 || head[0] != '#' || head[1] != '!')
		return false;
	const char *end = line_end(head);
	const char *name = end ? skip_blanks(head + 2, end) : NULL;
	if (!name || name == end)
		return false;
	const char *stop = word_end(name, end);
	const char *argument = stop && *stop != 0 ? skip_blanks(stop, end) : NULL;
	line->interpreter = text_until(arena, name, stop ? stop : end);
	if (argument)
		line->argument = text_until(arena, argument, end);
	return line->interpreter.size > 0;
}

/* Open for reading what the task finds there; -1 unless it is a regular file of a local file system. */
static int open_program(struct decoder *decoder, const struct target *target, const struct path_request *request,
			struct file_identity *identity)
{
	const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	struct location location CLEANUP_LOCATION;
	struct stat status;
	char name[32];

	*identity = (struct file_identity){0};
	location_find(decoder->cache, target, request, NULL, &location);
	if (!location.exists)
		return -1;
	const struct statx *found = &location.status;
	*identity = (struct file_identity){true, makedev(found->stx_dev_major, found->stx_dev_minor), found->stx_ino};
	struct file_system about = file_system_of(decoder->cache, target, location.parent, location.name, found);
	if (!S_ISREG(found->stx_mode) || !about.local || about.kernel)
		return -1;
	snprintf(name, sizeof(name), "self/fd/%d", location.parent);
	int fd CLEANUP_FD = *location.name ? openat(location.parent, location.name, flags | O_NOFOLLOW)
					   : openat(procfs_root(), name, flags);
	/* The name may mean something else by now. */
	if (fd < 0 || fstat(fd, &status) != 0 || status.st_ino != identity->ino || status.st_dev != identity->device)
		return -1;
	return fd_steal(&fd);
}

void script_chain_read(struct decoder *decoder, const struct target *target, const struct path_request *request,
		       struct script_chain *chain)
{
	struct path_request next = *request;

	*chain = (struct script_chain){0};
	for (size_t i = 0; i <= SCRIPT_DEPTH; i++) {
		int file CLEANUP_FD = open_program(decoder, target, &next, &chain->last);
		if (i == 0)
			chain->first = chain->last;
		if (file < 0 || i == SCRIPT_DEPTH || !read_line(file, &decoder->arena, &chain->lines[i]))
			return;
		chain->count = i + 1;
		next =
		    (struct path_request){.base = PATH_BASE_CWD, .path = chain->lines[i].interpreter, .follow = true};
	}
}

/* Is argv[at] a script, and what stands before it its interpreter? */
static bool is_nested(struct decoder *decoder, const struct target *target, const struct bytes *argv, size_t at)
{
	struct path_request request = {.base = PATH_BASE_CWD, .path = argv[at], .follow = true};
	struct file_identity identity;
	struct script_line line;

	int file CLEANUP_FD = open_program(decoder, target, &request, &identity);
	if (file < 0 || !read_line(file, &decoder->arena, &line))
		return false;
	if (line.argument.data && (at < 2 || !bytes_equal(argv[--at], line.argument)))
		return false;
	return bytes_equal(argv[at - 1], line.interpreter);
}

void script_chain_shown(struct decoder *decoder, const struct target *target, const struct bytes *argv, size_t name_at,
			struct script_chain *chain)
{
	*chain = (struct script_chain){0};
	while (name_at > 0 && chain->count < SCRIPT_DEPTH) {
		struct script_line *line = &chain->lines[chain->count++];
		if (name_at > 1 && !is_nested(decoder, target, argv, name_at - 1))
			line->argument = argv[--name_at];
		line->interpreter = argv[--name_at];
	}
	struct path_request request = {.base = PATH_BASE_CWD, .path = argv[0], .follow = true};
	int file = open_program(decoder, target, &request, &chain->last);
	fd_close(&file);
}

bool script_chain_fits(const struct script_chain *chain, const struct program *program, struct bytes name,
		       size_t *length)
{
	size_t at = 0;

	if (chain->count == 0)
		return false;
	for (size_t i = chain->count; i-- > 0;) {
		const struct script_line *line = &chain->lines[i];
		if (at >= program->argv_count || !bytes_equal(program->argv[at++], line->interpreter))
			return false;
		if (line->argument.data &&
		    (at >= program->argv_count || !bytes_equal(program->argv[at++], line->argument)))
			return false;
	}
	if (at >= program->argv_count || !bytes_equal(program->argv[at++], name))
		return false;
	*length = at;
	return true;
}
