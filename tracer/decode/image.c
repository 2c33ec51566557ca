/*
 * What an exec really did. The kernel reads the path, the file and the arguments after we did, and another thread may
 * have changed each of them in between. At the exec stop the new program has not run, and shows what it was given: its
 * arguments and the path on its stack, the file behind /proc/PID/exe.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "os/memory.h"
#include "os/procfs.h"
#include "program.h"

enum { CHANGED_PATH = 1, CHANGED_FILE = 2, CHANGED_ARGV = 4 };

/* An exec that has to be looked at closely. */
struct settling {
	struct decoder *decoder;
	const struct target *target;
	struct decoded *decoded;
	struct effect *effect;
	struct program program;
	struct file_identity image, before; /* what was mapped, and what the path named before the call */
	unsigned changed;
};

/* A view of some elements of a vector, of which `total` there really are. */
struct vector {
	struct bytes *items;
	size_t count;
	uint64_t total;
};

static struct vector vector_from(struct bytes *items, size_t count, uint64_t total, size_t skip)
{
	if (!items || skip > count)
		return (struct vector){NULL, 0, total > skip ? total - skip : 0};
	return (struct vector){items + skip, count - skip, total - skip};
}

static struct vector asked_from(const struct effect *effect, size_t skip)
{
	uint64_t total = effect->argv_total ? effect->argv_total : effect->argv_count;

	return vector_from(effect->argv, effect->argv_count, total, skip);
}

static struct vector passed_from(const struct program *program, size_t skip)
{
	return vector_from(program->argv, program->argv_count, program->argv_total, skip);
}

/* As far as both were kept. */
static bool vector_equal(struct vector a, struct vector b)
{
	if (a.total != b.total)
		return false;
	for (size_t i = 0; i < a.count && i < b.count; i++)
		if (!bytes_equal(a.items[i], b.items[i]))
			return false;
	return true;
}

void decode_note(struct decoder *decoder, struct effect *effect, const char *text)
{
	effect->note = effect->note.data ? arena_format(&decoder->arena, "%s; %s", effect->note.data, text)
					 : arena_copy(&decoder->arena, bytes_of(text));
}

static void find_image(struct settling *settling)
{
	struct effect_object *object = &settling->effect->image.object;
	const struct target *target = settling->target;
	char text[PATH_MAX];
	struct stat status;

	ssize_t length = procfs_link(target->task, "exe", text, sizeof(text));
	if (length >= 0) {
		settling->effect->image.present = true;
		struct bytes seen = arena_copy(&settling->decoder->arena, (struct bytes){text, (size_t)length});
		object->path = path_as_task_sees(target, seen);
		if (!bytes_equal(object->path, seen))
			object->host_path = seen;
	}
	/* Through the link itself: the name may be gone or mean another file by now. */
	if (fstatat(target->task, "exe", &status, 0) != 0)
		return;
	settling->effect->image.present = true;
	settling->image = (struct file_identity){true, status.st_dev, status.st_ino};
	object->has_inode = true;
	object->dev_major = major(status.st_dev);
	object->dev_minor = minor(status.st_dev);
	object->ino = status.st_ino;
	object->type = status.st_mode & S_IFMT;
}

/* How the kernel spells the path of this request (alloc_bprm()); absent when it could not be read. */
static struct bytes kernel_name(struct settling *settling, const struct path_request *request)
{
	struct arena *arena = &settling->decoder->arena;

	if (!request->path.data || request->base == PATH_BASE_CWD ||
	    (request->path.size > 0 && request->path.data[0] == '/'))
		return request->path;
	return arena_format(arena, request->path.size > 0 ? "/dev/fd/%d/%s" : "/dev/fd/%d", request->base,
			    request->path.data);
}

/* The request that the kernel spells like this. */
static void set_request(struct settling *settling, struct bytes name)
{
	struct path_request *request = &settling->decoded->request;
	char prefix[32];

	request->path = name;
	request->follow = true;
	if (request->base == PATH_BASE_CWD)
		return;
	struct bytes base = {prefix, (size_t)snprintf(prefix, sizeof(prefix), "/dev/fd/%d", request->base)};
	if (!bytes_start_with(name, base))
		return;
	struct bytes rest = {name.data + base.size, name.size - base.size};
	if (rest.size == 0 || *rest.data == '/')
		request->path = rest.size > 0 ? (struct bytes){rest.data + 1, rest.size - 1} : rest;
}

/* What the path names now: without the link at its end followed, as in every record of an exec. */
static void look_again(struct settling *settling)
{
	struct path_request request = settling->decoded->request;
	struct effect_object now;
	struct path_facts facts;

	request.follow = false;
	path_resolve(settling->decoder->cache, settling->target, &request, &settling->decoder->arena, &now, &facts);
	if (!now.path.data)
		now.path = settling->effect->image.object.path;
	settling->effect->object = now;
}

