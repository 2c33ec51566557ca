/*
 * Private to this room: one call on the file system, made for somebody else. An order is complete in itself, so that it
 * can be carried out by the thread that wrote it or by a process that lives in another context (performer.h).
 */
#pragma once

#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

enum order_kind {
	ORDER_OPEN,
	ORDER_MKDIR,
	ORDER_MKNOD,
	ORDER_REMOVE,
	ORDER_RENAME,
	ORDER_LINK,
	ORDER_LINK_DESCRIPTOR,
	ORDER_SYMLINK,
	ORDER_MODE,
	ORDER_OWNER,
	ORDER_TIMES,
	ORDER_SET_XATTR,
	ORDER_REMOVE_XATTR,
	ORDER_TRUNCATE,
	ORDER_KIND_COUNT
};

enum { ORDER_VALUE_LIMIT = 65536 /* XATTR_SIZE_MAX */ };

/* An entry: what the kernel is given. `directory` stays the caller's. */
struct order_place {
	int directory;
	char name[NAME_MAX + 2]; /* empty: the directory itself */
	bool link;               /* it was a symbolic link when it was looked at, and is followed */
	/*
	 * Another's rights decide who may walk to the directory: `path` is walked again from `base` with them, and must end
	 * in the same directory.
	 */
	bool walk;
	bool in_root; /* `base` is his root */
	int base;
	char path[PATH_MAX]; /* of the directory; empty: `base` itself */
};

/* What was seen of an object before the call, or is known after it. */
struct order_identity {
	bool known;
	uint32_t dev_major, dev_minor;
	uint64_t ino;
	uint16_t mode;
	uint32_t links;
};

struct order {
	enum order_kind kind;
	struct order_place place, to;
	bool by_descriptor; /* `place.directory` is a copy of the descriptor that the call is about */
	int descriptor;     /* its number in the task */
	struct open_how how;
	bool strict_flags; /* `how` is openat2(2)'s: unknown bits are an error */
	mode_t mode, umask;
	bool has_umask; /* else it must not make a file */
	bool divisible; /* of an open: see order_prepare_open() */
	uint64_t flags; /* AT_* or RENAME_* or XATTR_* */
	uint64_t at_flags;
	bool watched;   /* somebody is told about removals, in an order that a held object would change */
	int64_t length; /* of a file that is truncated */
	uid_t user;
	gid_t group;
	dev_t device;
	bool has_times;
	struct timespec times[2];
	char text[PATH_MAX]; /* of a symbolic link; name of an extended attribute */
	size_t value_size;
	const void *value;            /* of an extended attribute; not owned */
	struct order_identity before; /* the object as it was seen; `known` false: absent */
};

enum order_state {
	ORDER_DONE,     /* the call was made: `error` is 0 or what it failed with */
	ORDER_NOT_MADE, /* nothing was changed: it cannot be done for somebody else */
	ORDER_MOVED,    /* nothing was changed: a name meant something else by now; look again */
	ORDER_WAITS,    /* nothing was changed: the call would have to wait (a lease) */
};

struct order_outcome {
	enum order_state state;
	int error;
	int descriptor; /* of a file that was opened, or changed and not the one that was seen; the caller's to close */
	bool created;   /* the open made the file */
	struct order_identity object; /* what was acted on, or made */
	struct order_identity to;     /* the second object, where there is one */
};

/*
 * May the question whether an open makes the file be taken apart? Not where O_CREAT itself decides what is allowed:
 * fs.protected_regular in sticky directories, directories, names with a slash. To be asked before the next two.
 */
void order_prepare_open(struct order *order);
/* Can this call make something whose permissions depend on the umask? */
bool order_may_create(const struct order *order);
/* Once for each thread that carries out orders, which must share its working directory and umask with no other. */
bool order_prepare(void);
/* Make the call with the rights that the calling thread has now. It changes the thread's umask. */
struct order_outcome order_carry_out(struct order *order);
/* Is the object of a call that was made what its names meant when they were looked up? */
bool order_is_as_seen(const struct order *order, const struct order_outcome *outcome);
