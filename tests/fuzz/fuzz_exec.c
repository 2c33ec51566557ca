/*
 * What an exec really ran: the scripts on the way, the new program's stack, its auxiliary vector and command line. A true
 * exec, composed as execve(2) and create_elf_tables() of the kernel make one, is told as it was and without a remark;
 * over any other bytes what is told is a record within its limits.
 *
 * Input: a form (1 byte), then SCRIPTS texts of scripts (a length byte and its bytes each), then arguments (a count, then
 * a length byte and its bytes each). Form bit 0: not true, the rest of the input overlies the stack; bit 1: pointers of
 * 32 bits; bit 2: the memory cannot be read; bit 3: another image than was named; bit 4: the rest is auxv and cmdline.
 */
#include <elf.h>
#include <jansson.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "decode/decode.h"
#include "fuzz.h"
#include "ledger/record.h"
#include "os/procfs.h"

enum {
	SCRIPTS = 4,
	ARGUMENTS = 6,
	CALL = 4096,
	STACK = 1 << 20,
	STACK_ROOM = 1 << 20,
	VECTOR = 2 * SCRIPTS + ARGUMENTS + 2,
	HEAD = 256
};
/* The kernel gives up when an interpreter is a script for the fifth time. */
enum { DEPTH = 5 };

#define PROGRAM "/mnt/p"

struct scene {
	const char *argv[ARGUMENTS + 1];
	size_t argc;
	char arguments[ARGUMENTS][256];
	char interpreters[SCRIPTS + 1][HEAD], options[SCRIPTS + 1][HEAD];
	size_t depth;
	const char *vector[VECTOR]; /* what the program gets */
	size_t vector_size;
	const char *image;
};

static const char *const scripts[SCRIPTS] = {"/mnt/s0", "/mnt/s1", "/mnt/s2", "/mnt/s3"};
static int folder = -1, memory = -1;
static struct decoder decoder;
static struct target target;

static void prepare(void)
{
	struct stat status;

	folder = private_place();
	need(mkdirat(folder, "task", 0700) == 0 && mkdirat(folder, "cwd", 0700) == 0);
	put_file(folder, "p", BYTES("\177ELF"));
	need(symlinkat(PRIVATE_PLACE "/cwd", folder, "task/cwd") == 0);
	memory = memfd_create("memory", MFD_CLOEXEC);
	need(memory >= 0 && procfs_open(NULL) && decoder_init(&decoder) && fstat(memory, &status) == 0);
	/* The stack is read from the task itself, which we are: it lies where it says. What is more, from its file of memory. */
	void *stack =
	    mmap((void *)(uintptr_t)STACK, STACK_ROOM, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, memory, STACK);
	need(stack == (void *)(uintptr_t)STACK);
	char link[64];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", memory);
	need(symlinkat(link, folder, "task/mem") == 0);
	target = (struct target){
	    .tid = getpid(),
	    .pid = getpid(),
	    .task = openat(folder, "task", O_PATH | O_DIRECTORY | O_CLOEXEC),
	    .memory = memory,
	    .same_root = true,
	    .same_mounts = true,
	    .root = AT_FDCWD,
	    .root_path = BYTES("/"),
	};
	need(target.task >= 0);
}
PREPARE_BY(prepare)

/* --- what the kernel does --- */

/*
 * load_script(): the line's name and option; false when it is no script, or one that cannot be run. Without an end of line
 * before a NUL the line is the whole head, whose last byte is given up, and strings end at that NUL.
 */
static bool parse_line(struct bytes content, char name[HEAD], char option[HEAD], bool *has_option)
{
	char line[HEAD + 1] = "";

	if (content.size > 0)
		memcpy(line, content.data, content.size < HEAD ? content.size : HEAD);
	if (line[0] != '#' || line[1] != '!')
		return false;
	size_t end = strcspn(line, "\n");
	if (line[end] != '\n') {
		/* Does the name end inside? */
		size_t first = 2 + strspn(line + 2, " \t");
		if (first + strcspn(line + first, " \t") >= HEAD)
			return false;
		end = HEAD - 1;
	}
	while (end > 2 && (line[end - 1] == ' ' || line[end - 1] == '\t'))
		end--;
	line[end] = 0;
	size_t at = 2 + strspn(line + 2, " \t"), length = strcspn(line + at, " \t");
	memcpy(name, line + at, length);
	name[length] = 0;
	at += length;
	/* Blanks at the line's end are gone by now: behind these stands an option, or that NUL, which makes an empty one. */
	*has_option = line[at] != 0;
	strcpy(option, line + at + strspn(line + at, " \t"));
	return length > 0;
}