static void settle_argv(struct settling *settling, struct vector real)
{
	struct effect *effect = settling->effect;

	if (effect->has_argv)
		settling->changed |= CHANGED_ARGV;
	effect->has_argv = true;
	effect->argv = real.items;
	effect->argv_count = real.count;
	effect->argv_total = real.total > real.count ? real.total : 0;
}

/* The kernel gives an empty argument to a program that was given none. */
static bool is_empty_vector(struct vector asked, struct vector passed)
{
	return asked.total == 0 && passed.total == 1 && passed.count == 1 && passed.items[0].size == 0;
}

/* The file that was named is the one that was mapped. */
static void settle_program(struct settling *settling, const struct file_identity *now)
{
	struct effect *effect = settling->effect;
	struct effect_object *object = &effect->object;
	const struct effect_object *image = &effect->image.object;
	struct vector asked = asked_from(effect, 0), passed = passed_from(&settling->program, 0);

	if (settling->image.known && !file_identity_equal(&settling->before, &settling->image)) {
		if (settling->before.known)
			settling->changed |= CHANGED_FILE;
		if (!(settling->changed & CHANGED_PATH) && file_identity_equal(now, &settling->image))
			look_again(settling);
		/* A link is an object of its own, unless the image itself stands under that name. */
		if (!S_ISLNK(object->type) || bytes_equal(object->path, image->path)) {
			object->has_inode = true;
			object->dev_major = image->dev_major;
			object->dev_minor = image->dev_minor;
			object->ino = image->ino;
			object->type = image->type;
		}
	}
	if (!effect->has_argv || (!vector_equal(asked, passed) && !is_empty_vector(asked, passed)))
		settle_argv(settling, passed);
}

/* `prefix`: how many elements the kernel put in front of the script's own arguments, its name being the last. */
static void settle_script(struct settling *settling, const struct script_chain *chain, size_t prefix)
{
	struct effect *effect = settling->effect;
	struct vector asked = asked_from(effect, 1), passed = passed_from(&settling->program, prefix);
	struct arena *arena = &settling->decoder->arena;

	effect->image.interpreters = arena_alloc(arena, SCRIPT_DEPTH * sizeof(struct bytes));
	for (size_t i = 0; effect->image.interpreters && i < chain->count; i++)
		effect->image.interpreters[effect->image.interpreter_count++] = chain->lines[i].interpreter;
	effect->image.present = true;
	/* With the flag P of binfmt_misc argv[0] is there as well. */
	if (!effect->has_argv || vector_equal(asked, passed) || vector_equal(asked_from(effect, 0), passed))
		return;
	/* The script's own argv[0] is seen by nobody but us. */
	struct bytes *argv = arena_alloc(arena, (passed.count + 1) * sizeof(*argv));
	if (!argv)
		return;
	argv[0] = effect->argv_count > 0 ? effect->argv[0] : BYTES("");
	for (size_t i = 0; i < passed.count; i++)
		argv[i + 1] = passed.items[i];
	settle_argv(settling, (struct vector){argv, passed.count + 1, passed.total + 1});
}

/* Where the name of a script stands among the arguments of its interpreter; 0 when it does not. */
static size_t find_script_name(const struct settling *settling)
{
	const struct program *program = &settling->program;
	size_t found = 0;

	for (size_t at = 1; at < program->argv_count && at <= 2 * SCRIPT_DEPTH; at++) {
		if (!bytes_equal(program->argv[at], program->name))
			continue;
		if (vector_equal(passed_from(program, at + 1), asked_from(settling->effect, 1)))
			return at;
		if (found == 0)
			found = at;
	}
	return found;
}

/*
 * A script or the program itself? What the file says now is believed as far as the new program's arguments agree. When a
 * file was exchanged for another in between, the arguments alone have to tell.
 */
