/*
 * Which file a command name means.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guardian/guardian.h"

/* 0 when it can be executed, else an errno value. */
static int try_file(const char *path)
{
	struct stat status;

	if (stat(path, &status) != 0)
		return errno;
	if (S_ISDIR(status.st_mode))
		return EISDIR;
	if (!S_ISREG(status.st_mode))
		return EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

static bool fail(struct err *err, const char *command, int error)
{
	err_exit_status(err, error == ENOENT ? 127 : 126);
	err_set(err, error, "%s", command);
	if (error == ENOENT)
		err_hint(err, "the command was not found; check its name and PATH");
	else if (error == EISDIR)
		err_hint(err, "name a program in that folder");
	else if (error == EACCES)
		err_hint(err, "make it executable (chmod +x), or name its interpreter in front of it");
	return false;
}

bool guardian_find_command(const char *command, char *out, size_t size, struct err *err)
{
	if (!*command)
		return fail(err, "the command's name is empty", ENOENT);
	if (strlen(command) >= size)
		return fail(err, "the command's name", ENAMETOOLONG);
	if (strchr(command, '/')) {
		int error = try_file(command);
		if (error)
			return fail(err, command, error);
		snprintf(out, size, "%s", command);
		return true;
	}
	/* As glibc: without PATH, the system's own folders. A folder that may not be searched decides only if no other has it. */
	const char *path = getenv("PATH");
	if (!path)
		path = "/bin:/usr/bin";
	int worst = ENOENT;
	for (const char *start = path;; start++) {
		size_t length = strcspn(start, ":");
		int written = snprintf(out, size, "%.*s%s%s", (int)length, start, length ? "/" : "", command);
		int error = written < 0 || (size_t)written >= size ? ENAMETOOLONG : try_file(out);
		if (error == 0)
			return true;
		if (error == EACCES)
			worst = EACCES;
		start += length;
		if (!*start)
			break;
	}
	return fail(err, command, worst);
}
