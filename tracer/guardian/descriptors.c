/*
 * What the command inherits, for the record of the run's start.
 */
#include "descriptors.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/procfs.h"

static void add_peer(int fd, struct arena *arena, struct effect_peer *peer)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof(address);
	char text[INET6_ADDRSTRLEN];

	if (getpeername(fd, (struct sockaddr *)&address, &size) != 0)
		return;
	peer->present = true;
	peer->port = -1;
	if (address.ss_family == AF_INET) {
		struct sockaddr_in in;
		memcpy(&in, &address, sizeof(in));
		peer->family = BYTES("inet");
		peer->address = arena_copy(arena, bytes_of(inet_ntop(AF_INET, &in.sin_addr, text, sizeof(text))));
		peer->port = ntohs(in.sin_port);
	} else if (address.ss_family == AF_INET6) {
		struct sockaddr_in6 in6;
		memcpy(&in6, &address, sizeof(in6));
		peer->family = BYTES("inet6");
		peer->address = arena_copy(arena, bytes_of(inet_ntop(AF_INET6, &in6.sin6_addr, text, sizeof(text))));
		peer->port = ntohs(in6.sin6_port);
	} else if (address.ss_family == AF_UNIX) {
		struct sockaddr_un un;
		memcpy(&un, &address, sizeof(un));
		peer->family = BYTES("unix");
		size_t used =
		    size > offsetof(struct sockaddr_un, sun_path) ? size - offsetof(struct sockaddr_un, sun_path) : 0;
		/* Of a name without an end the kernel counts one byte more than there is. */
		if (used > sizeof(un.sun_path))
			used = sizeof(un.sun_path);
		bool abstract = used > 0 && un.sun_path[0] == 0;
		struct bytes path = {un.sun_path, abstract ? used : strnlen(un.sun_path, used)};
		if (abstract)
			un.sun_path[0] = '@';
		if (path.size > 0)
			peer->path = arena_copy(arena, path);
	} else {
		peer->family = arena_format(arena, "%d", address.ss_family);
	}
}

static void describe(int fd, struct arena *arena, struct record_descriptor *out)
{
	char text[PATH_MAX];
	ssize_t length = procfs_own_fd(fd, text, sizeof(text));
	int access = fcntl(fd, F_GETFL) & O_ACCMODE;

	*out = (struct record_descriptor){.fd = fd, .peer = {.port = -1}};
	if (length > 0)
		out->path = arena_copy(arena, (struct bytes){text, (size_t)length});
	out->access = access == O_RDONLY ? BYTES("r") : access == O_WRONLY ? BYTES("w") : BYTES("rw");
	add_peer(fd, arena, &out->peer);
}

size_t descriptors_inherited(struct arena *arena, struct record_descriptor *out, size_t limit)
{
	DIR *directory = opendir("/proc/self/fd");
	size_t count = 0;

	if (!directory)
		return 0;
	for (struct dirent *entry; count < limit && (entry = readdir(directory)) != NULL;) {
		char *end;
		long fd = strtol(entry->d_name, &end, 10);
		if (end == entry->d_name || *end || fd == dirfd(directory) || fd > INT_MAX)
			continue;
		/* Ours all close at an exec; what does not is the caller's, and the command's. */
		int flags = fcntl((int)fd, F_GETFD);
		if (flags < 0 || (flags & FD_CLOEXEC))
			continue;
		describe((int)fd, arena, &out[count++]);
	}
	closedir(directory);
	return count;
}

void descriptors_hold_standard(bool closed[3])
{
	for (int fd = 0; fd <= 2; fd++) {
		closed[fd] = fcntl(fd, F_GETFD) < 0;
		if (closed[fd])
			(void)!open("/dev/null", O_RDWR | O_CLOEXEC); /* takes the lowest free number, which is fd */
	}
}
