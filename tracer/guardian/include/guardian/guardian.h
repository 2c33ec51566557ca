/*
 * The guardian: the foreground process. It starts scribe and monitor, stands in for the agent towards the shell (stops,
 * signals, exit status), and ends the tree when the monitor dies.
 */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/redact.h"
#include "ledger/host_key.h"
#include "ledger/record.h"
#include "ledger/store.h"
#include "os/table.h"

/* Patterns that a user can give for what shall not be recorded. */
enum { PATTERNS_LIMIT = 64 };

struct guardian_config {
	char *const *argv; /* the command, NULL-terminated */
	const char *name;  /* of the run, or NULL */
	const char *home;  /* state folder, absolute */
	const char *version, *build;
	enum lens lens;
	enum results results;
	bool wait_main; /* return when the command itself has ended */
	bool hash_images, io_uring_allowed;
	struct passphrase *passphrase;   /* of a sealed host key, wiped when the scribe has it; or NULL */
	const struct redactor *redactor; /* of what is recorded */
	const char *const *patterns;     /* of the user, that it has */
	size_t pattern_count;
	/* Called on the terminal's side with one line that the user should see while the command runs. */
	void (*notice)(void *context, const char *line);
	void *context;
};

struct guardian_outcome {
	char run[RUN_ID_SIZE]; /* empty when none was made */
	bool started;          /* the command ran */
	int wait_status;       /* of the command */
	bool complete;         /* the run was closed as complete */
	bool helper_died;      /* monitor or scribe ended early: the status is ours then, not the command's */
	bool detached;         /* something of the tree is still running, and still watched */
	char reason[256];      /* why not complete */
};

/*
 * Run the command under supervision, until it (or its tree) has ended and the run is closed. False with the reason when
 * it could not be started; err->exit_status is 125, 126 or 127 then (env(1)).
 */
bool guardian_run(const struct guardian_config *config, struct guardian_outcome *outcome, struct err *err);

/* End this process as the command ended: the same exit status, or death by the same signal. Does not return. */
_Noreturn void guardian_exit_like(int wait_status);

/* Find `command` as execvp(3) does: along PATH when it has no slash. `out` gets a path; err->exit_status 126 or 127. */
bool guardian_find_command(const char *command, char *out, size_t size, struct err *err);
