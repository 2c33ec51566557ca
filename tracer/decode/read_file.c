/*
 * Arguments that name objects of the file system.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "reading.h"

/* File systems that somebody serves may wait for that somebody, who may be of the tree. */
void reading_note_waiting(struct reading *reading, const struct path_facts *facts)
{
	if ((facts->exists || facts->parent_exists) && !facts->local)
		reading->out->waits = WAITS_PEER;
}

/* Operations on a descriptor may wait for what is behind a device, a FIFO or a socket; changing its inode does not. */
static void note_waiting_for_device(struct reading *reading, const struct path_facts *facts)
{
	bool inode = facts->exists && (S_ISREG(facts->mode) || S_ISDIR(facts->mode) || S_ISLNK(facts->mode));
	enum effect_kind kind = reading->effect->kind;
	bool about_inode = kind == EFFECT_file_mode || kind == EFFECT_file_owner || kind == EFFECT_file_xattr ||
			   kind == EFFECT_file_times || kind == EFFECT_proc_signal;

	reading_note_waiting(reading, facts);
	if (facts->exists && !inode && !about_inode)
		reading->out->waits = WAITS_PEER;
}

void read_skip(struct reading *reading, size_t index)
{
	(void)reading;
	(void)index;
}

void read_dirfd(struct reading *reading, size_t index)
{
	reading->base = (int)reading_arg(reading, index);
}

static void resolve(struct reading *reading, size_t index, bool follow, struct effect_object *object,
		    struct path_facts *facts, struct path_request *kept, struct path_place *place)
{
	uint64_t address = reading_arg(reading, index);
	struct path_request request = {.base = reading->base, .follow = follow};

	/* The new mount calls have flags of their own for it; without them the kernel refuses. */
	request.empty_is_base = reading->has_at_flags ? (reading->at_flags & AT_EMPTY_PATH) != 0
						      : reading->effect->kind == EFFECT_mount_change;
	if (address == 0) {
		/* A null path means the descriptor itself where the call allows it (utimensat, statx and others). */
		if (reading->base != PATH_BASE_CWD)
			path_of_descriptor(reading->decoder->cache, reading->target, reading->base,
					   reading_arena(reading), object, facts);
		reading_note_waiting(reading, facts);
		return;
	}
	request.path = reading_string(reading, address, PATH_MAX);
	if (!request.path.data)
		return;
	*kept = request;
	bool held = reading->out->handling == HANDLING_perform;
	path_resolve_held(reading->decoder->cache, reading->target, &request, reading_arena(reading), object, facts,
			  held ? place : NULL);
	reading_note_waiting(reading, facts);
}

