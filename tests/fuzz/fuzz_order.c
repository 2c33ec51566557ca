/*
 * Calls on the file system made for somebody else, with every name, flag and link that he may choose, as a performer
 * makes them: nothing outside his root changes, the descriptor that comes back is the file that is told, closes on exec,
 * and none stays behind.
 *
 * Input: how many links (1 byte), each with its place (1) and text (a length byte and its bytes); then orders until its
 * end, see compose().
 */
#include "../../tracer/act/order.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/stat.h>

#include "fuzz.h"
#include "os/procfs.h"

enum { FOLDERS = 3, LINKS = 4, ORDERS = 6, VALUE = 64 };

static int folder = -1, root = -1;
static const char secret[] = "outside";

/* A root and a working directory of its own, which no other thread shares. */
static struct {
	pthread_t thread;
	sem_t begin, end;
	struct input input;
} performer;

static void check_outside(void)
{
	char text[sizeof(secret) + 1];
	struct stat status;
	int fd = openat(folder, "outside/secret", O_RDONLY | O_CLOEXEC);

	need(fd >= 0 && fstat(fd, &status) == 0 && read(fd, text, sizeof(text)) == (ssize_t)strlen(secret));
	close(fd);
	need(memcmp(text, secret, strlen(secret)) == 0 && status.st_mode == (S_IFREG | 0600) &&
	     status.st_uid == geteuid() && status.st_nlink == 1 && status.st_mtime == 1);
}

/* --- his files --- */

static void empty_folder(int directory)
{
	DIR *entries = fdopendir(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));

	need(entries != NULL);
	for (struct dirent *entry; (entry = readdir(entries));) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(directory, entry->d_name, 0) == 0)
			continue;
		int below = openat(directory, entry->d_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		need(below >= 0);
		empty_folder(below);
		close(below);
		need(unlinkat(directory, entry->d_name, AT_REMOVEDIR) == 0);
	}
	closedir(entries);
}

static const char *const names[] = {"file", "other", "l", "m", "none", "a", "b", "fifo", ""};

static void make_files(struct input *input)
{
	unsigned count = (unsigned)take_number(input, 1) % (LINKS + 1);
	static const char *const places[] = {"l", "m", "a/l", "a/b/m"};
	char text[256];

	/* Under the umask of the last order, which who carries them out remembers. */
	need(mkdirat(root, "a", 0) == 0 && fchmodat(root, "a", 0700, 0) == 0);
	need(mkdirat(root, "a/b", 0) == 0 && fchmodat(root, "a/b", 01777, 0) == 0);
	put_file(root, "file", BYTES("x"));
	put_file(root, "a/file", BYTES("y"));
	need(fchmodat(root, "file", 0644, 0) == 0 && fchmodat(root, "a/file", 0644, 0) == 0);
	need(mknodat(root, "a/fifo", S_IFIFO | 0600, 0) == 0);
	for (unsigned i = 0; i < count; i++) {
		const char *place = places[take_number(input, 1) % LINKS];
		(void)symlinkat(take_string(input, text), root, place);
	}
}

/* --- orders --- */

