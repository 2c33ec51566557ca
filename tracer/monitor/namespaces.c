#include "namespaces.h"

#include <string.h>
#include <sys/stat.h>

static const struct {
	const char *own, *children, *flag;
} types[NAMESPACE_TYPES] = {
    {"ns/cgroup", "ns/cgroup", "CLONE_NEWCGROUP"},
    {"ns/ipc", "ns/ipc", "CLONE_NEWIPC"},
    {"ns/mnt", "ns/mnt", "CLONE_NEWNS"},
    {"ns/net", "ns/net", "CLONE_NEWNET"},
    {"ns/pid", "ns/pid_for_children", "CLONE_NEWPID"},
    {"ns/time", "ns/time_for_children", "CLONE_NEWTIME"},
    {"ns/user", "ns/user", "CLONE_NEWUSER"},
    {"ns/uts", "ns/uts", "CLONE_NEWUTS"},
};

static uint64_t inode_of(int task, const char *name)
{
	struct stat status;

	return fstatat(task, name, &status, 0) == 0 ? status.st_ino : 0;
}

void namespaces_read(int task, struct namespaces *out)
{
	for (size_t i = 0; i < NAMESPACE_TYPES; i++) {
		out->own[i] = inode_of(task, types[i].own);
		out->born_into[i] =
		    strcmp(types[i].own, types[i].children) == 0 ? out->own[i] : inode_of(task, types[i].children);
		/* Not created yet: the pid namespace that unshare(2) asked for comes with the first child. */
		if (out->born_into[i] == 0 && strcmp(types[i].own, types[i].children) != 0)
			out->born_into[i] = UINT64_MAX;
	}
	out->known = out->own[NAMESPACE_TYPES - 1] != 0;
}

size_t namespaces_unexpected(const struct namespaces *parent, const struct namespaces *actual,
			     const char *names[NAMESPACE_TYPES])
{
	size_t count = 0;

	if (!parent->known || !actual->known)
		return 0;
	for (size_t i = 0; i < NAMESPACE_TYPES; i++)
		if (actual->own[i] != parent->born_into[i] && actual->own[i] != 0 && parent->born_into[i] != UINT64_MAX)
			names[count++] = types[i].flag;
	return count;
}
