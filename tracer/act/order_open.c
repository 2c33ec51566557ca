/*
 * Opening a file for somebody: the descriptor that comes of it must be as if he had opened it himself.
 */
#include "order_open.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "decode/path.h"

/* The bits that open(2) looks at; it ignores the rest, openat2(2) does not (VALID_OPEN_FLAGS). */
#define OPEN_FLAGS                                                                                                \
	(O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND | O_NONBLOCK | O_SYNC | O_DSYNC | O_ASYNC | \
	 O_DIRECT | 0100000 /* O_LARGEFILE of the kernel */ | O_TMPFILE | O_NOFOLLOW | O_NOATIME | O_CLOEXEC)
/* What fcntl(F_SETFL) sets; all of it at once. */
#define STATUS_FLAGS (O_APPEND | O_ASYNC | O_DIRECT | O_NOATIME | O_NONBLOCK)

enum { ATTEMPTS = 8 };

/* Only a link that was looked at may be followed: whether its end may be touched was decided by what it was then. */
static bool follows(const struct order *order)
{
	return order->place.link && order->place.follow;
}

/*
 * Without waiting for whoever holds a lease, and without becoming anybody's terminal. A link in the way must not be
 * followed unless it is meant to be; O_NOFOLLOW would stay visible in the descriptor's flags.
 */
static int try_open(const struct order *order, uint64_t flags)
{
	/* Without O_CREAT a mode is an error, but only to openat2(2). */
	bool asked = (order->how.flags & O_CREAT) == 0 && order->strict_flags;
	uint64_t mode = order->strict_flags ? order->how.mode : order->how.mode & 07777;
	struct open_how how = {
	    .flags = flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
	    .mode = flags & O_CREAT || asked ? mode : 0,
	    .resolve = follows(order) ? RESOLVE_NO_MAGICLINKS : RESOLVE_NO_SYMLINKS,
	};

	return (int)syscall(SYS_openat2, order->place.directory, order->place.name, &how, sizeof(how));
}

static bool in_sticky_directory(const struct order *order)
{
	struct order_identity directory;

	return !order_look(order->place.directory, "", &directory) || (directory.mode & S_ISVTX);
}

static bool ends_in_slash(const struct order *order)
{
	size_t length = strlen(order->place.name);

	return length > 0 && order->place.name[length - 1] == '/';
}

/*
 * May the question whether it makes the file be taken apart? Not where O_CREAT itself decides what is allowed:
 * fs.protected_regular in sticky directories, directories, names with a slash.
 */
static bool is_divisible(const struct order *order)
{
	if ((order->how.flags & (O_CREAT | O_EXCL | O_DIRECTORY)) != O_CREAT || order->place.link ||
	    ends_in_slash(order))
		return false;
	return !order->before.known || (S_ISREG(order->before.mode) && !in_sticky_directory(order));
}

bool order_may_create(const struct order *order)
{
	if (order->kind != ORDER_OPEN)
		return order->kind == ORDER_MKDIR || order->kind == ORDER_MKNOD;
	return (order->how.flags & O_CREAT) && !(order->before.known && is_divisible(order));
}

/*
 * Whether the open makes the file or finds it must be known. A file that is there is opened without O_CREAT, one that is
 * not is made exclusively; when the name changes in between, again.
 */
static int open_or_make(const struct order *order, uint64_t flags, bool *created)
{
	bool there = order->before.known;

	*created = !there;
	if (!is_divisible(order))
		return try_open(order, flags);
	for (int attempt = 0; attempt < ATTEMPTS && (there || order->has_umask); attempt++) {
		*created = !there;
		int fd = try_open(order, there ? flags & ~(uint64_t)O_CREAT : flags | O_EXCL);
		if (fd >= 0 || errno != (there ? ENOENT : EEXIST))
			return fd;
		there = !there;
	}
	errno = ELOOP;
	return -1;
}

static struct order_outcome failed(const struct order *order, int error)
{
	struct order_outcome outcome = {.state = ORDER_DONE, .error = error, .descriptor = -1};

	/* Links where none was meant to be (or, with one, its end in procfs): unless that is what he asked to be told. */
	if (error == ELOOP && !(order->how.flags & O_NOFOLLOW))
		outcome.state = follows(order) ? ORDER_NOT_MADE : ORDER_MOVED;
	if (error == EAGAIN && !(order->how.flags & O_NONBLOCK))
		outcome.state = ORDER_WAITS;
	return outcome;
}

/* Does the link lead where it led when it was looked at? Where nothing was, what is there now must be new: empty. */
static bool leads_there(const struct order *order, int fd)
{
	struct order_identity reached;
	struct stat status;

	if (!follows(order))
		return true;
	if (order->before.known)
		return order_look(fd, "", &reached) && order_same_object(&order->before, &reached);
	return fstat(fd, &status) == 0 && status.st_size == 0;
}

/* Before something is cut off that cannot be put back. */
static bool may_truncate(const struct order *order)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};

	if (!follows(order) || !order->before.known)
		return true;
	int fd CLEANUP_FD = (int)syscall(SYS_openat2, order->place.directory, order->place.name, &how, sizeof(how));
	return fd < 0 || leads_there(order, fd);
}

struct order_outcome order_open(const struct order *order)
{
	uint64_t flags = order->strict_flags ? order->how.flags : order->how.flags & OPEN_FLAGS;
	struct order_outcome outcome = {.state = ORDER_DONE, .descriptor = -1};

	outcome.state = ORDER_MOVED;
	if ((flags & O_TRUNC) && !may_truncate(order))
		return outcome;
	if (follows(order) && !order->before.known)
		flags &= ~(uint64_t)O_TRUNC;
	int fd CLEANUP_FD = open_or_make(order, flags, &outcome.created);
	if (fd < 0)
		return failed(order, errno);
	if (!leads_there(order, fd))
		return outcome;
	outcome.state = ORDER_DONE;
	/* A link that was exchanged may have led to our own /proc/self, which nobody of the tree may ever hold. */
	if (!path_is_ordinary(fd) || !order_look(fd, "", &outcome.object) ||
	    !(S_ISREG(outcome.object.mode) || S_ISDIR(outcome.object.mode))) {
		outcome.state = ORDER_NOT_MADE;
		return outcome;
	}
	outcome.created = outcome.created && (flags & O_CREAT);
	if (!(flags & O_NONBLOCK) && fcntl(fd, F_SETFL, (int)(flags & STATUS_FLAGS)) != 0) {
		outcome.state = ORDER_NOT_MADE;
		return outcome;
	}
	outcome.descriptor = fd_steal(&fd);
	return outcome;
}
