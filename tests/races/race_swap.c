/*
 * race_swap symlink-file ROUNDS: calls on `f`, while another process exchanges f and g, of which one is a symbolic link
 * to a/file (outcome `link`) and the other one a file (outcome `file`).
 *
 * Both are held open, so that what a call did shows on their descriptors.
 */
#include "race.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

enum { SIDES = 2, NUMBER_SIZE = 32 };

static int fds[SIDES];
static struct stat objects[SIDES];
static char folder[PATH_MAX];
static pid_t tid;
static bool no_attributes;
static struct race_area *area;

static void say(const char *call, const char *name, int side, const char *key, const char *value)
{
	race_begin(call, name, tid, side ? "file" : "link", 0);
	if (side == 0)
		race_is("path", "\"%s/a/file\"", folder);
	else /* its name is a matter of the moment */
		race_is("path", "[\"%s/f\",\"%s/g\"]", folder, folder);
	race_is("ino", "\"%llu\"", (unsigned long long)objects[side].st_ino);
	race_is(key, "%s", value);
	race_end();
}

/* Where something is now as it was asked for, which it was nowhere before. */
static int only(bool first, bool second)
{
	if (first == second)
		race_die("the change is not in one place");
	return second;
}

static struct stat status(int side)
{
	struct stat found;

	if (fstat(fds[side], &found) != 0)
		race_die("fstat");
	return found;
}

static void call_chmod(void)
{
	static mode_t mode = 0600;
	char value[NUMBER_SIZE];

	do
		mode = 0600 | ((mode + 1) & 077);
	while ((status(0).st_mode & 07777) == mode || (status(1).st_mode & 07777) == mode);
	if (fchmodat(AT_FDCWD, "f", mode, 0) != 0)
		race_die("fchmodat");
	snprintf(value, sizeof(value), "\"%04o\"", mode);
	say("chmod", "fchmodat", only((status(0).st_mode & 07777) == mode, (status(1).st_mode & 07777) == mode), "mode",
	    value);
}

static void call_truncate(long length)
{
	char value[NUMBER_SIZE];

	if (truncate("f", length) != 0)
		race_die("truncate");
	snprintf(value, sizeof(value), "%ld", length);
	say("truncate", "truncate", only(status(0).st_size == length, status(1).st_size == length), "args.length",
	    value);
}

static void call_open(void)
{
	struct stat found;
	int fd = openat(AT_FDCWD, "f", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &found) != 0)
		race_die("openat");
	close(fd);
	say("open", "openat", only(found.st_ino == objects[0].st_ino, found.st_ino == objects[1].st_ino), "kind",
	    "\"file.write\"");
}

static bool has_attribute(int side, const char *value, size_t size)
{
	char found[NUMBER_SIZE];

	return fgetxattr(fds[side], "user.race", found, sizeof(found)) == (ssize_t)size &&
	       memcmp(found, value, size) == 0;
}

static void call_setxattr(long number)
{
	char value[NUMBER_SIZE], size[NUMBER_SIZE];

	if (no_attributes)
		return;
	size_t length = (size_t)snprintf(value, sizeof(value), "%ld", number);
	if (setxattr("f", "user.race", value, length, 0) != 0) {
		if (errno != ENOTSUP && errno != EPERM)
			race_die("setxattr");
		no_attributes = true;
		printf("{\"call\":\"setxattr\",\"skip\":\"%s\"}\n", strerror(errno));
		return;
	}
	snprintf(size, sizeof(size), "%zu", length);
	say("setxattr", "setxattr", only(has_attribute(0, value, length), has_attribute(1, value, length)), "args.size",
	    size);
}

static void *make_calls(void *given)
{
	long cycles = *(const long *)given;

	tid = gettid();
	for (long i = 1; i <= cycles; i++) {
		race_pace(area, i);
		call_chmod();
		race_pace(area, i);
		call_truncate(i);
		race_pace(area, i);
		call_open();
		race_pace(area, i);
		call_setxattr(i);
	}
	return NULL;
}

static void exchange(struct race_area *unused, unsigned random)
{
	(void)unused;
	race_nap(random);
	if (renameat2(AT_FDCWD, "f", AT_FDCWD, "g", RENAME_EXCHANGE) != 0)
		_exit(1);
}

int main(int argc, char **argv)
{
	pthread_t caller;

	if (argc != 3)
		return 64;
	long cycles = (race_number(argv[2]) + 3) / 4;
	if (!getcwd(folder, sizeof(folder)) || mkdir("a", 0755) != 0 || symlink("a/file", "f") != 0)
		race_die("prepare");
	fds[0] = open("a/file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	fds[1] = open("g", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fds[0] < 0 || fds[1] < 0)
		race_die("open");
	for (int i = 0; i < SIDES; i++)
		objects[i] = status(i);
	area = race_map(RACE_SHARED);
	struct race_flipping flipping = {.by = RACE_SHARED, .flip = exchange, .area = area};
	race_start(&flipping);
	if (pthread_create(&caller, NULL, make_calls, &cycles) != 0)
		race_die("pthread_create");
	pthread_join(caller, NULL);
	race_stop(&flipping);
	return 0;
}
