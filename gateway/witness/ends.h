/*
 * Which results were told: an agent sends the whole conversation again with each request.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ENDS_LIMIT = 1 << 20 };

struct ends {
	uint64_t *keys; /* owned; 0 is free */
	size_t capacity, count;
};

/* What became of it: new, known, or new and more than can be remembered. */
enum ends_answer { ENDS_NEW, ENDS_KNOWN, ENDS_FULL };
/* `key` is the start of a digest. */
enum ends_answer ends_add(struct ends *ends, uint64_t key);
void ends_free(struct ends *ends);
