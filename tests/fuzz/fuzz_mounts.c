/*
 * Where the host sees what a task names in its own mounts: by a list of mounts (/proc/PID/mountinfo) that holds names of
 * the agent's, or that is no list at all. When the task's mount is told truly, among any others, the host's name is right;
 * else it is absent or at least an absolute path.
 *
 * Input: a form (1 byte). Bit 0: the rest is the list, in which bytes 1 and 2 stand for the number and the device of the
 * mount. Else: which entry is the true one, then for each other one its fields (see append_other()).
 */
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "decode/path.h"
#include "fuzz.h"
#include "os/procfs.h"

enum { ARENA = 1 << 20, OTHERS = 8 };

/* The task's root, with all that the kernel escapes in its list. */
#define ROOT_NAME "its \\root\t\n(#)"
#define ROOT_ESCAPED "its\\040\\134root\\011\\012(#)"

static int folder = -1, task = -1;
static struct path_cache *cache;
static struct arena arena;
static struct target target;
static uint64_t mount_id;
static char device[24];

static void prepare(void)
{
	struct statx status;

	folder = private_place();
	need(mkdirat(folder, "task", 0700) == 0 && mkdirat(folder, ROOT_NAME, 0700) == 0 &&
	     mkdirat(folder, ROOT_NAME "/a", 0700) == 0);
	put_file(folder, ROOT_NAME "/a/file", BYTES("x"));
	need(symlinkat(PRIVATE_PLACE "/" ROOT_NAME "/a", folder, "task/cwd") == 0);
	task = openat(folder, "task", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int root = openat(folder, ROOT_NAME, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cache = path_cache_new();
	need(task >= 0 && root >= 0 && cache && arena_init(&arena, ARENA) && procfs_open(NULL));
	need(statx(root, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &status) == 0);
	mount_id = status.stx_mnt_id;
	snprintf(device, sizeof(device), "%u:%u", status.stx_dev_major, status.stx_dev_minor);
	target = (struct target){
	    .tid = getpid(),
	    .pid = getpid(),
	    .task = task,
	    .memory = -1,
	    .root = root,
	    .root_path = BYTES(PRIVATE_PLACE "/" ROOT_NAME),
	};
}
PREPARE_BY(prepare)

/* As the kernel does it. */
static void append_escaped(struct buf *text, struct bytes name)
{
	for (size_t i = 0; i < name.size && name.data[i]; i++) {
		if (strchr(" \t\n\\#", name.data[i]))
			buf_append_format(text, "\\%03o", (unsigned)(unsigned char)name.data[i]);
		else
			buf_append_char(text, name.data[i]);
	}
}

static void append_other(struct buf *text, struct input *input)
{
	uint64_t id = take_number(input, 2);
	bool same_device = take_number(input, 1) & 1;

	buf_append_format(text, "%llu 1 %s ", (unsigned long long)(id == mount_id ? id + 1 : id),
			  same_device ? device : "8:1");
	buf_append_char(text, '/');
	append_escaped(text, take_short(input));
	buf_append_text(text, " /");
	append_escaped(text, take_short(input));
	buf_append_text(text, " rw,relatime shared:1 - ");
	append_escaped(text, take_short(input));
	buf_append_text(text, " none rw\n");
}

static void compose(struct buf *text, struct input *input)
{
	unsigned place = (unsigned)take_number(input, 1) % OTHERS;

	for (unsigned i = 0; i < OTHERS && (i <= place || input->size > 0); i++) {
		if (i == place)
			buf_append_format(text, "%llu 1 %s /" ROOT_ESCAPED " / rw - tmpfs none rw\n",
					  (unsigned long long)mount_id, device);
		else
			append_other(text, input);
	}
}

static void append_raw(struct buf *text, struct input *input)
{
	for (; input->size > 0; input->data++, input->size--) {
		if (*input->data == 1)
			buf_append_format(text, "%llu", (unsigned long long)mount_id);
		else if (*input->data == 2)
			buf_append_text(text, device);
		else
			buf_append_char(text, (char)*input->data);
	}
}

static void check(const char *path, const char *seen, bool truly)
{
	struct path_request request = {.base = PATH_BASE_CWD, .path = bytes_of(path), .follow = true};
	struct effect_object object;
	struct path_facts facts;
	struct buf expected CLEANUP_BUF = {0};

	arena_reset(&arena);
	path_resolve(cache, &target, &request, &arena, &object, &facts);
	need(bytes_equal(object.path, bytes_of(seen)));
	struct bytes host = object.host_path;
	need(!host.data || (host.size > 0 && host.size < (size_t)3 * PATH_MAX && !memchr(host.data, 0, host.size)));
	need(!host.data || host.data[0] == '/');
	if (!truly)
		return;
	buf_append_format(&expected, "%s%s", PRIVATE_PLACE "/" ROOT_NAME, strcmp(seen, "/") == 0 ? "" : seen);
	need(bytes_equal(host, buf_bytes(&expected)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct buf text CLEANUP_BUF = {0};
	struct open_set before = open_now();
	bool truly = (take_number(&input, 1) & 1) == 0;

	if (truly)
		compose(&text, &input);
	else
		append_raw(&text, &input);
	put_file(task, "mountinfo", buf_bytes(&text));
	check("/a/file", "/a/file", truly);
	check("none", "/a/none", truly);
	check("/", "/", truly);
	need_same_open(&before);
	return 0;
}
