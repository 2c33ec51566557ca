#include "namespaces.h"

#include <string.h>

#include "os/procfs.h"

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

void namespaces_read(int task, bool newborn, struct namespaces *out)
{
	for (size_t i = 0; i < NAMESPACE_TYPES; i++) {
		out->own[i] = procfs_namespace(task, types[i].own);
		bool same = newborn || strcmp(types[i].own, types[i].children) == 0;
		out->born_into[i] = same ? out->own[i] : procfs_namespace(task, types[i].children);
		/* Not created yet: the pid namespace that unshare(2) asked for comes with the first child. */
		if (out->born_into[i] == 0 && strcmp(types[i].own, types[i].children) != 0)
			out->born_into[i] = UINT64_MAX;
	}
	out->known = out->own[NAMESPACE_TYPES - 1] != 0;
}

/* Places in `types`. */
enum { TYPE_MOUNT = 2, TYPE_NETWORK = 3, TYPE_PID = 4, TYPE_USER = 6 };

bool namespaces_of_names(const struct namespaces *namespaces, uint64_t *mounts, uint64_t *pids)
{
	*mounts = namespaces->own[TYPE_MOUNT];
	*pids = namespaces->own[TYPE_PID];
	return namespaces->known && *mounts != 0 && *pids != 0;
}

uint64_t namespaces_network(const struct namespaces *namespaces)
{
	return namespaces->own[TYPE_NETWORK];
}

bool namespaces_may_be(const struct namespaces *namespaces, uint64_t user_namespace, uint64_t mount_namespace)
{
	return !namespaces->known ||
	       (namespaces->own[TYPE_USER] == user_namespace && namespaces->own[TYPE_MOUNT] == mount_namespace);
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