static void take_place(struct order_place *place, struct input *input, const int folders[FOLDERS])
{
	unsigned form = (unsigned)take_number(input, 1);
	char text[256];

	place->directory = folders[form % FOLDERS];
	place->base = root;
	if (form & 32) {
		/* One component, as the decoder makes them; never one that leads upwards. */
		take_string(input, text);
		text[strcspn(text, "/")] = 0;
		if (strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
			text[0] = 0;
		snprintf(place->name, sizeof(place->name), "%s", text);
	} else {
		snprintf(place->name, sizeof(place->name), "%s",
			 names[take_number(input, 1) % (sizeof(names) / sizeof(names[0]))]);
	}
	if (form & 64 && place->name[0])
		strcat(place->name, "/");
	place->walk = (form & 128) != 0;
	place->in_root = true;
	if (place->walk)
		snprintf(place->path, sizeof(place->path), "%s", take_string(input, text));
}

/* What was seen before is true, or of another moment. */
static void look_before(struct order *order, unsigned form)
{
	struct stat status;

	if (form & 1 || fstatat(order->place.directory, order->place.name, &status,
				AT_SYMLINK_NOFOLLOW | (order->place.name[0] ? 0 : AT_EMPTY_PATH)) != 0)
		return;
	order->place.link = S_ISLNK(status.st_mode) && (form & 2);
	if (order->place.link && fstatat(order->place.directory, order->place.name, &status, 0) != 0)
		return;
	order->before = (struct order_identity){
	    .known = true,
	    .dev_major = (uint32_t)(status.st_dev >> 8 & 0xfff),
	    .dev_minor = (uint32_t)(status.st_dev & 0xff),
	    .ino = status.st_ino,
	    .mode = (uint16_t)status.st_mode,
	    .links = (uint32_t)status.st_nlink,
	};
}

static void compose(struct order *order, struct input *input, const int folders[FOLDERS], const char value[VALUE])
{
	static const mode_t types[] = {0, S_IFREG, S_IFIFO, S_IFSOCK};
	char text[256];

	*order = (struct order){.kind = (enum order_kind)(take_number(input, 1) % ORDER_KIND_COUNT)};
	unsigned form = (unsigned)take_number(input, 1);
	take_place(&order->place, input, folders);
	take_place(&order->to, input, folders);
	look_before(order, form);
	order->how.flags = take_number(input, 4);
	order->how.mode = take_number(input, 2);
	order->strict_flags = (form & 4) != 0;
	/* Devices are not for us to open. */
	order->mode = (mode_t)(take_number(input, 2) & 07777);
	if (order->kind == ORDER_MKNOD)
		order->mode |= types[form >> 3 & 3];
	order->umask = (mode_t)(take_number(input, 2) & 0777);
	order->flags = take_number(input, 2);
	order->at_flags = take_number(input, 2);
	order->watched = (form & 32) != 0;
	order->length = (int64_t)take_number(input, 8);
	order->user = (uid_t)take_number(input, 4);
	order->group = (gid_t)take_number(input, 4);
	order->has_times = (form & 64) != 0;
	order->times[0] = (struct timespec){(time_t)take_number(input, 8), (long)take_number(input, 4)};
	order->times[1] = order->times[0];
	snprintf(order->text, sizeof(order->text), "%s", take_string(input, text));
	order->value_size = take_number(input, 1) % VALUE;
	order->value = value;
	if (order->kind == ORDER_OPEN)
		order_prepare_open(order);
	order->has_umask = order_may_create(order);
}

static void check(const struct order *order, const struct order_outcome *outcome)
{
	struct stat status;

	need(outcome->state <= ORDER_WAITS && outcome->error >= 0 && outcome->error < 4096);
	need(outcome->state == ORDER_DONE || outcome->descriptor < 0);
	if (outcome->descriptor < 0)
		return;
	need(!outcome->error && fcntl(outcome->descriptor, F_GETFD) == FD_CLOEXEC);
	need(fstat(outcome->descriptor, &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)));
	need(outcome->object.known && outcome->object.ino == status.st_ino);
	if (outcome->created)
		need(order->how.flags & O_CREAT && order->has_umask && !(status.st_mode & order->umask & 0777));
	close(outcome->descriptor);
}

static void perform(struct input *input)
{
	int folders[FOLDERS];
	struct order order;
	char value[VALUE];

	make_files(input);
	memset(value, 'v', sizeof(value));
	folders[0] = fcntl(root, F_DUPFD_CLOEXEC, 0);
	folders[1] = openat(root, "a", O_PATH | O_DIRECTORY | O_CLOEXEC);
	folders[2] = openat(root, "a/b", O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (unsigned i = 0; i < ORDERS && input->size > 0; i++) {
		compose(&order, input, folders, value);
		struct order_outcome outcome = order_carry_out(&order);
		check(&order, &outcome);
	}
	for (size_t i = 0; i < FOLDERS; i++)
		close(folders[i]);
	(void)fchmod(root, 0700);
	empty_folder(root);
	check_outside();
}

static void *serve(void *unused)
{
	(void)unused;
	need(order_prepare() && fchdir(root) == 0 && chroot(".") == 0 && fchdir(procfs_root()) == 0);
	for (;;) {
		if (sem_wait(&performer.begin) != 0)
			continue;
		perform(&performer.input);
		sem_post(&performer.end);
	}
	return NULL;
}

static void prepare(void)
{
	const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};

	folder = private_place();
	need(mkdirat(folder, "root", 0700) == 0 && mkdirat(folder, "outside", 0700) == 0);
	put_file(folder, "outside/secret", bytes_of(secret));
	need(fchmodat(folder, "outside/secret", 0600, 0) == 0 && utimensat(folder, "outside/secret", old, 0) == 0);
	root = openat(folder, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	need(root >= 0 && procfs_open(NULL));
}
PREPARE_BY(prepare)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool begun;

	/* A crash cannot be written from inside that root; an input of this size is also printed. */
	if (size > 256)
		return -1;
	if (!begun) {
		need(sem_init(&performer.begin, 0, 0) == 0 && sem_init(&performer.end, 0, 0) == 0 &&
		     pthread_create(&performer.thread, NULL, serve, NULL) == 0);
		begun = true;
	}
	struct open_set before = open_now();
	performer.input = (struct input){data, size};
	sem_post(&performer.begin);
	while (sem_wait(&performer.end) != 0 && errno == EINTR)
		;
	need_same_open(&before);
	return 0;
}
