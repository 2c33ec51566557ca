/*
 * Command line options: a table per command over getopt_long(3).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "command.h"

/* The values of an option that may be given more than once. */
enum { OPTION_TEXTS_LIMIT = 64 };
struct option_texts {
	const char *items[OPTION_TEXTS_LIMIT];
	size_t count;
};

/* One long option; exactly one of the destinations is set. */
struct option_row {
	const char *name;
	bool *flag;
	const char **text;
	struct option_texts *texts; /* each time that it is given */
	uint64_t *number;           /* plain decimal */
	uint64_t *seconds;          /* with s, m, h, d, w */
	uint64_t *size;             /* bytes, with K, M, G, T */
	bool *given;                /* set when the option was there; may be NULL */
};

/* What is not an option. */
struct arguments {
	int least, most; /* how many there must be; most -1: any number */
	int count;
	char **items;
};

/*
 * Parse; options may stand behind arguments. False when the command is done: `status` is 0 after --help, 64 after a
 * mistake, which has then been explained.
 */
bool options_parse(const struct command *command, int argc, char **argv, const struct option_row *rows, size_t count,
		   struct arguments *rest, int *status);
void options_print_help(const struct command *command, FILE *out);
/* Say what is wrong with the command line, on what (NULL: on nothing), and the usage. Returns 64. */
int options_mistake(const struct command *command, const char *what, const char *on);
