/*
 * A verb of the command line: one const entry per cmd_*.c, listed in main.c.
 */
#pragma once

/* Exit statuses; trace has more (`assure help trace`). */
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 64 };

struct command {
	const char *name;
	const char *usage;                 /* one line, without "assure" */
	const char *help;                  /* first line: what it does; then the details, all ending in a newline */
	int (*run)(int argc, char **argv); /* argv[0] is the verb */
};

extern const struct command command_trace;
extern const struct command command_doctor;
extern const struct command command_runs;
extern const struct command command_show;
extern const struct command command_tree;
extern const struct command command_effects;
extern const struct command command_rm;
extern const struct command command_gc;
extern const struct command command_keys;
extern const struct command command_matrix;
extern const struct command command_log;
extern const struct command command_export;
extern const struct command command_import;
extern const struct command command_receipt;
extern const struct command command_recover;
extern const struct command command_verify;
extern const struct command command_version;
