#include "os/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "os/procfs.h"
#include "probe_row.h"

enum { LIMIT_MS = 5000, TRIAL_MS = 1000, KERNEL_MAJOR = 5, KERNEL_MINOR = 19 };

const struct probe_row probe_rows[PROBE_COUNT] = {
#define PROBE(identifier, name_, weight_, shown_, purpose_, follows_, todo_) \
	[PROBE_##identifier] = {.id = #identifier,                           \
				.name = (name_),                             \
				.weight = PROBE_WEIGHT_##weight_,            \
				.shown = PROBE_SHOWN_##shown_,               \
				.purpose = (purpose_),                       \
				.follows = (follows_),                       \
				.todo = (todo_)},
#include "probes.def"
#undef PROBE
};

static void (*const attempts[PROBE_COUNT])(struct probe_result *) = {
#define PROBE(identifier, ...) [PROBE_##identifier] = probe_try_##identifier,
#include "probes.def"
#undef PROBE
};

const char *probe_state_name(enum probe_state state)
{
	static const char *const names[] = {"ok", "missing", "unknown"};

	return names[state];
}

void probe_say(struct probe_result *result, enum probe_state state, const char *format, ...)
{
	va_list arguments;

	result->state = state;
	va_start(arguments, format);
	vsnprintf(result->detail, sizeof(result->detail), format, arguments);
	va_end(arguments);
}

void probe_say_error(struct probe_result *result, enum probe_state state, const struct err *err)
{
	if (err->hint[0])
		probe_say(result, state, "%s (%s)", err->text, err->hint);
	else
		probe_say(result, state, "%s", err->text);
}

bool probe_overridden(const char *id)
{
	const char *cursor = getenv("ASSURE_PROBES");
	const size_t size = strlen(id);

	while (cursor && *cursor) {
		size_t length = strcspn(cursor, ",");
		if (length == size + strlen("=missing") && strncmp(cursor, id, size) == 0 &&
		    strncmp(cursor + size, "=missing", strlen("=missing")) == 0)
			return true;
		cursor += length;
		cursor += *cursor == ',';
	}
	return false;
}

/* ---- a child for each ---- */

static void settle_child(pid_t parent)
{
	/* A group of its own, by which whatever it leaves is ended. */
	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Where it is ignored, as some shells and services leave it, no end of a child could be waited for. */
	(void)signal(SIGCHLD, SIG_DFL);
	if (getppid() != parent)
		_exit(1);
}

static _Noreturn void child_main(enum probe probe, pid_t parent, int answer)
{
	struct probe_result result = {.state = PROBE_OK};

	settle_child(parent);
	attempts[probe](&result);
	(void)fd_write_full(answer, &result, sizeof(result));
	_exit(0);
}

/* Read the answer until `limit`; false when there is none, with how the child ended still to be asked. */
static bool await_answer(int answer, uint64_t limit, struct probe_result *result, bool *late)
{
	struct pollfd wait = {answer, POLLIN, 0};

	*late = false;
	for (;;) {
		uint64_t now = clock_monotonic_ns();
		int status = now >= limit ? 0 : poll(&wait, 1, (int)((limit - now) / 1000000) + 1);
		if (status < 0 && errno == EINTR)
			continue;
		*late = status == 0;
		/* The answer is smaller than what a pipe takes at once: it is there as a whole or not at all. */
		if (status <= 0 || fd_read_full(answer, result, sizeof(*result)) != (ssize_t)sizeof(*result))
			return false;
		result->detail[sizeof(result->detail) - 1] = 0;
		return true;
	}
}

/* The child and whatever it started; `status` as waitpid() has it. */
static void end_child(pid_t child, int *status)
{
	(void)kill(-child, SIGKILL);
	(void)kill(child, SIGKILL);
	while (waitpid(child, status, 0) < 0 && errno == EINTR)
		;
}

static void say_died(struct probe_result *result, int status)
{
	probe_say(result, PROBE_MISSING, "its process died (%s)",
		  WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "exit without an answer");
}

void probe_run(enum probe probe, struct probe_result *result)
{
	int ends[2];
	int status = 0;
	bool late;

	*result = (struct probe_result){.state = PROBE_UNKNOWN};
	if (probe_overridden(probe_rows[probe].id)) {
		probe_say(result, PROBE_MISSING, "said by ASSURE_PROBES");
		return;
	}
	pid_t parent = getpid();
	pid_t child = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
	if (child < 0) {
		probe_say(result, PROBE_UNKNOWN, "no process to try it in: %s", strerror(errno));
		return;
	}
	if (child == 0) {
		close(ends[0]);
		child_main(probe, parent, ends[1]);
	}
	(void)setpgid(child, child);
	close(ends[1]);
	bool answered = await_answer(ends[0], clock_monotonic_ns() + LIMIT_MS * UINT64_C(1000000), result, &late);
	close(ends[0]);
	end_child(child, &status);
	if (!answered && late)
		probe_say(result, PROBE_MISSING, "it hung: no answer after %d s", LIMIT_MS / 1000);
	else if (!answered)
		say_died(result, status);
}