static bool follows(const struct reading *reading, bool by_default)
{
	/* The program as named; special_exec() goes on from there. */
	if (reading->row->special == SPECIAL_exec)
		return false;
	/* With O_NOFOLLOW a link at the end is an error, with O_EXCL it is what is in the way: it is the object. */
	if (reading->row->special == SPECIAL_open)
		return !(reading->open_flags & O_NOFOLLOW) &&
		       (reading->open_flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
	if (!reading->has_at_flags)
		return by_default;
	if (reading->at_flags & AT_SYMLINK_NOFOLLOW)
		return false;
	return by_default || (reading->at_flags & AT_SYMLINK_FOLLOW);
}

void read_path(struct reading *reading, size_t index)
{
	resolve(reading, index, follows(reading, true), &reading->effect->object, &reading->out->facts,
		&reading->out->request, &reading->out->place);
}

void read_name(struct reading *reading, size_t index)
{
	resolve(reading, index, follows(reading, false), &reading->effect->object, &reading->out->facts,
		&reading->out->request, &reading->out->place);
}

void read_path_to(struct reading *reading, size_t index)
{
	resolve(reading, index, true, &reading->effect->to, &reading->out->to_facts, &reading->out->to_request,
		&reading->out->to_place);
}

void read_name_to(struct reading *reading, size_t index)
{
	resolve(reading, index, false, &reading->effect->to, &reading->out->to_facts, &reading->out->to_request,
		&reading->out->to_place);
}

void read_fd(struct reading *reading, size_t index)
{
	path_of_descriptor(reading->decoder->cache, reading->target, (int)reading_arg(reading, index),
			   reading_arena(reading), &reading->effect->object, &reading->out->facts);
	reading_add_int(reading, reading_name(reading, index), (int)reading_arg(reading, index));
	note_waiting_for_device(reading, &reading->out->facts);
}

void read_fd_to(struct reading *reading, size_t index)
{
	path_of_descriptor(reading->decoder->cache, reading->target, (int)reading_arg(reading, index),
			   reading_arena(reading), &reading->effect->to, &reading->out->to_facts);
	reading_add_int(reading, reading_name(reading, index), (int)reading_arg(reading, index));
}

void read_text(struct reading *reading, size_t index)
{
	if (reading_arg(reading, index) != 0)
		reading_add_bytes(reading, reading_name(reading, index),
				  reading_string(reading, reading_arg(reading, index), PATH_MAX));
}

void read_sized_text(struct reading *reading, size_t index)
{
	uint64_t size = reading_arg(reading, index + 1);

	if (reading_arg(reading, index) != 0 && size > 0 && size <= PATH_MAX)
		reading_add_bytes(reading, reading_name(reading, index),
				  reading_bytes(reading, reading_arg(reading, index), (size_t)size));
}

void read_text_to(struct reading *reading, size_t index)
{
	reading->effect->to_text = reading_string(reading, reading_arg(reading, index), PATH_MAX);
}

static const enum flag_set sets[] = {
#define ARGKIND(identifier, class, set, meaning) FLAGSET_##set,
#include "args.def"
#undef ARGKIND
};

void read_flags(struct reading *reading, size_t index)
{
	/* Flag words are `int` or `unsigned int` to the kernel, but for clone's and mount's, which have no high bits. */
	reading_add_flags(reading, sets[reading->row->args[index].kind], (uint32_t)reading_arg(reading, index));
}

void read_enum(struct reading *reading, size_t index)
{
	uint64_t value = reading_arg(reading, index);
	const char *name = flags_enum_name(sets[reading->row->args[index].kind], (uint32_t)value);

	if (name)
		reading_add_text(reading, reading_name(reading, index), name);
	else
		reading_add_hex(reading, reading_name(reading, index), value);
}

void read_hex(struct reading *reading, size_t index)
{
	if (reading_arg(reading, index) != 0)
		reading_add_hex(reading, reading_name(reading, index), reading_arg(reading, index));
}

void read_open_how(struct reading *reading, size_t index)
{
	/* Read beforehand, and once: what is recorded is what is done. */
	const struct open_how how = reading->out->how;
	(void)index;

	reading_add_flags(reading, FLAGSET_open, how.flags);
	if ((how.flags & O_CREAT) || (how.flags & O_TMPFILE) == O_TMPFILE) {
		reading->effect->has_mode = true;
		reading->effect->mode = (uint32_t)how.mode;
	}
	if (how.resolve)
		reading_add_hex(reading, "resolve", how.resolve);
}

void read_mode(struct reading *reading, size_t index)
{
	reading->effect->has_mode = true;
	/* Only mknod takes a file type; others pass on what stat() gave them, and the kernel looks at the rest alone. */
	uint32_t mask = reading->row->effect == EFFECT_node_create ? S_IFMT | 07777 : 07777;
	reading->effect->mode = (uint32_t)reading_arg(reading, index) & mask;
}

void read_dev(struct reading *reading, size_t index)
{
	/* The kernel's own encoding of a device number in 32 bits (new_decode_dev). */
	uint32_t device = (uint32_t)reading_arg(reading, index);
	unsigned major_number = (device & 0xfff00) >> 8;
	unsigned minor_number = (device & 0xff) | ((device >> 12) & 0xfff00);

	if (S_ISCHR(reading->effect->mode) || S_ISBLK(reading->effect->mode))
		reading_add_bytes(reading, reading_name(reading, index),
				  arena_format(reading_arena(reading), "%u:%u", major_number, minor_number));
}

void read_file_handle(struct reading *reading, size_t index)
{
	struct {
		uint32_t bytes;
		int32_t type;
	} head;

	if (!reading_memory(reading, reading_arg(reading, index), &head, sizeof(head)))
		return;
	reading_add_uint(reading, "handle_bytes", head.bytes);
	reading_add_int(reading, "handle_type", head.type);
}
