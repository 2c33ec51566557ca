#include "new_files.h"

static size_t place_of(const struct effect_object *object)
{
	uint64_t device = ((uint64_t)object->dev_major << 40) ^ ((uint64_t)object->dev_minor << 20);
	uint64_t hash = (object->ino ^ device) * 0x9e3779b97f4a7c15u;

	return (size_t)(hash >> 52);
}

void new_files_note(struct new_files *files, const struct effect *effect)
{
	enum effect_kind kind = effect->kind;

	if (kind != EFFECT_file_create && kind != EFFECT_file_symlink && kind != EFFECT_dir_create &&
	    kind != EFFECT_node_create)
		return;
	if (effect->result.state == RESULT_FAILED || effect->result.state == RESULT_REFUSED)
		return;
	files->now++;
	/* Not yet there when it was looked at, and nobody saw what was made. */
	if (effect->result.state == RESULT_UNKNOWN || !effect->object.has_inode)
		files->floor = files->now;
	else
		files->last[place_of(&effect->object)] = files->now;
}

uint64_t new_files_since(const struct new_files *files, const struct effect_object *object)
{
	uint64_t last = files->last[place_of(object)];

	return last > files->floor ? last : files->floor;
}
