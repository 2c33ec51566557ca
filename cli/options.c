#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "render.h"

enum { ROW_LIMIT = 24, HELP = 1000 };

void options_print_help(const struct command *command, FILE *out)
{
	fprintf(out, "usage: assure %s\n\n%s", command->usage, command->help);
}

int options_mistake(const struct command *command, const char *what, const char *on)
{
	struct err err = {.number = 0};
	if (on)
		err_set(&err, 0, "%s: %s: %s", command->name, on, what);
	else
		err_set(&err, 0, "%s: %s", command->name, what);
	err_hint(&err, "usage: assure %s", command->usage);
	err_exit_status(&err, EXIT_USAGE);
	return render_error(&err);
}

/* Decimal digits and at most one unit. */
static bool parse_quantity(const char *text, const char *units, const uint64_t *factors, uint64_t *out)
{
	char *end;
	errno = 0;
	if (!isdigit((unsigned char)text[0]))
		return false;
	unsigned long long number = strtoull(text, &end, 10);
	if (errno != 0)
		return false;
	uint64_t factor = 1;
	if (*end) {
		const char *unit = strchr(units, tolower((unsigned char)*end));
		if (!unit || end[1])
			return false;
		factor = factors[unit - units];
	}
	return !__builtin_mul_overflow((uint64_t)number, factor, out);
}

static bool take_value(const struct option_row *row, const char *value)
{
	static const uint64_t seconds[] = {1, 60, 3600, 86400, 7 * 86400};
	static const uint64_t sizes[] = {1, 1ULL << 10, 1ULL << 20, 1ULL << 30, 1ULL << 40};
	if (row->given)
		*row->given = true;
	if (row->flag)
		*row->flag = true;
	else if (row->text)
		*row->text = value;
	else if (row->texts && row->texts->count < OPTION_TEXTS_LIMIT)
		row->texts->items[row->texts->count++] = value;
	else if (row->texts)
		return false;
	else if (row->number)
		return parse_quantity(value, "", seconds, row->number);
	else if (row->seconds)
		return parse_quantity(value, "smhdw", seconds, row->seconds);
	else if (row->size)
		return parse_quantity(value, "bkmgt", sizes, row->size);
	return true;
}

static bool stop(int *status, int with)
{
	*status = with;
	return false;
}

bool options_parse(const struct command *command, int argc, char **argv, const struct option_row *rows, size_t count,
		   struct arguments *rest, int *status)
{
	struct option options[ROW_LIMIT + 2] = {{.name = "help", .val = HELP}};
	for (size_t i = 0; i < count && i < ROW_LIMIT; i++)
		options[i + 1] = (struct option){
		    .name = rows[i].name,
		    .has_arg = rows[i].flag ? no_argument : required_argument,
		    .val = HELP + 1 + (int)i,
		};
	optind = 0;
	opterr = 0;
	for (int found; (found = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
		if (found == HELP || found == 'h') {
			options_print_help(command, stdout);
			return stop(status, EXIT_OK);
		}
		const char *given = optind > 0 && optind <= argc ? argv[optind - 1] : "";
		if (found == ':')
			return stop(status, options_mistake(command, "needs a value", given));
		if (found < HELP)
			return stop(status, options_mistake(command, "no such option", given));
		const struct option_row *row = &rows[found - HELP - 1];
		if (!take_value(row, optarg))
			return stop(status, options_mistake(command, "not a value for it", row->name));
	}
	rest->count = argc - optind;
	rest->items = argv + optind;
	if (rest->count < rest->least)
		return stop(status, options_mistake(command, "something is missing", "arguments"));
	if (rest->most >= 0 && rest->count > rest->most)
		return stop(status, options_mistake(command, "too many arguments", rest->items[rest->most]));
	return true;
}
