#include "order.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "decode/path.h"
#include "order_open.h"
#include "os/procfs.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_setxattrat
#define SYS_setxattrat 463
#endif
#ifndef SYS_removexattrat
#define SYS_removexattrat 466
#endif

/* struct xattr_args of setxattrat(2), which older headers lack. */
struct xattr_arguments {
	uint64_t value;
	uint32_t size;
	uint32_t flags;
};

bool order_look(int directory, const char *name, struct order_identity *identity)
{
	const unsigned mask = STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_INO;
	const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC | (*name ? 0 : AT_EMPTY_PATH);
	struct statx status;

	*identity = (struct order_identity){0};
	if (statx(directory, name, flags, mask, &status) != 0)
		return false;
	identity->known = true;
	identity->dev_major = status.stx_dev_major;
	identity->dev_minor = status.stx_dev_minor;
	identity->ino = status.stx_ino;
	identity->mode = status.stx_mode;
	identity->links = status.stx_nlink;
	return true;
}

bool order_same_object(const struct order_identity *one, const struct order_identity *other)
{
	return one->known && other->known && one->ino == other->ino && one->dev_major == other->dev_major &&
	       one->dev_minor == other->dev_minor;
}

static struct order_outcome outcome_of(long value)
{
	return (struct order_outcome){.state = ORDER_DONE, .error = value < 0 ? errno : 0, .descriptor = -1};
}

static const struct order_outcome not_made = {.state = ORDER_NOT_MADE, .descriptor = -1};
static const struct order_outcome moved = {.state = ORDER_MOVED, .descriptor = -1};

static struct order_outcome make_directory(const struct order *order)
{
	struct order_outcome outcome = outcome_of(mkdirat(order->place.directory, order->place.name, order->mode));

	if (!outcome.error)
		(void)order_look(order->place.directory, order->place.name, &outcome.object);
	return outcome;
}

static struct order_outcome make_node(const struct order *order)
{
	struct order_outcome outcome =
	    outcome_of(syscall(SYS_mknodat, order->place.directory, order->place.name, order->mode, order->device));

	if (!outcome.error)
		(void)order_look(order->place.directory, order->place.name, &outcome.object);
	return outcome;
}

/* A removal that takes no name from the object was of another one. */
static bool lost_a_name(const struct order_identity *before, const struct order_identity *after)
{
	if (!order_same_object(before, after))
		return false;
	return S_ISDIR(after->mode) ? after->links == 0 : after->links + 1 == before->links;
}

