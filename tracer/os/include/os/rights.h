/*
 * As whom a task acts on files: its ids, groups and capabilities, the user namespace that they count in, and the label of
 * a security module. They belong to a thread, not to a process (credentials(7)).
 *
 * A call that is made for somebody must be allowed and refused as it would be for him, and what it makes must be his.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { RIGHTS_GROUPS_LIMIT = 64, RIGHTS_LABEL_LIMIT = 160 };

struct rights {
	uid_t users[3];   /* real, effective, saved: who may be signalled */
	uid_t file_user;  /* fsuid: what permission checks and new files go by */
	gid_t file_group; /* fsgid */
	gid_t groups[RIGHTS_GROUPS_LIMIT];
	size_t group_count;
	uint64_t permitted, effective;  /* bits 1 << CAP_* */
	uint64_t user_namespace;        /* inode number */
	char label[RIGHTS_LABEL_LIMIT]; /* attr/current; empty without a labelling security module */
};

/* How a task's rights stand to ours. */
enum rights_standing {
	RIGHTS_UNKNOWN,   /* cannot be told, or cannot be had */
	RIGHTS_SAME,      /* what we may, it may, and nothing else */
	RIGHTS_ADOPTABLE, /* other ids or fewer capabilities in our user namespace: a thread of ours can take them on */
	RIGHTS_ELSEWHERE, /* of another user namespace: only a process that lives in it has them */
};

/* Of the thread behind an O_PATH descriptor of /proc/TID. False when they cannot be read, or exceed what is kept. */
bool rights_read(int task, struct rights *rights);
/* The same without namespace and label, which a process in another user namespace may not be allowed to see. */
bool rights_read_ids(int task, struct rights *rights);
/* Also beyond files: may one do just what the other may? */
bool rights_equal(const struct rights *one, const struct rights *other);
enum rights_standing rights_compare(const struct rights *own, const struct rights *theirs);

/*
 * Make the calling thread act on files with these rights, which must be RIGHTS_ADOPTABLE for `own`. Only this thread's
 * file ids, groups and effective capabilities change: who may signal or trace it stays as it was. False when the kernel
 * refuses; then the thread has its own rights. Between this and rights_return() nothing but the one call may be made.
 */
bool rights_adopt(const struct rights *own, const struct rights *theirs);
/*
 * For good: their file ids and groups as the calling thread's user namespace counts them, and every capability that it
 * may have. Numbers of another namespace must not come here: whoever has no number there shows as nobody.
 */
bool rights_take_ids(const struct rights *theirs);
bool rights_same_ids(const struct rights *one, const struct rights *other);
/* Back to our own from theirs. A thread that cannot come back must not go on: the process ends. */
void rights_return(const struct rights *own, const struct rights *theirs);
