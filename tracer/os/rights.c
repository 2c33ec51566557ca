#include "os/rights.h"

#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/procfs.h"

static bool read_groups(const char *list, struct rights *rights)
{
	char *end;

	for (rights->group_count = 0;; rights->group_count++) {
		unsigned long group = strtoul(list, &end, 10);
		if (end == list)
			return true;
		if (rights->group_count == RIGHTS_GROUPS_LIMIT)
			return false;
		rights->groups[rights->group_count] = (gid_t)group;
		list = end;
		/* The next line begins behind a newline, which strtoul would skip. */
		while (*list == ' ' || *list == '\t')
			list++;
		if (*list == '\n') {
			rights->group_count++;
			return true;
		}
	}
}

bool rights_read(int task, struct rights *rights)
{
	if (!rights_read_ids(task, rights))
		return false;
	rights->user_namespace = procfs_namespace(task, "ns/user");
	if (rights->user_namespace == 0)
		return false;
	/* Without a labelling security module it cannot be read. */
	if (!procfs_read(task, "attr/current", rights->label, sizeof(rights->label)))
		rights->label[0] = 0;
	return true;
}

bool rights_read_ids(int task, struct rights *rights)
{
	enum { FILE_ID = 3 }; /* columns: real, effective, saved, file system */
	char text[8192];

	*rights = (struct rights){0};
	if (!procfs_read(task, "status", text, sizeof(text)))
		return false;
	const char *groups = procfs_status_field(text, "Groups:");
	const char *permitted = procfs_status_field(text, "CapPrm:");
	const char *effective = procfs_status_field(text, "CapEff:");
	/* The long list of groups may have cut what stands behind it. */
	if (!groups || !permitted || !effective || !strchr(effective, '\n'))
		return false;
	groups += strspn(groups, " \t");
	for (int i = 0; i < FILE_ID; i++)
		rights->users[i] = (uid_t)procfs_status_number(text, "Uid:", i);
	rights->file_user = (uid_t)procfs_status_number(text, "Uid:", FILE_ID);
	rights->file_group = (gid_t)procfs_status_number(text, "Gid:", FILE_ID);
	rights->permitted = strtoull(permitted, NULL, 16);
	rights->effective = strtoull(effective, NULL, 16);
	return *groups == '\n' || read_groups(groups, rights);
}

static bool same_groups(const struct rights *one, const struct rights *other)
{
	return one->group_count == other->group_count &&
	       memcmp(one->groups, other->groups, one->group_count * sizeof(one->groups[0])) == 0;
}

bool rights_same_ids(const struct rights *one, const struct rights *other)
{
	return one->file_user == other->file_user && one->file_group == other->file_group && same_groups(one, other);
}

bool rights_equal(const struct rights *one, const struct rights *other)
{
	return memcmp(one->users, other->users, sizeof(one->users)) == 0 && rights_same_ids(one, other) &&
	       one->permitted == other->permitted && one->effective == other->effective &&
	       one->user_namespace == other->user_namespace && strcmp(one->label, other->label) == 0;
}

enum rights_standing rights_compare(const struct rights *own, const struct rights *theirs)
{
	const uint64_t switching = 1ull << CAP_SETUID | 1ull << CAP_SETGID;

	if (strcmp(own->label, theirs->label) != 0)
		return RIGHTS_UNKNOWN;
	if (own->user_namespace != theirs->user_namespace)
		return RIGHTS_ELSEWHERE;
	if (rights_same_ids(own, theirs) && own->effective == theirs->effective)
		return RIGHTS_SAME;
	if ((own->effective & switching) == switching && (theirs->effective & ~own->permitted) == 0)
		return RIGHTS_ADOPTABLE;
	return RIGHTS_UNKNOWN;
}

/* Of the calling thread; the rest of its sets stays. */
static bool set_effective(uint64_t permitted, uint64_t effective)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) != 0)
		return false;
	for (int i = 0; i < 2; i++) {
		data[i].permitted = (uint32_t)(permitted >> (32 * i));
		data[i].effective = (uint32_t)(effective >> (32 * i));
	}
	return syscall(SYS_capset, &header, data) == 0;
}

/* The raw calls change one thread; the library's would change all of them. setfsuid() says nothing about success. */
static bool set_file_ids(uid_t user, gid_t group)
{
	(void)syscall(SYS_setfsgid, group);
	(void)syscall(SYS_setfsuid, user);
	/* Where fs.suid_dumpable is not 0 a change of ids lets others of the same user look into us. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	return syscall(SYS_setfsgid, -1) == (long)group && syscall(SYS_setfsuid, -1) == (long)user;
}

/* In a user namespace without a map even the same ids and groups may not be set. */
static bool set_all(const struct rights *own, const struct rights *from, const struct rights *to)
{
	bool same_ids = from->file_user == to->file_user && from->file_group == to->file_group;

	return (same_groups(from, to) || syscall(SYS_setgroups, to->group_count, to->groups) == 0) &&
	       (same_ids || set_file_ids(to->file_user, to->file_group)) &&
	       set_effective(own->permitted, to->effective);
}

bool rights_take_ids(const struct rights *theirs)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_setgroups, theirs->group_count, theirs->groups) != 0 ||
	    !set_file_ids(theirs->file_user, theirs->file_group) || syscall(SYS_capget, &header, data) != 0)
		return false;
	/* Another fsuid than root's took some of them away. */
	data[0].effective = data[0].permitted;
	data[1].effective = data[1].permitted;
	return syscall(SYS_capset, &header, data) == 0;
}

bool rights_adopt(const struct rights *own, const struct rights *theirs)
{
	if (set_all(own, own, theirs))
		return true;
	rights_return(own, theirs);
	return false;
}

void rights_return(const struct rights *own, const struct rights *theirs)
{
	/* First what the others need. */
	if (set_effective(own->permitted, own->effective) && set_all(own, theirs, own))
		return;
	/* Whatever this thread did next would be done as somebody else. */
	abort();
}