/* ---- one child for those that are tried at each start ---- */

static bool is_tried(size_t probe)
{
	return probe_rows[probe].shown == PROBE_SHOWN_by_trial && !probe_overridden(probe_rows[probe].id);
}

static _Noreturn void trial_main(pid_t parent, int answer)
{
	settle_child(parent);
	(void)prctl(PR_SET_NAME, "assure-probe");
	for (size_t i = 0; i < PROBE_COUNT; i++) {
		struct probe_result result = {.state = PROBE_OK};
		if (!is_tried(i))
			continue;
		attempts[i](&result);
		if (!fd_write_full(answer, &result, sizeof(result)))
			break;
	}
	_exit(0);
}

void probe_trial_begin(struct probe_trial *trial)
{
	int ends[2];
	pid_t parent = getpid();

	*trial = (struct probe_trial){.child = -1, .answer = -1};
	if (pipe2(ends, O_CLOEXEC) != 0)
		return;
	trial->child = fork();
	if (trial->child == 0) {
		close(ends[0]);
		trial_main(parent, ends[1]);
	}
	close(ends[1]);
	trial->answer = ends[0];
	if (trial->child > 0)
		(void)setpgid(trial->child, trial->child);
	else
		fd_close(&trial->answer);
}

void probe_trial_end(struct probe_trial *trial, struct probe_result results[PROBE_COUNT])
{
	const uint64_t limit = clock_monotonic_ns() + TRIAL_MS * UINT64_C(1000000);
	size_t silent = PROBE_COUNT; /* the first that had no answer */
	bool late = false;
	int status = 0;

	for (size_t i = 0; i < PROBE_COUNT; i++) {
		struct probe_result *result = &results[i];
		*result = (struct probe_result){.state = PROBE_OK};
		if (probe_overridden(probe_rows[i].id)) {
			probe_say(result, PROBE_MISSING, "said by ASSURE_PROBES");
			continue;
		}
		if (!is_tried(i))
			continue;
		if (silent == PROBE_COUNT && trial->child > 0 && await_answer(trial->answer, limit, result, &late))
			continue;
		if (silent == PROBE_COUNT)
			silent = i;
		probe_say(result, PROBE_UNKNOWN,
			  trial->child < 0 ? "no process to try it in"
			  : late           ? "not answered in time"
					   : "not reached: what was tried before it died");
	}
	if (trial->child > 0)
		end_child(trial->child, &status);
	/* What ends the process that tries it (a filter around us may do so) is not to be had. */
	if (silent < PROBE_COUNT && trial->child > 0 && !late)
		say_died(&results[silent], status);
	fd_close(&trial->answer);
	trial->child = -1;
}

void probe_run_all(struct probe_result results[PROBE_COUNT])
{
	for (enum probe probe = 0; probe < PROBE_COUNT; probe++)
		probe_run(probe, &results[probe]);
}

bool probe_run_works(const struct probe_result results[PROBE_COUNT])
{
	for (size_t i = 0; i < PROBE_COUNT; i++)
		if (probe_rows[i].weight == PROBE_WEIGHT_required && results[i].state != PROBE_OK)
			return false;
	return true;
}

/* ---- the kernel ---- */

/* Asked by the feature first: distributions put features into kernels of older names. */
static bool kernel_suffices(struct utsname *host)
{
	const unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;

	(void)uname(host);
	/* Flags are looked at before the program, which is none: nothing is installed. */
	(void)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, NULL);
	if (errno == EFAULT)
		return true;
	if (errno == EINVAL)
		return false;
	/* Forbidden by a filter around us? Then the number is all there is; the filter is another probe's business. */
	char *rest;
	unsigned long major = strtoul(host->release, &rest, 10);
	unsigned long minor = *rest == '.' ? strtoul(rest + 1, NULL, 10) : 0;
	return major > KERNEL_MAJOR || (major == KERNEL_MAJOR && minor >= KERNEL_MINOR);
}

void probe_try_kernel(struct probe_result *result)
{
	struct utsname host = {0};
	bool suffices = kernel_suffices(&host);

	probe_say(result, suffices ? PROBE_OK : PROBE_MISSING, "Linux %s %s", host.release, host.machine);
}

bool probe_required(struct err *err)
{
	struct utsname host = {0};

	for (size_t i = 0; i < PROBE_COUNT; i++) {
		const struct probe_row *row = &probe_rows[i];
		if (row->weight != PROBE_WEIGHT_required || !probe_overridden(row->id))
			continue;
		err_set(err, 0, "%s: missing, says ASSURE_PROBES: %s", row->name, row->follows);
		return err_hint(err, "%s", row->todo);
	}
	if (kernel_suffices(&host))
		return true;
	err_set(err, 0, "this kernel is too old: it is Linux %s, a run needs %d.%d", host.release, KERNEL_MAJOR,
		KERNEL_MINOR);
	return err_hint(err, "see `assure doctor`");
}
