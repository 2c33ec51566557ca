/*
 * From a decoded call to an order: what has to be done, on which held place, with which of its arguments.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "compose.h"
#include "os/memory.h"
#include "os/procfs.h"

/* The value of the n-th argument of this kind; 0 when the call has none. */
uint64_t order_argument(const struct act *act, enum arg_kind kind, size_t nth)
{
	const struct syscall_row *row = act->decoded->row;

	for (size_t i = 0; i < SYSCALL_ARGS && row->args[i].name; i++)
		if (row->args[i].kind == kind && nth-- == 0)
			return act->stop->args[i];
	return 0;
}

bool order_has_argument(const struct act *act, enum arg_kind kind)
{
	const struct syscall_row *row = act->decoded->row;

	for (size_t i = 0; i < SYSCALL_ARGS && row->args[i].name; i++)
		if (row->args[i].kind == kind)
			return true;
	return false;
}

static bool copy_text(struct order *order, struct bytes text)
{
	if (!text.data || text.size >= sizeof(order->text))
		return false;
	memcpy(order->text, text.data, text.size);
	order->text[text.size] = 0;
	return true;
}

/* The name of an extended attribute as it was read for the record. */
static bool copy_attribute_name(const struct act *act, struct order *order)
{
	const struct effect *effect = act->decoded->effects;

	for (size_t i = 0; i < effect->value_count; i++)
		if (strcmp(effect->values[i].name, "name") == 0 && effect->values[i].type == VALUE_BYTES)
			return copy_text(order, effect->values[i].bytes);
	return false;
}

static bool order_open_file(const struct act *act, struct order *order)
{
	const struct decoded *decoded = act->decoded;
	uint64_t size = order_argument(act, ARG_size, 0);

	order->kind = ORDER_OPEN;
	order->how = decoded->how;
	order->strict_flags = order_has_argument(act, ARG_open_how);
	/* Another layout of the structure, rules about the way here, which was gone already, or a mode that is an error. */
	if (order->strict_flags &&
	    (size != sizeof(struct open_how) || order->how.resolve != 0 || (order->how.mode & ~07777ull) != 0))
		return false;
	/* linkat(2) gives a file without a name one by who opened it. */
	if ((order->how.flags & O_TMPFILE) == O_TMPFILE)
		return false;
	return !decoded->facts.exists || S_ISREG(decoded->facts.mode) || S_ISDIR(decoded->facts.mode);
}

static bool order_directory(const struct act *act, struct order *order)
{
	order->kind = ORDER_MKDIR;
	order->mode = (mode_t)order_argument(act, ARG_mode, 0);
	return true;
}

static bool order_node(const struct act *act, struct order *order)
{
	/* bind(2) makes nodes as well. */
	if (!order_has_argument(act, ARG_dev))
		return false;
	order->kind = ORDER_MKNOD;
	order->mode = (mode_t)order_argument(act, ARG_mode, 0);
	order->device = (dev_t)(uint32_t)order_argument(act, ARG_dev, 0);
	return true;
}

/* open(2) and mknod(2) make files. */
static bool order_file(const struct act *act, struct order *order)
{
	return act->decoded->opens ? order_open_file(act, order) : order_node(act, order);
}

static bool order_removal(const struct act *act, struct order *order)
{
	order->kind = ORDER_REMOVE;
	order->flags = act->decoded->at_flags;
	/* rmdir(2) has no flags, and unlink(2) none either. */
	if (!order_has_argument(act, ARG_at_flags) && act->decoded->effects->kind == EFFECT_dir_delete)
		order->flags = AT_REMOVEDIR;
	return true;
}

static bool order_rename(const struct act *act, struct order *order)
{
	order->kind = ORDER_RENAME;
	order->flags = (uint32_t)order_argument(act, ARG_rename_flags, 0);
	return true;
}

static bool order_link(const struct act *act, struct order *order)
{
	order->kind = act->decoded->request.path.size == 0 ? ORDER_LINK_DESCRIPTOR : ORDER_LINK;
	order->flags = act->decoded->at_flags;
	return true;
}

