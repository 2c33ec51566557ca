/*
 * Private to this room: which namespaces a process is in.
 *
 * clone3(2) cannot be stopped by its flags, which lie in memory. That it put a child into namespaces of its own shows
 * when the child is first seen: they are not those that its parent's children are born into.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NAMESPACE_TYPES = 8 };

struct namespaces {
	bool known;
	uint64_t own[NAMESPACE_TYPES];
	uint64_t born_into[NAMESPACE_TYPES]; /* where its children will be, unless they are put elsewhere */
};

/*
 * Read those of the task behind `task`; `known` is false when they cannot be read. Each costs as much as a system call of
 * its own: `newborn` says that its children are born where it is, which none but itself can change.
 */
void namespaces_read(int task, bool newborn, struct namespaces *out);
/* Those that names depend on. False when they are not known. */
bool namespaces_of_names(const struct namespaces *namespaces, uint64_t *mounts, uint64_t *pids);
/* The network namespace, which abstract names of sockets live in; 0 when it is not known. */
uint64_t namespaces_network(const struct namespaces *namespaces);
/* Is a process with these in both namespaces, or could it be? */
bool namespaces_may_be(const struct namespaces *namespaces, uint64_t user_namespace, uint64_t mount_namespace);
/* Flag names (CLONE_NEW...) of the types in which `actual` differs from where a child of `parent` is born. */
size_t namespaces_unexpected(const struct namespaces *parent, const struct namespaces *actual,
			     const char *names[NAMESPACE_TYPES]);
