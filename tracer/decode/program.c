/*
 * The stack of a new program: argument count, pointers to arguments, to the environment, auxiliary vector; above them
 * the strings, and at the very top the path that was executed.
 */
#include "program.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/memory.h"
#include "reading.h"

/* One read of this size mostly has it all. "/dev/fd/N/" may stand before a path. */
enum { WINDOW = 16384, NAME_LIMIT = PATH_MAX + 32, AUXV_LIMIT = 4096 };

struct stack {
	const struct target *target;
	struct arena *arena;
	uint64_t address;
	unsigned word;
	char *data;
	size_t size;
};

static bool word_at(const char *data, size_t size, unsigned word, size_t index, uint64_t *value)
{
	uint32_t narrow;

	if (index >= size / word)
		return false;
	if (word == sizeof(*value)) {
		memcpy(value, data + index * word, word);
		return true;
	}
	memcpy(&narrow, data + index * word, sizeof(narrow));
	*value = narrow;
	return true;
}

static bool stack_word(const struct stack *stack, size_t index, uint64_t *value)
{
	return word_at(stack->data, stack->size, stack->word, index, value);
}

/* What the window holds from `address` on. */
static struct bytes stack_part(const struct stack *stack, uint64_t address)
{
	uint64_t offset = address - stack->address;

	if (address < stack->address || offset >= stack->size)
		return BYTES_NONE;
	return (struct bytes){stack->data + offset, stack->size - (size_t)offset};
}

/* The strings of the vector lie one behind the other. False when they do not end inside `part`. */
static bool split(struct bytes part, struct program *program)
{
	size_t used = 0;

	program->argv_count = 0;
	while (program->argv_count < program->argv_total && program->argv_count < VECTOR_COUNT_LIMIT &&
	       used < VECTOR_BYTES_LIMIT) {
		const char *end = part.size ? memchr(part.data, 0, part.size) : NULL;
		if (!end)
			return false;
		struct bytes item = {part.data, (size_t)(end - part.data)};
		program->argv[program->argv_count++] = item;
		used += item.size;
		part = (struct bytes){end + 1, part.size - item.size - 1};
	}
	return true;
}

/* Mostly not needed: opening it takes as long as the rest. A descriptor, or -1. */
static int memory_of_program(const struct target *target)
{
	return openat(target->task, "mem", O_RDONLY | O_CLOEXEC);
}

static bool read_arguments(const struct stack *stack, struct program *program)
{
	enum { ALL = VECTOR_BYTES_LIMIT + STRING_LIMIT };
	uint64_t first;

	if (!stack_word(stack, 0, &program->argv_total) || !stack_word(stack, 1, &first) ||
	    program->argv_total > INT_MAX)
		return false;
	size_t limit = program->argv_total > VECTOR_COUNT_LIMIT ? VECTOR_COUNT_LIMIT : (size_t)program->argv_total;
	program->argv = arena_alloc(stack->arena, (limit + 1) * sizeof(*program->argv));
	if (!program->argv)
		return false;
	if (split(stack_part(stack, first), program))
		return true;
	char *data = arena_alloc(stack->arena, ALL);
	int memory CLEANUP_FD = memory_of_program(stack->target);
	ssize_t size = data ? memory_read_some(memory, first, data, ALL) : -1;
	return size > 0 && split((struct bytes){data, (size_t)size}, program);
}

/* A pair of the auxiliary vector that begins at word `index`; false when it does not say where the name is. */
static bool find_name(const char *data, size_t size, unsigned word, size_t index, uint64_t *address)
{
	uint64_t type;

	for (; word_at(data, size, word, index, &type) && type != AT_NULL; index += 2)
		if (type == AT_EXECFN)
			return word_at(data, size, word, index + 1, address);
	return false;
}

static bool name_address(const struct stack *stack, uint64_t argc, uint64_t *address)
{
	char data[AUXV_LIMIT];
	uint64_t pointer = 1;
	size_t index = (size_t)argc + 2;

	while (pointer != 0 && stack_word(stack, index, &pointer))
		index++;
	if (pointer == 0 && find_name(stack->data, stack->size, stack->word, index, address))
		return true;
	/* Behind more arguments and variables than the window holds. */
	int file CLEANUP_FD = openat(stack->target->task, "auxv", O_RDONLY | O_CLOEXEC);
	ssize_t size = file < 0 ? -1 : fd_read_full(file, data, sizeof(data));
	return size > 0 && find_name(data, (size_t)size, stack->word, 0, address);
}

static struct bytes read_program_name(const struct stack *stack, uint64_t argc)
{
	uint64_t address;

	if (!name_address(stack, argc, &address))
		return BYTES_NONE;
	struct bytes part = stack_part(stack, address);
	const char *end = part.size ? memchr(part.data, 0, part.size) : NULL;
	if (end)
		return (struct bytes){part.data, (size_t)(end - part.data)};
	char text[NAME_LIMIT];
	int memory CLEANUP_FD = memory_of_program(stack->target);
	ssize_t length = memory < 0 ? -1 : memory_read_string(memory, address, text, sizeof(text));
	return length < 0 ? BYTES_NONE : arena_copy(stack->arena, (struct bytes){text, (size_t)length});
}

/* Of a program that must not be read its arguments still show in /proc. */
static void read_command_line(struct decoder *decoder, const struct target *target, struct program *program)
{
	enum { ALL = VECTOR_BYTES_LIMIT + STRING_LIMIT };
	char *data = arena_alloc(&decoder->arena, ALL);
	int file CLEANUP_FD = openat(target->task, "cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t size = !data || file < 0 ? -1 : fd_read_full(file, data, ALL);

	program->argv = arena_alloc(&decoder->arena, VECTOR_COUNT_LIMIT * sizeof(*program->argv));
	/* More than fits: how many there are is not known. */
	if (size <= 0 || size == ALL || !program->argv)
		return;
	for (ssize_t i = 0; i < size; i++)
		program->argv_total += data[i] == 0;
	program->known = split((struct bytes){data, (size_t)size}, program);
}

void program_read(struct decoder *decoder, const struct target *target, uint64_t address, unsigned word,
		  struct program *program)
{
	struct stack stack = {.target = target, .arena = &decoder->arena, .address = address, .word = word};

	*program = (struct program){0};
	stack.data = arena_alloc(stack.arena, WINDOW);
	ssize_t size = !stack.data || (word != sizeof(uint64_t) && word != sizeof(uint32_t))
			   ? -1
			   : memory_read_pages(target->tid, address, stack.data, WINDOW);
	if (size <= 0) {
		read_command_line(decoder, target, program);
		return;
	}
	stack.size = (size_t)size;
	program->known = read_arguments(&stack, program);
	if (program->known)
		program->name = read_program_name(&stack, program->argv_total);
}