static bool order_symlink(const struct act *act, struct order *order)
{
	order->kind = ORDER_SYMLINK;
	return copy_text(order, act->decoded->effects->to_text);
}

static bool order_mode(const struct act *act, struct order *order)
{
	order->kind = ORDER_MODE;
	order->mode = (mode_t)order_argument(act, ARG_mode, 0);
	return order_has_argument(act, ARG_mode);
}

static bool order_owner(const struct act *act, struct order *order)
{
	order->kind = ORDER_OWNER;
	order->user = (uid_t)order_argument(act, ARG_id, 0);
	order->group = (gid_t)order_argument(act, ARG_id, 1);
	return true;
}

static bool order_times(const struct act *act, struct order *order)
{
	order->kind = ORDER_TIMES;
	order->has_times = act->decoded->has_times;
	memcpy(order->times, act->decoded->times, sizeof(order->times));
	/* Calls differ in what they find first, a time that is none or a file that is not there. */
	return !order->has_times || (order->times[0].tv_nsec >= 0 && order->times[1].tv_nsec >= 0);
}

static bool order_xattr(const struct act *act, struct order *order)
{
	const struct syscall_row *row = act->decoded->row;

	/* The structure of setxattrat(2) is in memory, and its size an argument of its own. */
	if (!copy_attribute_name(act, order) ||
	    (order_has_argument(act, ARG_size) && !order_has_argument(act, ARG_xattr_flags)))
		return false;
	order->kind = order_has_argument(act, ARG_size) ? ORDER_SET_XATTR : ORDER_REMOVE_XATTR;
	order->flags = (uint32_t)order_argument(act, ARG_xattr_flags, 0);
	order->value_size = (size_t)order_argument(act, ARG_size, 0);
	if (order->kind == ORDER_REMOVE_XATTR || order->value_size == 0)
		return true;
	uint64_t address = 0;
	for (size_t i = 1; i < SYSCALL_ARGS && row->args[i].name; i++)
		if (row->args[i].kind == ARG_size)
			address = act->stop->args[i - 1];
	void *value =
	    order->value_size > ORDER_VALUE_LIMIT ? NULL : arena_alloc(&act->decoder->arena, order->value_size);
	order->value = value;
	return value &&
	       memory_read_as_task(act->target->memory, act->target->tid, address, value, order->value_size) == 0;
}

static bool order_truncation(const struct act *act, struct order *order)
{
	uint64_t limit;

	order->kind = ORDER_TRUNCATE;
	order->length = (int64_t)order_argument(act, ARG_long, 0);
	/* Beyond its limit a process is sent SIGXFSZ: its own call must do that. */
	return order->length < 0 || (procfs_limit(act->target->task, act->target->tid, RLIMIT_FSIZE, &limit) &&
				     (uint64_t)order->length <= limit);
}

/* How a call of this kind becomes an order; false: it cannot, or not this one. */
typedef bool (*composer)(const struct act *act, struct order *order);

static const composer composers[EFFECT_KIND_COUNT] = {
    [EFFECT_file_create] = order_file,     [EFFECT_file_write] = order_file,
    [EFFECT_dir_create] = order_directory, [EFFECT_node_create] = order_node,
    [EFFECT_file_delete] = order_removal,  [EFFECT_dir_delete] = order_removal,
    [EFFECT_file_rename] = order_rename,   [EFFECT_file_link] = order_link,
    [EFFECT_file_symlink] = order_symlink, [EFFECT_file_mode] = order_mode,
    [EFFECT_file_owner] = order_owner,     [EFFECT_file_times] = order_times,
    [EFFECT_file_xattr] = order_xattr,     [EFFECT_file_truncate] = order_truncation,
};

static bool follows_links(enum order_kind kind)
{
	return kind == ORDER_OPEN || kind >= ORDER_MODE;
}

/* Capabilities count in a user namespace, and mount points in a mount namespace. */
bool order_lives_elsewhere(const struct target *target)
{
	return target->standing == RIGHTS_ELSEWHERE || !target->same_mounts;
}

