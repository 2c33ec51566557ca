/*
 * Who outside the tree would act: specs/delegates.def.
 *
 * Called for every effect, nearly none of which matches: the kind says which patterns can, and a pattern's own literal
 * text is looked for before fnmatch() is asked.
 */
#include <fnmatch.h>
#include <string.h>

#include "reading.h"

enum delegate_kind { DELEGATE_NONE, UNIX_PATH, UNIX_ABSTRACT, FILE_PATH };

struct delegate {
	const char *name;
	const char *pattern;
};

/* One table for each kind, so that a file's path is never held against sockets. */
#define DELEGATE(identifier, name, kind, pattern, meaning) {PICK_##kind(name), PICK_##kind(pattern)},

static const struct delegate unix_paths[] = {
#define PICK_UNIX_PATH(text) text
#define PICK_UNIX_ABSTRACT(text) NULL
#define PICK_FILE_PATH(text) NULL
#include "delegates.def"
#undef PICK_UNIX_PATH
#undef PICK_UNIX_ABSTRACT
#undef PICK_FILE_PATH
};

static const struct delegate abstract_names[] = {
#define PICK_UNIX_PATH(text) NULL
#define PICK_UNIX_ABSTRACT(text) text
#define PICK_FILE_PATH(text) NULL
#include "delegates.def"
#undef PICK_UNIX_PATH
#undef PICK_UNIX_ABSTRACT
#undef PICK_FILE_PATH
};

static const struct delegate file_paths[] = {
#define PICK_UNIX_PATH(text) NULL
#define PICK_UNIX_ABSTRACT(text) NULL
#define PICK_FILE_PATH(text) text
#include "delegates.def"
#undef PICK_UNIX_PATH
#undef PICK_UNIX_ABSTRACT
#undef PICK_FILE_PATH
};
#undef DELEGATE

enum { DELEGATE_COUNT = sizeof(file_paths) / sizeof(file_paths[0]) };

static bool is_special(char c)
{
	return c == '*' || c == '?' || c == '[' || c == '\\';
}

/* False when the pattern's first literal text, which may stand anywhere after a leading `*`, is not in the path. */
static bool may_match(const char *pattern, struct bytes path)
{
	size_t length = 0;

	if (*pattern != '*') {
		while (pattern[length] && !is_special(pattern[length])) {
			if (length >= path.size || pattern[length] != path.data[length])
				return false;
			length++;
		}
		return true;
	}
	pattern++;
	while (pattern[length] && !is_special(pattern[length]))
		length++;
	return length == 0 || memmem(path.data, path.size, pattern, length) != NULL;
}

static struct bytes find(struct arena *arena, const struct delegate *table, struct bytes path)
{
	struct bytes text = BYTES_NONE;

	for (size_t i = 0; path.data && i < DELEGATE_COUNT; i++) {
		if (!table[i].name || !may_match(table[i].pattern, path))
			continue;
		/* fnmatch() wants a terminator, which bytes of the agent need not have. */
		if (!text.data)
			text = arena_copy(arena, path);
		if (text.data && fnmatch(table[i].pattern, text.data, FNM_NOESCAPE) == 0)
			return bytes_of(table[i].name);
	}
	return BYTES_NONE;
}

/* The path as the agent sees it or as the host does: either may be the one that the other process knows. */
static struct bytes find_object(struct arena *arena, const struct delegate *table, const struct effect_object *object)
{
	struct bytes name = find(arena, table, object->path);

	return name.data ? name : find(arena, table, object->host_path);
}

static struct bytes find_socket(struct arena *arena, const struct effect_peer *peer)
{
	struct bytes path = peer->path;

	if (!peer->present || !path.data || path.size == 0)
		return BYTES_NONE;
	if (path.data[0] == '@')
		return find(arena, abstract_names, (struct bytes){path.data + 1, path.size - 1});
	struct bytes name = find(arena, unix_paths, path);
	return name.data ? name : find_object(arena, unix_paths, &peer->object);
}

static bool has_flag(const struct effect *effect, const char *flag)
{
	for (size_t i = 0; i < effect->flag_count; i++)
		if (strcmp(effect->flags[i], flag) == 0)
			return true;
	return false;
}

/* Where the delegates of an effect of this kind stand in specs/delegates.def; DELEGATE_NONE when it can have none. */
static enum delegate_kind asked_by(const struct effect *effect)
{
	switch (effect->kind) {
	case EFFECT_ipc_connect:
	case EFFECT_ipc_send:
	case EFFECT_ipc_pass_fd:
		return UNIX_PATH;
	case EFFECT_file_write:
	case EFFECT_file_create:
	case EFFECT_file_delete:
	case EFFECT_file_rename:
	case EFFECT_file_link:
	case EFFECT_file_symlink:
	case EFFECT_file_mode:
	case EFFECT_file_owner:
	case EFFECT_file_times:
	case EFFECT_file_truncate:
	case EFFECT_file_xattr:
	case EFFECT_dir_create:
	case EFFECT_dir_delete:
	case EFFECT_node_create:
		return FILE_PATH;
	case EFFECT_file_map:
		/* Programs are mapped too, to run them. */
		return has_flag(effect, "PROT_WRITE") ? FILE_PATH : DELEGATE_NONE;
	default:
		return DELEGATE_NONE;
	}
}

void reading_delegates(struct reading *reading, struct effect *effect)
{
	struct arena *arena = reading_arena(reading);
	enum delegate_kind kind = asked_by(effect);

	if (kind == UNIX_PATH) {
		effect->delegated = find_socket(arena, &effect->peer);
	} else if (kind == FILE_PATH) {
		effect->delegated = find_object(arena, file_paths, &effect->object);
		if (!effect->delegated.data)
			effect->delegated = find_object(arena, file_paths, &effect->to);
	}
}
