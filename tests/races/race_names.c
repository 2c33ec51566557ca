/*
 * race_names KIND ROUNDS: calls by path, while somebody makes the path mean another of two folders, a and b.
 *
 *   thread, peer, shared   the path is `?/NAME`, and `?` is written by a thread, by a process with the same memory that
 *                          is not of the thread group, or by a process with a shared mapping
 *   symlink                the path is `s/NAME`, and another process exchanges the symbolic links s and z, to a and b
 *   parent                 the path is `p/NAME`, and another process exchanges the folders p and q, which are a and b
 *   dirfd                  the path is NAME below a descriptor whose number a thread uses for a and for b by turns
 *
 * Names are used once. What is where is looked up through descriptors of the two folders, which nobody exchanges.
 */
#include "race.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

enum { SIDES = 2, NAME_SIZE = 64, MODE = 0600, NEW_MODE = 0640 };

enum kind { THREAD, PEER, SHARED, SYMLINK, PARENT, DIRFD, KINDS };

static const char *const kind_names[KINDS] = {"thread", "peer", "shared", "symlink", "parent", "dirfd"};

/* A name in both folders: its inode number there, or 0. */
struct sides {
	int64_t ino[SIDES];
	struct stat stat[SIDES];
};

static enum kind kind;
static struct race_area *area;
static int at = AT_FDCWD, side_fds[SIDES], fixed_fd;
static char *path, *tail;
static char name[NAME_SIZE], folder[PATH_MAX];
static pid_t tid;
static long number;
static bool moved; /* the file of this number lies in fixed/ */

/* What a failure leaves absent, so that a record of it can say no number. */
enum { NO_INO = 0, NOT_SAID = -1 };

static void say_ino(const char *key, int64_t ino)
{
	char plain[NAME_SIZE];

	if (ino > 0) {
		race_is(key, "\"%lld\"", (long long)ino);
	} else if (ino == NO_INO) {
		snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(key, "?"), key);
		race_is(plain, "null");
	}
}

/* The object that the line is about. */
static void say_object(const char *field, const char *object, int side, int64_t ino)
{
	const char *dot = *field ? "." : "";
	char path_key[NAME_SIZE], ino_key[NAME_SIZE], given_key[NAME_SIZE];
	static const char *const letters[SIDES] = {"a", "b"};

	snprintf(path_key, sizeof(path_key), "%s%spath", field, dot);
	snprintf(ino_key, sizeof(ino_key), "%s%sino%s", field, dot, kind == PARENT ? "" : "?");
	snprintf(given_key, sizeof(given_key), "%s%sas_given", field, dot);
	if (kind == PARENT || side < 0) {
		/* Which of both names a folder had is of one moment; which folder it was is said by the object. */
		const char *first = kind == PARENT ? "p" : "a", *second = kind == PARENT ? "q" : "b";
		race_is(path_key, "[\"%s/%s/%s\",\"%s/%s/%s\"]", folder, first, object, folder, second, object);
	} else {
		race_is(path_key, "\"%s/%s/%s\"", folder, letters[side], object);
	}
	say_ino(ino_key, ino);
	if (kind <= SHARED && side >= 0)
		race_is(given_key, "\"%s/%s\"", letters[side], object);
}

/* An object at a place that nobody changes. */
static void say_fixed(const char *field, const char *object, int64_t ino)
{
	const char *dot = *field ? "." : "";
	char key[NAME_SIZE];

	snprintf(key, sizeof(key), "%s%spath", field, dot);
	race_is(key, "\"%s/fixed/%s\"", folder, object);
	snprintf(key, sizeof(key), "%s%sino?", field, dot);
	say_ino(key, ino);
}

static int64_t inode(int fd, const char *object, struct stat *found)
{
	return fstatat(fd, object, found, AT_SYMLINK_NOFOLLOW) == 0 ? (int64_t)found->st_ino : NO_INO;
}

static struct sides look(const char *object)
{
	struct sides sides;

