/*
 * What becomes known only when the call is over.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "reading.h"

/* What was opened instead of what had been seen under the name. */
static void replace_object(struct decoded *decoded, struct effect_object *object)
{
	struct effect *effect = decoded->effects;

	if (!object->has_inode)
		return;
	/* A name seen before the call knows its directory, from which more can be told than from the file. */
	if (bytes_equal(object->path, effect->object.path) && !object->host_path.data)
		object->host_path = effect->object.host_path;
	object->as_given = effect->object.as_given;
	if (!object->as_given.data && !bytes_equal(object->path, decoded->request.path))
		object->as_given = decoded->request.path;
	effect->object = *object;
}

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
	replace_object(decoded, &object);
}

void decode_opened(struct decoder *decoder, const struct target *target, struct decoded *decoded, int descriptor)
{
	struct effect_object object;
	struct path_facts facts;

	path_of_own_descriptor(decoder->cache, target, descriptor, &decoder->arena, &object, &facts);
	replace_object(decoded, &object);
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
