/*
 * Working directories whose names are longer than the kernel prints: the name is put together from the folders above, of
 * any names, among others that look alike; and whether one lies in another is told from the folders themselves.
 *
 * Input: how often the level is repeated (1 byte), and for each level how often its name is (1), and its name (a length
 * byte and its bytes); then what is looked for there (the rest).
 */
#include <errno.h>
#include <sys/stat.h>

#include "decode/path.h"
#include "fuzz.h"
#include "os/procfs.h"

#define TWIN "twin"
enum { LEVELS = 40, ARENA = 1 << 20 };

struct tree {
	char names[LEVELS][NAME_MAX + 1];
	struct stat status[LEVELS];
	size_t depth;
	int deepest; /* descriptor */
};

static int folder = -1, task = -1;
static struct stat elsewhere;
static struct path_cache *cache;
static struct arena arena;
static struct target target;

static void prepare(void)
{
	folder = private_place();
	need(mkdirat(folder, "task", 0700) == 0 && mkdirat(folder, "elsewhere", 0700) == 0);
	need(fstatat(folder, "elsewhere", &elsewhere, 0) == 0);
	task = openat(folder, "task", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cache = path_cache_new();
	need(task >= 0 && cache && arena_init(&arena, ARENA) && procfs_open(NULL));
	target = (struct target){
	    .tid = getpid(),
	    .pid = getpid(),
	    .task = task,
	    .memory = -1,
	    .same_root = true,
	    .same_mounts = true,
	    .root = AT_FDCWD,
	    .root_path = BYTES("/"),
	};
}
PREPARE_BY(prepare)

static void take_level(struct input *input, char name[NAME_MAX + 1])
{
	size_t times = take_number(input, 1) + 1, used = 0;
	struct bytes part = take_short(input);

	for (; times > 0 && part.size > 0; times--)
		for (size_t i = 0; i < part.size && used < NAME_MAX; i++)
			name[used++] = part.data[i] == 0 || part.data[i] == '/' ? '_' : part.data[i];
	name[used] = 0;
	if (strcmp(name, "") == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		strcpy(name, "...");
}

static void make(struct tree *tree, struct input *input)
{
	size_t wanted = take_number(input, 1) % LEVELS + 1;
	int at = fcntl(folder, F_DUPFD_CLOEXEC, 0);
	struct input start = *input;

	for (tree->depth = 0; tree->depth < wanted; tree->depth++) {
		char *name = tree->names[tree->depth];
		if (input->size == 0)
			*input = start;
		take_level(input, name);
		if (tree->depth == 0 && strcmp(name, "task") == 0)
			name[0] = 'T';
		/* At the top others stand beside it. */
		need(mkdirat(at, name, 0700) == 0 || (errno == EEXIST && tree->depth == 0));
		int next = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		need(next >= 0 && fstat(next, &tree->status[tree->depth]) == 0);
		/* One that it could be taken for. */
		need(mkdirat(at, TWIN, 0700) == 0 || errno == EEXIST);
		close(at);
		at = next;
	}
	tree->deepest = at;
}

static void unmake(const struct tree *tree)
{
	int at = fcntl(tree->deepest, F_DUPFD_CLOEXEC, 0);

	for (size_t i = tree->depth; i-- > 0;) {
		int above = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		need(above >= 0);
		if (i > 0 || strcmp(tree->names[0], "elsewhere") != 0)
			need(unlinkat(above, tree->names[i], AT_REMOVEDIR) == 0);
		if (strcmp(tree->names[i], TWIN) != 0)
			need(unlinkat(above, TWIN, AT_REMOVEDIR) == 0);
		close(at);
		at = above;
	}
	close(at);
	close(tree->deepest);
}

static void check_name(const struct tree *tree, struct bytes name, const struct effect_object *object)
{
	struct buf expected CLEANUP_BUF = {0};

	buf_append_text(&expected, PRIVATE_PLACE);
	for (size_t i = 0; i < tree->depth; i++)
		buf_append_format(&expected, "/%s", tree->names[i]);
	buf_append_char(&expected, '/');
	buf_append_bytes(&expected, name);
	need(bytes_equal(object->path, buf_bytes(&expected)));
}

static void check(const struct tree *tree, struct bytes name)
{
	struct path_request request = {.base = 3, .path = name, .follow = true};
	struct effect_object object;
	struct path_facts facts;

	arena_reset(&arena);
	path_resolve(cache, &target, &request, &arena, &object, &facts);
	need(facts.parent_exists && !facts.exists && facts.error == ENOENT);
	check_name(tree, name, &object);
	for (size_t i = 0; i < tree->depth; i++)
		need(path_lies_in(cache, &target, &request, tree->status[i].st_dev, tree->status[i].st_ino));
	if (strcmp(tree->names[0], "elsewhere") != 0)
		need(!path_lies_in(cache, &target, &request, elsewhere.st_dev, elsewhere.st_ino));
	need(path_process_folder(cache, &target, &request) < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tree tree;
	struct input input = {data, size};
	struct open_set before = open_now();
	char name[NAME_MAX + 1], link[32];

	make(&tree, &input);
	/* As descriptor 3 of the task, which a link in its folder of descriptors leads to. */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", tree.deepest);
	need((mkdirat(task, "fd", 0700) == 0 || errno == EEXIST) && symlinkat(link, task, "fd/3") == 0);
	struct bytes rest = take_bytes(&input, NAME_MAX);
	size_t used = 0;
	for (; used < rest.size; used++)
		name[used] = rest.data[used] == 0 || rest.data[used] == '/' ? '_' : rest.data[used];
	name[used] = 0;
	if (used == 0 || name[0] == '.')
		strcpy(name, "x");
	check(&tree, bytes_of(name));
	need(unlinkat(task, "fd/3", 0) == 0 && unlinkat(task, "fd", AT_REMOVEDIR) == 0);
	unmake(&tree);
	need_same_open(&before);
	return 0;
}
