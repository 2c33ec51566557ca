/*
 * The seal of a run: a file of its own, because it says what the run's file is.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "store_file.h"

bool store_digest(const char *home, const char *run, uint64_t *size, struct digest *out, struct err *err)
{
	char file[STORE_PATH_SIZE];

	if (!store_path(file, err, home, "runs", run, STORE_FILE, NULL))
		return false;
	int fd CLEANUP_FD = open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, errno, "seal run: %s", file);
	return digest_of_file(fd, out, size, err) || err_context(err, "seal run: %s", file);
}

/* Written whole under another name, and then given its own, which never replaces what is there. */
static bool write_and_link(int folder, struct bytes note)
{
	static const char name[] = STORE_SEAL ".new";
	int fd CLEANUP_FD = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	bool good =
	    fd >= 0 && fd_write_full(fd, note.data, note.size) && fsync(fd) == 0 && fd_place(folder, name, STORE_SEAL);
	int number = errno;
	(void)unlinkat(folder, name, 0);
	good = good && fsync(folder) == 0;
	if (!good && number)
		errno = number;
	return good;
}

bool store_write_seal(const char *home, const char *run, struct bytes note, struct err *err)
{
	char path[STORE_PATH_SIZE];

	if (!store_path(path, err, home, "runs", run, NULL))
		return false;
	int folder CLEANUP_FD = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder < 0)
		return err_set(err, errno, "seal run: %s", path);
	(void)unlinkat(folder, STORE_SEAL ".new", 0); /* of one that was killed here */
	return write_and_link(folder, note) || err_set(err, errno, "seal run: %s", path);
}
