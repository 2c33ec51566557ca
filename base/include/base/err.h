/*
 * The one error type and the law that goes with it.
 *
 * 1. A function that can fail returns false (or NULL, or -1) and takes `struct err *err` as its last argument.
 * 2. Whoever sees the failure first sets the error, once: what was tried, on what, and the errno if there is one.
 * 3. Callers only add context on the way up, or a hint about what to do next; they never replace the message.
 * 4. Nothing below cli/ prints an error. `err` may be NULL when the caller does not care why.
 *
 * Messages may contain bytes of the agent (paths); cli/ escapes them when it prints.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct err {
	int number;      /* errno value, or 0 when the failure is not a system call's */
	int exit_status; /* exit status that cli/ should use; 0 means the command's default */
	char text[768];  /* what happened, on what, and why */
	char hint[256];  /* what to do next; may be empty */
};

/* True once an error has been set. */
bool err_is_set(const struct err *err);

/*
 * Set the error, with ": <strerror(number)>" appended when number is not 0. A second call on a set error is ignored, so
 * that the first cause survives. Returns false, for `return err_set(...)`.
 */
bool err_set(struct err *err, int number, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Put "<context>: " before the message. Returns false. */
bool err_context(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Say what the user can do about it; the first hint stays. Returns false. */
bool err_hint(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Choose the exit status that cli/ ends with. Returns false. */
bool err_exit_status(struct err *err, int exit_status);

/* Forget the error. */
void err_clear(struct err *err);
