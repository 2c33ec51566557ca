/*
 * Where a path leads, against the kernel's own answer: over names of any bytes, in a small tree of folders and links that
 * the input makes, for a task with a root of its own. What is found is the object that the kernel finds, and what is
 * said of it is an absolute path in the task's root that leads there.
 *
 * Input: how many links (1 byte); for each its place (1) and its text (a length byte and its bytes); how the path is
 * resolved (1), and the path.
 */
#include <errno.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "decode/path.h"
#include "fuzz.h"
#include "os/procfs.h"

enum { LINKS = 6, ARENA = 1 << 20 };

static int folder = -1, task = -1, root = -1;
static struct path_cache *cache;
static struct arena arena;
static struct target target;

static void prepare(void)
{
	static const char *const folders[] = {"task",   "task/fd",  "root",       "root/a",
					      "root/b", "root/a/c", "root/a/c/d", "outside"};
	char text[64];

	folder = private_place();
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		need(mkdirat(folder, folders[i], 0700) == 0);
	put_file(folder, "root/file", BYTES("x"));
	put_file(folder, "root/a/c/file", BYTES("x"));
	put_file(folder, "root/b/\xff\n(\x1b) ", BYTES("x"));
	put_file(folder, "outside/secret", BYTES("x"));
	need(mknodat(folder, "root/b/fifo", S_IFIFO | 0600, 0) == 0);
	snprintf(text, sizeof(text), "%s/root/a/c", PRIVATE_PLACE);
	need(symlinkat(text, folder, "task/cwd") == 0);
	snprintf(text, sizeof(text), "%s/root/b", PRIVATE_PLACE);
	need(symlinkat(text, folder, "task/fd/3") == 0);
	task = openat(folder, "task", O_PATH | O_DIRECTORY | O_CLOEXEC);
	root = openat(folder, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cache = path_cache_new();
	need(task >= 0 && root >= 0 && cache && arena_init(&arena, ARENA) && procfs_open(NULL));
	target = (struct target){
	    .tid = getpid(),
	    .pid = getpid(),
	    .task = task,
	    .memory = -1,
	    .same_mounts = true,
	    .root = root,
	    .root_path = BYTES(PRIVATE_PLACE "/root"),
	};
}
PREPARE_BY(prepare)

/* In which folders links stand; each has one name there. */
static const char *const places[] = {"l", "a/l", "b/l", "a/c/l", "a/c/d/l", "a/m"};

static void make_links(struct input *input)
{
	unsigned count = (unsigned)take_number(input, 1) % (LINKS + 1);
	char text[256];

	for (unsigned i = 0; i < LINKS; i++)
		(void)unlinkat(root, places[i], 0);
	for (unsigned i = 0; i < count; i++) {
		const char *place = places[take_number(input, 1) % LINKS];
		(void)symlinkat(take_string(input, text), root, place);
	}
}

/* While anybody on the host mounts or renames, the kernel may not be sure about ".." and asks to be asked again. */
static int open_in_root(const char *path, struct open_how *how)
{
	long fd;

	do
		fd = syscall(SYS_openat2, root, path, how, sizeof(*how));
	while (fd < 0 && errno == EAGAIN);
	return (int)fd;
}

/*
 * The kernel's answer: O_PATH descriptor, or -1. Relative paths are put behind where they start, which lies in the root;
 * RESOLVE_IN_ROOT would take the start itself for the root.
 */
static int ask_kernel(const struct path_request *request, bool follow)
{
	struct open_how how = {
	    .flags = O_PATH | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW),
	    .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	char whole[PATH_MAX + 16];
	bool absolute = request->path.data[0] == '/';

	snprintf(whole, sizeof(whole), "%s%s", absolute ? "" : request->base == 3 ? "b/" : "a/c/", request->path.data);
	return open_in_root(whole, &how);
}

/* The object is where its path says, seen from the task's root. */
static void check_path(const struct effect_object *object)
{
	struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	char path[2 * PATH_MAX];
	struct stat status;

	need(object->path.data && object->path.size > 0 && object->path.data[0] == '/');
	need(!memchr(object->path.data, 0, object->path.size) && object->path.size < sizeof(path));
	memcpy(path, object->path.data, object->path.size);
	path[object->path.size] = 0;
	need(!strstr(path, "/../") && !strstr(path, "/./") && !strstr(path, "//"));
	if (!object->has_inode)
		return;
	int fd = open_in_root(path, &how);
	need(fd >= 0 && fstat(fd, &status) == 0 && status.st_ino == object->ino);
	close(fd);
}

/* Of a path that leads nowhere: folders by their own names, then one that is none for the kernel, then anything. */
static void check_reached(const struct effect_object *object)
{
	struct open_how how = {
	    .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
	    .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS,
	};
	char path[PATH_MAX];

	need(object->path.size > 0 && object->path.data[0] == '/' && !object->has_inode);
	need(object->path.data[object->path.size - 1] != '/');
	for (size_t end = 1, start = 1;; start = ++end) {
		while (end < object->path.size && object->path.data[end] != '/')
			end++;
		struct bytes name = {object->path.data + start, end - start};
		need(name.size > 0 && end < sizeof(path) && !memchr(name.data, 0, name.size));
		memcpy(path, object->path.data, end);
		path[end] = 0;
		int fd = open_in_root(path, &how);
		if (fd < 0)
			return;
		close(fd);
		need(!bytes_equal(name, BYTES(".")) && !bytes_equal(name, BYTES("..")) && end < object->path.size);
	}
}

static void check(const struct path_request *request)
{
	struct effect_object object;
	struct path_facts facts;
	struct path_place place;
	struct stat status;

	arena_reset(&arena);
	path_resolve_held(cache, &target, request, &arena, &object, &facts, &place);
	int fd = request->path.size > 0 ? ask_kernel(request, request->follow) : -1;
	if (fd >= 0) {
		need(fstat(fd, &status) == 0 && facts.exists && object.has_inode && object.ino == status.st_ino);
		need(facts.device == status.st_dev && facts.mode == status.st_mode);
		close(fd);
	} else if (request->path.size > 0) {
		/* A file with a slash behind it is seen as it is: the call itself says ENOTDIR. */
		bool slash = request->path.data[request->path.size - 1] == '/';
		need(!facts.exists || slash || request->path.size >= PATH_MAX);
	}
	if (facts.parent_exists)
		check_path(&object);
	else if (request->path.size > 0 && request->path.size < PATH_MAX)
		check_reached(&object);
	if (place.directory >= 0) {
		need(memchr(place.name, 0, sizeof(place.name)) && fstat(place.directory, &status) == 0);
		const char *slash = strchr(place.name, '/');
		need(S_ISDIR(status.st_mode) && (!slash || slash[1] == 0));
	}
	path_forget(cache);
	path_place_release(&place);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct open_set before = open_now();
	static char text[16 * 600 + 1];

	make_links(&input);
	unsigned how = (unsigned)take_number(&input, 1);
	struct bytes given = take_bytes(&input, 600);
	size_t times = how & 8 ? 1 + (how >> 4) : 1, used = 0;
	for (; times > 0 && given.size > 0; times--, used += given.size)
		memcpy(text + used, given.data, given.size);
	text[used] = 0;
	struct path_request request = {
	    .base = how & 1 ? 3 : PATH_BASE_CWD,
	    .path = bytes_of(text),
	    .follow = (how & 2) != 0,
	    .empty_is_base = (how & 4) != 0,
	};
	check(&request);
	need_same_open(&before);
	return 0;
}
