/*
 * What several of the means share that watch for who watches, name their outcomes or need the loopback interface.
 */
#pragma once

#include "ev.h"

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>

/*
 * The outcome of a call that one user may make and another may not, or one kernel has and another has not: the row
 * finds {NAME} (ok or failed) and {NAME_errno}.
 */
EV_UNUSED static void tried(const char *name, long result)
{
	did("try %s=%s %s_errno=%s", name, result < 0 ? "failed" : "ok", name, result < 0 ? error_name(errno) : "none");
}

/* The parent of a process, when the process is one of those who watch; else 0. */
EV_UNUSED static pid_t parent_of_watcher(pid_t pid)
{
	char name[64], text[512] = "";

	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return 0;
	close(fd);
	const char *command = strchr(text, '('), *rest = strrchr(text, ')');
	if (!command || !rest || strncmp(command, "(assure-", 8) != 0)
		return 0;
	return (pid_t)strtol(rest + 4, NULL, 10);
}

/* Those of our ancestors who watch, the nearest first. It ends with the first who does not: other runs are not ours. */
EV_UNUSED static int watchers(pid_t *found, int most)
{
	int count = 0;

	for (pid_t pid = getppid(), parent = 0; count < most && (parent = parent_of_watcher(pid)) > 0; pid = parent)
		found[count++] = pid;
	return count;
}

/* In a network namespace of our own, the loopback interface is down. */
EV_UNUSED static void raise_loopback(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	MUST(fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0);
	close(fd);
}

/* A mount namespace of our own, from which nothing comes out. */
EV_UNUSED static void private_mounts(void)
{
	space(CLONE_NEWNS);
	MUST(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
}

/* Connect to a Unix socket by its path, say something and hear the answer. */
EV_UNUSED static void talk(const char *path, const char *text)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char answer[64];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	MUST(fd >= 0 && strlen(path) < sizeof(address.sun_path));
	strcpy(address.sun_path, path);
	MUST(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	MUST(write(fd, text, strlen(text)) == (ssize_t)strlen(text) && read(fd, answer, sizeof(answer)) > 0);
	close(fd);
}
