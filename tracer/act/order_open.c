/*
 * Opening a file for somebody: the descriptor that comes of it must be as if he had opened it himself.
 */
#include "order_open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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
	    .resolve = RESOLVE_NO_SYMLINKS,
	};

	return (int)syscall(SYS_openat2, order->place.directory, order->place.name, &how, sizeof(how));
}

/* It leads nowhere; but the kernel may find another fault in the call first. What would change nothing is asked for. */
static int fail_through_link(const struct order *order, uint64_t flags)
{
	struct open_how how = {
	    .flags = (flags & ~(uint64_t)(O_CREAT | O_TRUNC)) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
	    .resolve = RESOLVE_NO_MAGICLINKS,
	};
	int fd CLEANUP_FD = (int)syscall(SYS_openat2, order->place.directory, order->place.name, &how, sizeof(how));

	if (fd >= 0)
		errno = EXDEV; /* which no open says: somebody was faster */
	return -1;
}

/*
 * Where a link leads is looked at first, and then opened itself: a link that is exchanged must not lead to what is ours,
 * nor to our own /proc/self, which nobody of the tree may ever hold.
 */
static int open_through_link(const struct order *order, uint64_t flags)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};
	struct order_identity reached;
	char path[32];

	int object CLEANUP_FD = (int)syscall(SYS_openat2, order->place.directory, order->place.name, &how, sizeof(how));
	if (object < 0)
		return fail_through_link(order, flags);
	if (!order_look(object, "", &reached) || !order_same_object(&reached, &order->before)) {
		errno = EXDEV;
		return -1;
	}
	snprintf(path, sizeof(path), "self/fd/%d", object);
	return open(path, (int)(flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
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

void order_prepare_open(struct order *order)
{
	order->divisible = (order->how.flags & (O_CREAT | O_EXCL | O_DIRECTORY)) == O_CREAT && !ends_in_slash(order) &&
			   (!order->before.known || (S_ISREG(order->before.mode) && !in_sticky_directory(order)));
}

bool order_may_create(const struct order *order)
{
	if (order->kind != ORDER_OPEN)
		return order->kind == ORDER_MKDIR || order->kind == ORDER_MKNOD;
	return (order->how.flags & O_CREAT) && !(order->before.known && order->divisible);
}

/*
 * Whether the open makes the file or finds it must be known. A file that is there is opened without O_CREAT, one that is
 * not is made exclusively; when the name changes in between, again.
 */
static int open_or_make(const struct order *order, uint64_t flags, bool *created)
{
	bool there = order->before.known;

	*created = !there;
	if (order->place.link)
		return open_through_link(order, flags);
	if (!order->divisible)
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

	/* A link where none was, or magic behind it: unless that is what he asked to be told. */
	if (error == ELOOP && !(order->how.flags & O_NOFOLLOW))
		outcome.state = order->place.link ? ORDER_NOT_MADE : ORDER_MOVED;
	if (error == EXDEV)
		outcome.state = ORDER_MOVED;
	if (error == EAGAIN && !(order->how.flags & O_NONBLOCK))
		outcome.state = ORDER_WAITS;
	return outcome;
}

struct order_outcome order_open(const struct order *order)
{
	uint64_t flags = order->strict_flags ? order->how.flags : order->how.flags & OPEN_FLAGS;
	struct order_outcome outcome = {.state = ORDER_DONE, .descriptor = -1};

	/* Whether such an open may make what the link names is for the kernel to say. */
	if (order->place.link && (flags & O_CREAT)) {
		outcome.state = ORDER_NOT_MADE;
		return outcome;
	}
	int fd CLEANUP_FD = open_or_make(order, flags, &outcome.created);
	if (fd < 0)
		return failed(order, errno);
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