	for (int i = 0; i < SIDES; i++)
		sides.ino[i] = inode(side_fds[i], object, &sides.stat[i]);
	return sides;
}

/* Where the name appeared or went, or -1. */
static int changed(const struct sides *before, const struct sides *after)
{
	for (int i = 0; i < SIDES; i++)
		if (before->ino[i] != after->ino[i])
			return i;
	return -1;
}

/* The side that a failure was about, when only there the name is (not): it is what the error says. -1: either. */
static int where(const struct sides *sides, bool there)
{
	bool first = (sides->ino[0] != 0) == there, second = (sides->ino[1] != 0) == there;

	return first == second ? -1 : second;
}

static void set_name(char letter)
{
	snprintf(name, sizeof(name), "%c%ld", letter, number);
	memcpy(tail, name, strlen(name) + 1);
}

/* A failure has to be one that the two places explain. */
static int side_of_failure(int error, const struct sides *before)
{
	if (error == ENOENT)
		return where(before, false);
	if (error == EEXIST)
		return where(before, true);
	errno = error;
	race_die(name);
}

/* What the object is that a call is about which failed, or which changed what `sides` holds. */
static int64_t object_of(int error, int side, const struct sides *sides)
{
	if (error == ENOENT)
		return NO_INO;
	return side < 0 ? NOT_SAID : sides->ino[side];
}

static void begin(const char *call, const char *syscall_name, int side, int error)
{
	race_begin(call, syscall_name, tid, side < 0 ? "either" : side ? "b" : "a", error);
}

/* A call that makes or removes a name. */
static void say_change(const char *call, const char *syscall_name, int result, const struct sides *before)
{
	int error = result < 0 ? errno : 0;
	struct sides after = look(name);
	int side = error ? side_of_failure(error, before) : changed(before, &after);

	if (side < 0 && !error)
		race_die("nothing was changed");
	begin(call, syscall_name, side, error);
	say_object("", name, side, object_of(error, side, !error && after.ino[side] ? &after : before));
	race_end();
}

static void call_mkdir(void)
{
	set_name('d');
	struct sides before = look(name);
	say_change("mkdir", "mkdirat", mkdirat(at, path, 0700), &before);
}

static void call_mkdir_again(void)
{
	struct sides before = look(name);

	say_change("mkdir again", "mkdirat", mkdirat(at, path, 0700), &before);
}

static void call_rmdir(void)
{
	struct sides before = look(name);

	say_change("rmdir", "unlinkat", unlinkat(at, path, AT_REMOVEDIR), &before);
}

static void say_open(const char *call, int fd, const struct sides *before)
{
	int error = fd < 0 ? errno : 0;
	struct stat opened;
	struct sides after = look(name);
	int side = error ? side_of_failure(error, before) : -1;

	if (!error) {
		if (fstat(fd, &opened) != 0)
			race_die("fstat");
		close(fd);
		int64_t ino = (int64_t)opened.st_ino;
		side = ino == after.ino[0] ? 0 : ino == after.ino[1] ? 1 : -1;
		if (side < 0)
			race_die("what was opened is nowhere");
	}
	begin(call, "openat", side, error);
	say_object("", name, side, object_of(error, side, &after));
	if (!error)
		race_is("kind", before->ino[side] ? "\"file.write\"" : "\"file.create\"");
	race_end();
}

static void call_create(void)
{
	set_name('f');
	struct sides before = look(name);
	say_open("open new", openat(at, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, MODE), &before);
}

static void call_open(void)
{
	struct sides before = look(name);

	say_open("open", openat(at, path, O_WRONLY | O_CREAT | O_CLOEXEC, MODE), &before);
}