/* Which object went is certain when the one that is held lost a name by it. */
static struct order_outcome remove_entry(const struct order *order)
{
	const struct order_identity *before = &order->before;
	struct order_identity after;
	int object CLEANUP_FD =
	    order->watched ? -1 : openat(order->place.directory, order->place.name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct order_outcome outcome =
	    outcome_of(unlinkat(order->place.directory, order->place.name, (int)order->flags));

	if (outcome.error || order->watched)
		outcome.object = *before;
	else if (object >= 0 && order_look(object, "", &after) && lost_a_name(before, &after))
		outcome.object = *before;
	return outcome;
}

/* What stands under a name, held, so that its number is nobody else's meanwhile. */
static int hold_entry(const struct order *order, const struct order_place *place)
{
	if (order->watched || !place->name[0])
		return -1;
	return openat(place->directory, place->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

/* Which object a name was given to: certain when it is the one that was held, or nobody could be asked to hold it. */
static void identify(const struct order *order, const struct order_place *place, int held,
		     struct order_identity *identity)
{
	struct order_identity before;

	if (!order_look(place->directory, place->name, identity) || order->watched)
		return;
	identity->known = held >= 0 && order_look(held, "", &before) && order_same_object(&before, identity);
}

static struct order_outcome rename_entry(const struct order *order)
{
	const struct order_place *from = &order->place, *to = &order->to;
	bool exchanged = (order->flags & RENAME_EXCHANGE) != 0;
	int moved_object CLEANUP_FD = hold_entry(order, from);
	int other CLEANUP_FD = exchanged ? hold_entry(order, to) : -1;
	struct order_outcome outcome = outcome_of(
	    syscall(SYS_renameat2, from->directory, from->name, to->directory, to->name, (unsigned)order->flags));

	if (outcome.error)
		return outcome;
	identify(order, to, moved_object, &outcome.object);
	outcome.to = outcome.object;
	if (exchanged)
		identify(order, from, other, &outcome.to);
	return outcome;
}

static struct order_outcome link_entry(const struct order *order)
{
	const struct order_place *from = &order->place, *to = &order->to;
	bool follow = order->kind == ORDER_LINK && (order->at_flags & AT_SYMLINK_FOLLOW);
	int held CLEANUP_FD =
	    follow ? openat(from->directory, from->name, O_PATH | O_NOFOLLOW | O_CLOEXEC) : hold_entry(order, from);
	struct order_identity now;
	char path[32];

	/* He would have a link followed; where one leads that is new was not looked at, and our /proc/self is not his. */
	if (follow && held >= 0 && (!order_look(held, "", &now) || S_ISLNK(now.mode)))
		return moved;
	snprintf(path, sizeof(path), "self/fd/%d", held);
	struct order_outcome outcome = outcome_of(
	    follow && held >= 0 ? linkat(AT_FDCWD, path, to->directory, to->name, (int)order->flags)
				: linkat(from->directory, from->name, to->directory, to->name,
					 (int)order->flags & ~(order->kind == ORDER_LINK ? AT_SYMLINK_FOLLOW : 0)));

	if (outcome.error)
		return outcome;
	if (order->kind == ORDER_LINK)
		identify(order, to, held, &outcome.object);
	else
		(void)order_look(to->directory, to->name, &outcome.object);
	outcome.to = outcome.object;
	return outcome;
}

/* Since 6.10 by who opened it: ENOENT means that he may do it for what he opened himself, and we did not open this. */
static struct order_outcome link_descriptor(const struct order *order)
{
	struct order_outcome outcome = link_entry(order);

	return outcome.error == ENOENT ? not_made : outcome;
}

static struct order_outcome make_link(const struct order *order)
{
	struct order_outcome outcome = outcome_of(symlinkat(order->text, order->place.directory, order->place.name));

	if (!outcome.error)
		(void)order_look(order->place.directory, order->place.name, &outcome.object);
	return outcome;
}

static long change_inode(const struct order *order, int object, const char *name, int flags)
{
	struct xattr_arguments xattr = {
	    .value = (uint64_t)(uintptr_t)order->value,
	    .size = (uint32_t)order->value_size,
	    .flags = (uint32_t)order->flags,
	};

	/* These take no descriptor that was not really opened; order_prepare() made /proc the working directory. */
	char path[32];
	if (order->kind >= ORDER_SET_XATTR && (flags & AT_EMPTY_PATH)) {
		snprintf(path, sizeof(path), "self/fd/%d", object);
		name = path;
		object = AT_FDCWD;
		flags &= ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
	}
	switch (order->kind) {
	case ORDER_MODE:
		return syscall(SYS_fchmodat2, object, name, order->mode, flags);
	case ORDER_OWNER:
		return fchownat(object, name, order->user, order->group, flags);
	case ORDER_TIMES:
		return utimensat(object, name, order->has_times ? order->times : NULL, flags);
	case ORDER_SET_XATTR:
		return syscall(SYS_setxattrat, object, name, flags, order->text, &xattr, sizeof(xattr));
	case ORDER_REMOVE_XATTR:
		return syscall(SYS_removexattrat, object, name, flags, order->text);
	case ORDER_TRUNCATE:
		return truncate(name, order->length);
	default:
		errno = EINVAL;
		return -1;
	}
}

static long change_open_file(const struct order *order)
{
	int fd = order->place.directory;

	switch (order->kind) {
	case ORDER_MODE:
		return fchmod(fd, order->mode);
	case ORDER_OWNER:
		return fchown(fd, order->user, order->group);
	case ORDER_SET_XATTR:
		return fsetxattr(fd, order->text, order->value, order->value_size, (int)order->flags);
	case ORDER_REMOVE_XATTR:
		return fremovexattr(fd, order->text);
	case ORDER_TIMES:
		return futimens(fd, order->has_times ? order->times : NULL);
	case ORDER_TRUNCATE:
		return ftruncate(fd, order->length);
	default:
		errno = EINVAL;
		return -1;
	}
}

/* Whatever its number means by now, the file is the one that the copy was made of. */
static struct order_outcome change_descriptor(const struct order *order)
{
	struct order_identity held;
	int fd = order->place.directory;

	if (!order_look(fd, "", &held) || !path_is_ordinary(fd))
		return not_made;
	struct order_outcome outcome = outcome_of(change_open_file(order));
	outcome.object = held;
	if (!order_is_as_seen(order, &outcome))
		outcome.descriptor = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return outcome;
}

/*
 * There is no object, for the reason `error`. The kernel may find another fault in the call before it would look for one:
 * it is asked about a name that cannot be there.
 */
static struct order_outcome miss(const struct order *order, int error)
{
	struct order_outcome outcome = outcome_of(-1);

	if (order->kind == ORDER_TRUNCATE)
		outcome.error = order->length < 0 ? EINVAL : ENOENT;
	else
		outcome =
		    outcome_of(change_inode(order, order->place.directory, "", (int)order->at_flags & ~AT_EMPTY_PATH));
	if (outcome.error == ENOENT)
		outcome.error = error;
	return outcome;
}

/* On the object itself, held by a descriptor. */
static struct order_outcome change(const struct order *order)
{
	const struct order_place *place = &order->place;
	struct open_how how = {
	    .flags = O_PATH | O_CLOEXEC | (place->link ? 0 : O_NOFOLLOW),
	    .resolve = RESOLVE_NO_MAGICLINKS,
	};
	struct order_identity held = {0};
	int object CLEANUP_FD = -1;

	if (order->by_descriptor)
		return change_descriptor(order);
	if (place->name[0]) {
		object = (int)syscall(SYS_openat2, place->directory, place->name, &how, sizeof(how));
		if (object < 0)
			return errno == ELOOP ? not_made : miss(order, errno);
	}
	int on = object >= 0 ? object : place->directory;
	if (!order_look(on, "", &held) || !path_is_ordinary(on))
		return not_made;
	/* A link that was none, or that leads elsewhere by now: whether its end may be touched is to be decided again. */
	if ((S_ISLNK(held.mode) && !S_ISLNK(order->before.mode)) ||
	    (place->link && !order_same_object(&order->before, &held)))
		return moved;
	struct order_outcome outcome = outcome_of(change_inode(order, on, "", (int)order->at_flags | AT_EMPTY_PATH));
	/* A kernel without this call; the agent's own call is another one. */
	if (outcome.error == ENOSYS)
		return not_made;
	outcome.object = held;
	return outcome;
}

typedef struct order_outcome (*routine)(const struct order *order);

static const routine routines[ORDER_KIND_COUNT] = {
    [ORDER_OPEN] = order_open,
    [ORDER_MKDIR] = make_directory,
    [ORDER_MKNOD] = make_node,
    [ORDER_REMOVE] = remove_entry,
    [ORDER_RENAME] = rename_entry,
    [ORDER_LINK] = link_entry,
    [ORDER_LINK_DESCRIPTOR] = link_descriptor,
    [ORDER_SYMLINK] = make_link,
    [ORDER_MODE] = change,
    [ORDER_OWNER] = change,
    [ORDER_TIMES] = change,
    [ORDER_SET_XATTR] = change,
    [ORDER_REMOVE_XATTR] = change,
    [ORDER_TRUNCATE] = change,
};

/* Walk to the directory with the rights of now. -1: he would not have come there, or to another one. */
static int walk_again(const struct order_place *place)
{
	struct open_how how = {
	    .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
	    .resolve = RESOLVE_NO_MAGICLINKS | (place->in_root ? RESOLVE_IN_ROOT : 0),
	};
	struct order_identity held, reached;
	int directory CLEANUP_FD = place->path[0]
				       ? (int)syscall(SYS_openat2, place->base, place->path, &how, sizeof(how))
				       : fcntl(place->base, F_DUPFD_CLOEXEC, 0);

	if (directory < 0 || !order_look(directory, "", &reached) || !order_look(place->directory, "", &held) ||
	    !order_same_object(&held, &reached))
		return -1;
	return fd_steal(&directory);
}

bool order_prepare(void)
{
	return unshare(CLONE_FS) == 0 && fchdir(procfs_root()) == 0;
}

struct order_outcome order_carry_out(struct order *order)
{
	int place CLEANUP_FD = -1;
	int to CLEANUP_FD = -1;

	if (order->place.walk) {
		/* He may not come there, or somebody changes the way. */
		place = walk_again(&order->place);
		if (place < 0)
			return not_made;
		order->place.directory = place;
	}
	if (order->to.walk) {
		to = walk_again(&order->to);
		if (to < 0)
			return not_made;
		order->to.directory = to;
	}
	/* Each thread's own; most processes have the same. */
	static _Thread_local int mine = -1;
	if (order->has_umask && mine != (int)order->umask) {
		(void)umask(order->umask);
		mine = (int)order->umask;
	}
	return routines[order->kind](order);
}

bool order_is_as_seen(const struct order *order, const struct order_outcome *outcome)
{
	return outcome->created || order_same_object(&order->before, &outcome->object);
}
