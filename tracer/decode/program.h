/*
 * Private to this room: a program that an exec has put in place and that has not run yet, and the scripts on the way to
 * it.
 */
#pragma once

#include "decode/decode.h"

/* As the kernel's limit on nested #! lines. */
enum { SCRIPT_DEPTH = 5 };

/* What the kernel wrote on the new stack (create_elf_tables()): nobody else has touched it yet. */
struct program {
	bool known;         /* the argument vector could be read */
	struct bytes *argv; /* its first elements, as far as a record can hold them */
	size_t argv_count;
	uint64_t argv_total;
	struct bytes name; /* AT_EXECFN, the path that the kernel took from the call; absent when it cannot be read */
};

/* `address` is the stack pointer, `word` the size of a pointer of the program (0: unknown). */
void program_read(struct decoder *decoder, const struct target *target, uint64_t address, unsigned word,
		  struct program *program);

struct file_identity {
	bool known;
	uint64_t device, ino;
};

static inline bool file_identity_equal(const struct file_identity *a, const struct file_identity *b)
{
	return a->known && b->known && a->device == b->device && a->ino == b->ino;
}

/* "#! interpreter [argument]" */
struct script_line {
	struct bytes interpreter, argument; /* the argument may be empty, or absent */
};

struct script_chain {
	struct script_line lines[SCRIPT_DEPTH]; /* the script's own first */
	size_t count;
	struct file_identity first, last; /* the file that was named, and what the last line names */
};

/* What the request names now, and the chain of interpreters that #! lines name from there. */
void script_chain_read(struct decoder *decoder, const struct target *target, const struct path_request *request,
		       struct script_chain *chain);
/*
 * The chain that an argument vector shows in front of its element `name_at`, the script's name. Which elements are
 * arguments of interpreters is told from the files where it is not plain.
 */
void script_chain_shown(struct decoder *decoder, const struct target *target, const struct bytes *argv, size_t name_at,
			struct script_chain *chain);
/* Does the kernel put exactly this chain and then `name` in front of the arguments of a script? `length`: of that. */
bool script_chain_fits(const struct script_chain *chain, const struct program *program, struct bytes name,
		       size_t *length);