/* On a file system of the disk or of memory, whose objects are the same whoever looks. */
static bool copy_place(const struct act *act, enum order_kind kind, const struct path_request *request,
		       const struct path_place *held, const struct path_facts *facts, struct order_place *place)
{
	/* A link leads from the root of whoever follows it. */
	bool rooted = act->target->same_root || order_lives_elsewhere(act->target);

	if (held->directory < 0 || !facts->local || facts->procfs ||
	    (held->link && !(request->follow && rooted && follows_links(kind))))
		return false;
	place->directory = held->directory;
	place->link = held->link;
	memcpy(place->name, held->name, sizeof(place->name));
	return true;
}

/* A path without its last component is walked again with the rights of whoever we act for. */
bool order_copy_way(const struct act *act, const struct path_request *request, struct order_place *place)
{
	const struct target *target = act->target;
	bool absolute = request->path.size > 0 && request->path.data[0] == '/';
	size_t size = request->path.size;

	while (size > 0 && request->path.data[size - 1] == '/')
		size--;
	while (place->name[0] && size > 0 && request->path.data[size - 1] != '/')
		size--;
	/* Whoever lives there has its root as root; a thread of ours has not. */
	bool rooted = target->same_root || order_lives_elsewhere(target);
	if (size >= sizeof(place->path) || (!absolute && !rooted))
		return false;
	memcpy(place->path, request->path.data, size);
	place->path[size] = 0;
	place->walk = true;
	place->in_root = absolute && !rooted;
	place->base = absolute ? (rooted ? AT_FDCWD : target->root) : path_base(target, request->base);
	return absolute || place->base >= 0;
}

/* What the names meant when they were looked up. */
static void note_before(const struct decoded *decoded, struct order *order)
{
	const struct effect_object *object = &decoded->effects->object;
	order->before = (struct order_identity){
	    .known = decoded->facts.exists,
	    .dev_major = object->dev_major,
	    .dev_minor = object->dev_minor,
	    .ino = object->ino,
	    .mode = (uint16_t)decoded->facts.mode,
	    .links = decoded->facts.links,
	};
}

bool order_compose(const struct actor *actor, const struct act *act, struct order *order)
{
	const struct decoded *decoded = act->decoded;
	composer compose_kind = composers[decoded->effects->kind];
	bool two = order_has_argument(act, ARG_name_to);

	if (!compose_kind || decoded->unreadable > 0 || !compose_kind(act, order))
		return false;
	order->at_flags = decoded->at_flags;
	order->watched = atomic_load(&actor->inotify);
	note_before(decoded, order);
	/* Times without a path are those of the descriptor (utimensat(2)). */
	bool pathless =
	    order->kind == ORDER_TIMES && order_has_argument(act, ARG_dirfd) && order_argument(act, ARG_path, 0) == 0;
	order->descriptor = (int)order_argument(act, pathless ? ARG_dirfd : ARG_fd, 0);
	order->by_descriptor = pathless || order_has_argument(act, ARG_fd);
	/* Flags are an error there, but only for some. */
	if (pathless && decoded->at_flags != 0)
		return false;
	if (order->by_descriptor)
		return decoded->facts.exists && decoded->facts.local && !decoded->facts.procfs;
	if (!decoded->request.path.data || (two && !decoded->to_request.path.data))
		return false;
	if (!copy_place(act, order->kind, &decoded->request, &decoded->place, &decoded->facts, &order->place) ||
	    (two &&
	     !copy_place(act, order->kind, &decoded->to_request, &decoded->to_place, &decoded->to_facts, &order->to)))
		return false;
	/* A directory without a name of its own: "." and "..", about which each call has rules of its own. */
	bool nameless = !order->place.name[0] && !follows_links(order->kind) && order->kind != ORDER_LINK_DESCRIPTOR;
	if (nameless || (two && !order->to.name[0]) || (order->kind == ORDER_OPEN && !order->place.name[0]))
		return false;
	return true;
}