/* Calls that change a property: the side where it is now as asked for. */
static void say_property(const char *call, const char *syscall_name, int result, const struct sides *before,
			 const bool now[SIDES], const char *key, const char *value)
{
	int error = result < 0 ? errno : 0;
	int side = error ? side_of_failure(error, before) : now[0] ? 0 : now[1] ? 1 : -1;

	if (!error && (side < 0 || (now[0] && now[1])))
		race_die("the property does not say where it was changed");
	begin(call, syscall_name, side, error);
	say_object("", name, side, object_of(error, side, before));
	race_is(key, "%s", value);
	race_end();
}

static void call_setxattr(void)
{
	char value[NAME_SIZE], found[NAME_SIZE], place[NAME_SIZE * 2];
	struct sides before = look(name);
	bool now[SIDES];

	if (kind == DIRFD) /* it takes no descriptor */
		return;
	int size = snprintf(value, sizeof(value), "%ld", number);
	int result = setxattr(path, "user.race", value, (size_t)size, 0);
	int error = errno;
	if (result < 0 && (error == ENOTSUP || error == EPERM)) {
		if (number == 0)
			printf("{\"call\":\"setxattr\",\"skip\":\"%s\"}\n", strerror(error));
		return;
	}
	for (int i = 0; i < SIDES; i++) {
		snprintf(place, sizeof(place), "/proc/self/fd/%d/%s", side_fds[i], name);
		now[i] = getxattr(place, "user.race", found, sizeof(found)) == size;
	}
	errno = error;
	say_property("setxattr", "setxattr", result, &before, now, "args.name", "\"user.race\"");
}

static void call_chmod(void)
{
	struct sides before = look(name), after;
	bool now[SIDES];
	int result = fchmodat(at, path, NEW_MODE, 0), error = errno;

	after = look(name);
	for (int i = 0; i < SIDES; i++)
		now[i] = after.ino[i] && (after.stat[i].st_mode & 07777) == NEW_MODE;
	errno = error;
	say_property("chmod", "fchmodat", result, &before, now, "mode", "\"0640\"");
}

static void call_truncate(void)
{
	char value[NAME_SIZE];
	struct sides before = look(name), after;
	bool now[SIDES];

	if (kind == DIRFD) /* it takes no descriptor */
		return;
	int result = truncate(path, number + 1), error = errno;

	after = look(name);
	for (int i = 0; i < SIDES; i++)
		now[i] = after.ino[i] && after.stat[i].st_size == number + 1;
	snprintf(value, sizeof(value), "%ld", number + 1);
	errno = error;
	say_property("truncate", "truncate", result, &before, now, "args.length", value);
}

static void call_link(void)
{
	char target[NAME_SIZE];
	struct sides before = look(name);
	struct stat made;

	snprintf(target, sizeof(target), "l%ld", number);
	int error = linkat(at, path, fixed_fd, target, 0) < 0 ? errno : 0;
	int64_t ino = inode(fixed_fd, target, &made);
	int side = error ? side_of_failure(error, &before) : ino == before.ino[1];
	begin("link", "linkat", side, error);
	say_object("", name, side, error ? NO_INO : ino);
	say_fixed("to", target, ino);
	race_end();
}

/* The name that is looked up moves to a place that nobody changes. */
static void call_rename_from(void)
{
	char target[NAME_SIZE];
	struct sides before = look(name);

	snprintf(target, sizeof(target), "r%ld", number);
	int error = renameat(at, path, fixed_fd, target) < 0 ? errno : 0;
	struct sides after = look(name);
	int side = error ? side_of_failure(error, &before) : changed(&before, &after);
	begin("rename from", "renameat", side, error);
	say_object("", name, side, object_of(error, side, &before));
	say_fixed("to", target, object_of(error, side, &before));
	race_end();
	moved = !error;
}

/* A name that stands still moves to one that does not. */
static void call_rename_to(void)
{
	char source[NAME_SIZE];
	struct sides old = look(name);
	int from = old.ino[1] != 0;

	snprintf(source, sizeof(source), "%c%ld", moved ? 'r' : 'f', number);
	set_name('m');
	struct sides before = look(name);
	int error = renameat(moved ? fixed_fd : side_fds[from], source, at, path) < 0 ? errno : 0;
	struct sides after = look(name);
	int side = error ? side_of_failure(error, &before) : changed(&before, &after);
	begin("rename to", "renameat", side, error);
	if (moved)
		say_fixed("", source, object_of(error, side, &after));
	say_object("to", name, side, object_of(error, side, &after));
	race_end();
}