/* The chain from the first script to a program; false when such an exec fails. */
static bool follow(struct scene *scene, const struct bytes contents[SCRIPTS])
{
	const char *current = scripts[0];

	scene->vector_size = scene->argc;
	memcpy(scene->vector, scene->argv, scene->argc * sizeof(scene->argv[0]));
	for (;;) {
		size_t which = 0;
		while (which < SCRIPTS && strcmp(current, scripts[which]) != 0)
			which++;
		if (strcmp(current, PROGRAM) == 0)
			break;
		if (which == SCRIPTS || scene->depth > SCRIPTS - 1 || scene->depth == DEPTH)
			return false;
		char *name = scene->interpreters[scene->depth], *option = scene->options[scene->depth];
		bool has_option;
		if (!parse_line(contents[which], name, option, &has_option))
			return false;
		scene->depth++;
		/* In place of argv[0]: interpreter, option, and the name of what it interprets. */
		size_t more = has_option ? 2 : 1, rest = scene->vector_size > 0 ? 1 : 0;
		memmove(scene->vector + more + 1, scene->vector + rest,
			(scene->vector_size - rest) * sizeof(scene->vector[0]));
		scene->vector[0] = name;
		if (has_option)
			scene->vector[1] = option;
		scene->vector[more] = current;
		scene->vector_size += more + 1 - rest;
		current = name;
	}
	scene->image = current;
	return true;
}

/* --- memory --- */

static void append_word(struct buf *out, uint64_t value, unsigned word)
{
	buf_append(out, &value, word);
}

/* Pointers to strings that will stand at `at`, in order; then a null pointer. Returns where the next would stand. */
static uint64_t append_pointers(struct buf *out, const char *const *vector, size_t count, uint64_t at, unsigned word)
{
	for (size_t i = 0; i < count; i++) {
		append_word(out, at, word);
		at += strlen(vector[i]) + 1;
	}
	append_word(out, 0, word);
	return at;
}

static void append_strings(struct buf *out, const char *const *vector, size_t count)
{
	for (size_t i = 0; i < count; i++)
		buf_append(out, vector[i], strlen(vector[i]) + 1);
}

static void put_memory(const struct buf *bytes, uint64_t address)
{
	need(!bytes->failed && pwrite(memory, bytes->data, bytes->size, (off_t)address) == (ssize_t)bytes->size);
}

/* execve(path, argv, NULL) as the caller has it. Returns where argv is. */
static uint64_t put_call(const struct scene *scene, const char *path)
{
	struct buf out CLEANUP_BUF = {0};
	enum { PATH_ROOM = 64 };

	buf_append(&out, path, strlen(path) + 1);
	while (out.size < PATH_ROOM)
		buf_append_char(&out, 0);
	uint64_t strings = CALL + PATH_ROOM + (scene->argc + 1) * sizeof(uint64_t);
	(void)append_pointers(&out, scene->argv, scene->argc, strings, sizeof(uint64_t));
	append_strings(&out, scene->argv, scene->argc);
	put_memory(&out, CALL);
	return CALL + PATH_ROOM;
}

/* create_elf_tables(): argc, argv, an empty environment, auxv; the strings; the name. */
static void put_stack(const struct scene *scene, const char *path, unsigned word)
{
	struct buf out CLEANUP_BUF = {0};
	uint64_t strings = STACK + (1 + scene->vector_size + 1 + 1 + 6) * word;

	append_word(&out, scene->vector_size, word);
	uint64_t name = append_pointers(&out, scene->vector, scene->vector_size, strings, word);
	append_word(&out, 0, word);
	const uint64_t auxv[] = {AT_PAGESZ, 4096, AT_EXECFN, name, AT_NULL, 0};
	for (size_t i = 0; i < sizeof(auxv) / sizeof(auxv[0]); i++)
		append_word(&out, auxv[i], word);
	append_strings(&out, scene->vector, scene->vector_size);
	append_strings(&out, &path, 1);
	put_memory(&out, STACK);
}