static void settle(struct settling *settling, struct bytes name)
{
	struct decoder *decoder = settling->decoder;
	const struct target *target = settling->target;
	struct program *program = &settling->program;
	struct script_chain chain, shown;
	size_t prefix = 0;

	script_chain_read(decoder, target, &settling->decoded->request, &chain);
	bool fits = script_chain_fits(&chain, program, name, &prefix);
	if (fits && (!settling->image.known || file_identity_equal(&chain.last, &settling->image))) {
		if (settling->before.known && !file_identity_equal(&chain.first, &settling->before)) {
			settling->changed |= CHANGED_FILE;
			look_again(settling);
		}
		settle_script(settling, &chain, prefix);
		return;
	}
	size_t name_at = find_script_name(settling);
	bool same = vector_equal(asked_from(settling->effect, 0), passed_from(program, 0));
	if (same || name_at == 0 || file_identity_equal(&settling->before, &settling->image) ||
	    file_identity_equal(&chain.first, &settling->image)) {
		settle_program(settling, &chain.first);
		return;
	}
	script_chain_shown(decoder, target, program->argv, name_at, &shown);
	if (fits || !settling->image.known || file_identity_equal(&shown.last, &settling->image)) {
		settle_script(settling, fits ? &chain : &shown, fits ? prefix : name_at + 1);
		decode_note(decoder, settling->effect,
			    "the interpreters are those that the new program's arguments show");
		return;
	}
	settle_program(settling, &chain.first);
}

static void note_changes(struct settling *settling)
{
	char text[80] = "changed while the call was made:";
	static const struct {
		unsigned change;
		const char *name;
	} names[] = {{CHANGED_PATH, " path"}, {CHANGED_FILE, " file"}, {CHANGED_ARGV, " argv"}};

	if (!settling->changed)
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (settling->changed & names[i].change)
			strcat(text, names[i].name);
	decode_note(settling->decoder, settling->effect, text);
}

/* `argv` as the program has it, when that is not what the call passed. */
static void keep_argv(struct effect *effect, const struct program *program)
{
	struct effect_image *image = &effect->image;
	struct vector passed = passed_from(program, 0);

	if (effect->has_argv && vector_equal(asked_from(effect, 0), passed))
		return;
	image->present = true;
	image->has_argv = true;
	image->argv = program->argv;
	image->argv_count = program->argv_count;
	image->argv_total = program->argv_total > program->argv_count ? program->argv_total : 0;
}

void decode_exec(struct decoder *decoder, const struct target *target, uint64_t stack, unsigned word,
		 struct decoded *decoded)
{
	struct settling settling = {
	    .decoder = decoder, .target = target, .decoded = decoded, .effect = decoded->effects};
	struct program *program = &settling.program;
	const struct path_facts *facts = &decoded->facts;

	find_image(&settling);
	program_read(decoder, target, stack, word, program);
	if (!program->known) {
		decode_note(decoder, settling.effect, "the new program's arguments could not be read");
		return;
	}
	settling.before = (struct file_identity){facts->exists, facts->device, facts->ino};
	struct bytes name = kernel_name(&settling, &decoded->request);
	bool same_name = !program->name.data || (name.data && bytes_equal(program->name, name));
	if (same_name && settling.effect->has_argv && file_identity_equal(&settling.before, &settling.image) &&
	    vector_equal(asked_from(settling.effect, 0), passed_from(program, 0)))
		return;
	if (!program->name.data)
		program->name = name;
	if (!same_name) {
		if (name.data)
			settling.changed |= CHANGED_PATH;
		set_request(&settling, program->name);
		look_again(&settling);
		settling.before.known = false;
	}
	settle(&settling, program->name);
	keep_argv(settling.effect, program);
	note_changes(&settling);
}

/* Which argument of the call is the path; -1: none. */
static int path_argument(const struct syscall_row *row)
{
	for (int i = 0; i < SYSCALL_ARGS && row->args[i].name; i++)
		if (row->args[i].kind == ARG_path)
			return i;
	return -1;
}

void decode_exec_missed(struct decoder *decoder, const struct target *target, const struct stop *stop,
			struct decoded *decoded)
{
	enum { LOOKS = 96, IN_A_ROW = 64, PAUSE_NS = 100000 };
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	struct path_request request = decoded->request;
	char *text = arena_alloc(&decoder->arena, PATH_MAX);
	int at = path_argument(decoded->row);

	if (!text || at < 0 || !request.path.data || !decoded->facts.exists)
		return;
	for (int i = 0; i < LOOKS; i++) {
		/* Who changes it may have to wait for a processor. */
		if (i >= IN_A_ROW)
			(void)nanosleep(&pause, NULL);
		ssize_t length = memory_read_string(target->memory, stop->args[at], text, PATH_MAX);
		if (length < 0)
			return;
		request.path = (struct bytes){text, (size_t)length};
		if (bytes_equal(request.path, decoded->request.path))
			continue;
		struct effect_object object;
		struct path_facts facts;
		path_resolve(decoder->cache, target, &request, &decoder->arena, &object, &facts);
		if (facts.exists)
			continue;
		decoded->effects->object = object;
		decoded->request = request;
		decoded->facts = facts;
		decode_note(decoder, decoded->effects, "changed while the call was made: path");
		return;
	}
}