static void call_unlink(void)
{
	struct sides before = look(name);

	say_change("unlink", "unlinkat", unlinkat(at, path, 0), &before);
}

static void call_symlink(void)
{
	set_name('s');
	struct sides before = look(name);
	say_change("symlink", "symlinkat", symlinkat("target", at, path), &before);
}

/* In this order: each leaves what the next one needs. */
static void (*const calls[])(void) = {
    call_mkdir, call_mkdir_again, call_rmdir,       call_create,    call_setxattr, call_link,    call_open,
    call_chmod, call_truncate,    call_rename_from, call_rename_to, call_unlink,   call_symlink,
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

static void *make_calls(void *given)
{
	long cycles = *(const long *)given;

	tid = gettid();
	for (number = 0; number < cycles; number++)
		for (size_t i = 0; i < CALLS; i++) {
			race_pace(area, number);
			calls[i]();
		}
	return NULL;
}

static void flip_letter(struct race_area *where_to, unsigned random)
{
	*(volatile char *)where_to->text = random & 1 ? 'a' : 'b';
}

static void exchange(struct race_area *unused, unsigned random)
{
	const char *first = kind == PARENT ? "p" : "s", *second = kind == PARENT ? "q" : "z";

	(void)unused;
	race_nap(random);
	if (renameat2(AT_FDCWD, first, AT_FDCWD, second, RENAME_EXCHANGE) != 0)
		_exit(1);
}

static void use_number_again(struct race_area *unused, unsigned random)
{
	(void)unused;
	dup2(side_fds[random & 1], at);
}

static void prepare(void)
{
	const char *first = kind == PARENT ? "p" : "a", *second = kind == PARENT ? "q" : "b";

	if (!getcwd(folder, sizeof(folder)) || mkdir(first, 0755) != 0 || mkdir(second, 0755) != 0 ||
	    mkdir("fixed", 0755) != 0)
		race_die("folders");
	side_fds[0] = open(first, O_PATH | O_DIRECTORY | O_CLOEXEC);
	side_fds[1] = open(second, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fixed_fd = open("fixed", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (side_fds[0] < 0 || side_fds[1] < 0 || fixed_fd < 0)
		race_die("open");
	if (kind == SYMLINK && (symlink("a", "s") != 0 || symlink("b", "z") != 0))
		race_die("symlink");
	path = area->text;
	snprintf(path, sizeof(area->text), "%c/", kind == SYMLINK ? 's' : kind == PARENT ? 'p' : 'a');
	tail = path + 2;
	if (kind == DIRFD) {
		tail = path;
		at = dup(side_fds[0]);
	}
}

int main(int argc, char **argv)
{
	static const race_flip flips[KINDS] = {flip_letter, flip_letter, flip_letter,
					       exchange,    exchange,    use_number_again};
	static const enum race_flipper by[KINDS] = {RACE_THREAD, RACE_PEER,   RACE_SHARED,
						    RACE_SHARED, RACE_SHARED, RACE_THREAD};
	pthread_t caller;

	if (argc != 3)
		return 64;
	while (kind < KINDS && strcmp(argv[1], kind_names[kind]) != 0)
		kind++;
	if (kind == KINDS)
		return 64;
	long cycles = (race_number(argv[2]) + CALLS - 1) / CALLS;
	area = race_map(by[kind]);
	prepare();
	struct race_flipping flipping = {.by = by[kind], .flip = flips[kind], .area = area};
	race_start(&flipping);
	if (pthread_create(&caller, NULL, make_calls, &cycles) != 0)
		race_die("pthread_create");
	pthread_join(caller, NULL);
	race_stop(&flipping);
	return 0;
}