/* --- what was made of it --- */

static void check_record(const struct effect *effect)
{
	CLEANUP_BUF struct buf body = {.limit = 1 << 24}, sealed = {.limit = 1 << 24};
	struct record_head head;
	json_error_t error;

	need(record_effect(&body, &head, effect, NULL) && record_seal(&sealed, &head, buf_bytes(&body), 1) &&
	     sealed.size <= RECORD_SIZE_LIMIT);
	json_t *json = json_loadb(sealed.data, sealed.size, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
	need(json != NULL);
	json_decref(json);
	need(effect->image.interpreter_count <= DEPTH);
}

static void check_vector(const struct bytes *items, size_t count, const char *const *expected, size_t expected_count)
{
	need(count == expected_count);
	for (size_t i = 0; i < count; i++)
		need(bytes_equal(items[i], bytes_of(expected[i])));
}

static void check_true(const struct effect *effect, const struct scene *scene)
{
	const struct effect_image *image = &effect->image;

	need(!effect->note.data && bytes_equal(image->object.path, bytes_of(scene->image)));
	check_vector(effect->argv, effect->argv_count, scene->argv, scene->argc);
	need(image->interpreter_count == scene->depth);
	for (size_t i = 0; i < scene->depth; i++)
		need(bytes_equal(image->interpreters[i], bytes_of(scene->interpreters[i])));
	if (scene->depth > 0) {
		need(image->has_argv);
		check_vector(image->argv, image->argv_count, scene->vector, scene->vector_size);
	}
}

static void take_scene(struct scene *scene, struct input *input, struct bytes contents[SCRIPTS])
{
	char path[8];

	for (size_t i = 0; i < SCRIPTS; i++) {
		contents[i] = take_short(input);
		snprintf(path, sizeof(path), "s%zu", i);
		put_file(folder, path, contents[i]);
	}
	scene->argc = take_number(input, 1) % (ARGUMENTS + 1);
	for (size_t i = 0; i < scene->argc; i++)
		scene->argv[i] = take_string(input, scene->arguments[i]);
}

static void set_image(const char *image)
{
	(void)unlinkat(target.task, "exe", 0);
	need(symlinkat(image, target.task, "exe") == 0);
}

static void run(struct input *input)
{
	static struct scene scene;
	struct bytes contents[SCRIPTS];
	unsigned form = (unsigned)take_number(input, 1), word = form & 2 ? sizeof(uint32_t) : sizeof(uint64_t);
	const struct syscall_row *row = syscall_row_find(SYS_execve);
	struct decoded decoded;

	scene = (struct scene){0};
	take_scene(&scene, input, contents);
	bool runs = follow(&scene, contents), is_true = !(form & 1) && runs;
	need(ftruncate(memory, 0) == 0);
	struct stop stop = {.tid = target.tid, .number = SYS_execve, .args = {CALL, put_call(&scene, scripts[0])}};
	put_stack(&scene, scripts[0], word);
	if (!is_true && input->size > 0 && !(form & 16))
		need(pwrite(memory, input->data, input->size, STACK) == (ssize_t)input->size);
	struct bytes files = !is_true && form & 16 ? take_bytes(input, input->size) : BYTES_NONE;
	put_file(target.task, "auxv", files);
	put_file(target.task, "cmdline", files);
	set_image(!is_true && form & 8 ? scripts[form >> 5 & 3] : runs ? scene.image : PROGRAM);

	need(decode(&decoder, &target, &stop, row, &decoded) == DECODE_EFFECTS && decoded.count == 1);
	decoded_release(&decoded);
	struct target after = target;
	if (!is_true && form & 4)
		after.tid = -1;
	decode_exec(&decoder, &after, STACK, word, &decoded);
	decode_result(&decoder, &after, &decoded, 0);
	check_record(decoded.effects);
	if (is_true)
		check_true(decoded.effects, &scene);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct open_set before = open_now();

	run(&input);
	need_same_open(&before);
	return 0;
}
