#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "command.h"
#include "options.h"
#include "render.h"

static const struct command *const commands[] = {
    &command_trace,  &command_runs,    &command_show,    &command_tree,   &command_effects, &command_matrix,
    &command_verify, &command_receipt, &command_recover, &command_export, &command_import,  &command_keys,
    &command_log,    &command_rm,      &command_gc,      &command_doctor, &command_version,
};

enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]) };

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

static void print_overview(FILE *out)
{
	fputs("assure runs an AI agent and records every effect that it has on the machine.\n\n", out);
	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		const char *help = commands[i]->help;
		fprintf(out, "  %-8s  %.*s\n", commands[i]->name, (int)strcspn(help, "\n"), help);
	}
	fputs("  help      Explain a command.\n\nassure help COMMAND says more.\n", out);
}

static int unknown_command(const char *name)
{
	struct err err = {.number = 0};
	err_set(&err, 0, "command: %s: no such command", name);
	err_hint(&err, "assure help lists them");
	err_exit_status(&err, EXIT_USAGE);
	return render_error(&err);
}

static int run_help(int argc, char **argv)
{
	if (argc < 2) {
		print_overview(stdout);
		return EXIT_OK;
	}
	const struct command *command = find_command(argv[1]);
	if (!command)
		return unknown_command(argv[1]);
	options_print_help(command, stdout);
	return EXIT_OK;
}

static int run(int argc, char **argv)
{
	if (argc < 2) {
		print_overview(stderr);
		return EXIT_USAGE;
	}
	const char *verb = argv[1];
	if (strcmp(verb, "help") == 0 || strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0)
		return run_help(argc - 1, argv + 1);
	if (strcmp(verb, "--version") == 0)
		verb = "version";
	const struct command *command = find_command(verb);
	return command ? command->run(argc - 1, argv + 1) : unknown_command(verb);
}

int main(int argc, char **argv)
{
	setlocale(LC_CTYPE, "");
	int status = run(argc, argv);
	/* An answer that did not arrive (a full disk) is a failure, but must not hide the agent's own status. */
	if ((fflush(stdout) != 0 || ferror(stdout)) && status == EXIT_OK) {
		struct err err = {.number = 0};
		err_set(&err, errno, "write: standard output");
		return render_error(&err);
	}
	return status;
}
