/* Locks, leases and watches: others learn something, and nothing is changed. */
#include "ev2.h"

#include <sys/file.h>
#include <sys/inotify.h>

int main(void)
{
	char event[sizeof(struct inotify_event) + NAME_MAX + 1];

	make_file("f", "text\n");
	int fd = open("f", O_RDONLY | O_CLOEXEC), other = open("f", O_RDONLY | O_CLOEXEC);
	MUST(fd >= 0 && other >= 0 && flock(fd, LOCK_EX) == 0 && flock(other, LOCK_EX | LOCK_NB) < 0);
	did("lock f");
	close(other);
	MUST(fcntl(fd, F_SETLEASE, F_RDLCK) == 0 && fcntl(fd, F_GETLEASE) == F_RDLCK);
	did("lease f");
	MUST(fcntl(fd, F_SETLEASE, F_UNLCK) == 0);
	int watch = inotify_init1(IN_CLOEXEC);
	MUST(watch >= 0 && inotify_add_watch(watch, ".", IN_CREATE) >= 0);
	make_file("g", "text\n");
	MUST(read(watch, event, sizeof(event)) > 0);
	did("watch g");
	return 0;
}
