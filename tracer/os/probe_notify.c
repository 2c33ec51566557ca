/*
 * Probes of the notify back end. They share one rehearsal of a run: a child carries a filter that stops one harmless call,
 * we take its listener, receive the call, look, and let it go on. Each probe goes as far as its own step.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/capture.h"
#include "os/filter.h"
#include "os/memory.h"
#include "os/notify.h"
#include "os/procfs.h"
#include "probe_row.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#endif

enum { RECEIVE_MS = 2000 };
static const uint64_t SIGN = UINT64_C(0x617373757265);

/* What the rehearsing child tells once its filter stands, or does not. */
struct told {
	int listener;
	bool no_new_privs;
	struct err err;
};

struct rehearsal {
	struct told told;
	pid_t child;
	int go, answer; /* to the child, from the child */
	int listener;
	struct notify notify;
	struct backend backend;
	struct stop stop;
};

/* Written by the child alone: what is found here in its memory cannot be our own. */
static volatile uint64_t sign;

/* getppid(2) of the native architecture stops; all else goes by. */
static struct sock_filter one_call[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 0, 3),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static _Noreturn void rehearse_child(const struct filter *filter, int go, int answer)
{
	struct told told = {.listener = -1};
	char begin;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	told.listener = filter_install(filter, &told.no_new_privs, &told.err);
	(void)fd_write_full(answer, &told, sizeof(told));
	if (told.listener < 0 || fd_read_full(go, &begin, 1) != 1)
		_exit(1);
	close(told.listener);
	sign = SIGN;
	int64_t parent = syscall(SYS_getppid);
	(void)fd_write_full(answer, &parent, sizeof(parent));
	_exit(0);
}

/* Step 1: a child with a filter. */
static bool begin(struct rehearsal *rehearsal, const struct filter *filter, struct err *err)
{
	int go[2], answer[2];

	*rehearsal = (struct rehearsal){.listener = -1};
	if (pipe2(go, O_CLOEXEC) != 0 || pipe2(answer, O_CLOEXEC) != 0)
		return err_set(err, errno, "making pipes");
	rehearsal->child = fork();
	if (rehearsal->child < 0)
		return err_set(err, errno, "starting a process");
	if (rehearsal->child == 0) {
		close(go[1]);
		close(answer[0]);
		rehearse_child(filter, go[0], answer[1]);
	}
	close(go[0]);
	close(answer[1]);
	rehearsal->go = go[1];
	rehearsal->answer = answer[0];
	struct told *told = &rehearsal->told;
	if (fd_read_full(rehearsal->answer, told, sizeof(*told)) != (ssize_t)sizeof(*told))
		return err_set(err, 0, "the process died while it installed its filter");
	if (told->listener < 0 && err)
		*err = told->err;
	return told->listener >= 0;
}

/* Step 2: its listener in our hands alone. */
static bool take(struct rehearsal *rehearsal, struct err *err)
{
	int pidfd CLEANUP_FD = pidfd_open(rehearsal->child, 0);

	if (pidfd < 0)
		return err_set(err, errno, "pidfd_open");
	rehearsal->listener = pidfd_getfd(pidfd, rehearsal->told.listener, 0);
	if (rehearsal->listener < 0)
		return err_set(err, errno, "pidfd_getfd of a child's descriptor");
	rehearsal->notify.listener = rehearsal->listener;
	notify_backend(&rehearsal->notify, &rehearsal->backend);
	return true;
}

/* Step 3: its call. */
static bool receive(struct rehearsal *rehearsal, struct err *err)
{
	struct pollfd wait = {rehearsal->listener, POLLIN, 0};
	enum receive_state state;

	if (!notify_check_sizes(err))
		return false;
	if (!fd_write_full(rehearsal->go, "g", 1))
		return err_set(err, errno, "the process is gone");
	if (poll(&wait, 1, RECEIVE_MS) <= 0)
		return err_set(err, ETIMEDOUT, "waiting for a stopped call");
	do
		state = rehearsal->backend.receive(rehearsal->backend.self, &rehearsal->stop, err);
	while (state == RECEIVE_AGAIN);
	if (state != RECEIVE_STOP)
		return err_set(err, 0, "the stopped call was not handed over");
	if (rehearsal->stop.tid != rehearsal->child || rehearsal->stop.number != SYS_getppid)
		return err_set(err, 0, "another call was handed over: number %d of process %d", rehearsal->stop.number,
			       (int)rehearsal->stop.tid);
	return true;
}

static bool let_go(struct rehearsal *rehearsal)
{
	return rehearsal->backend.answer(rehearsal->backend.self, &rehearsal->stop, ANSWER_CONTINUE, 0);
}

/* Begin with the small filter and take steps up to `last`. What fails before it says nothing about it. */
static bool reach(struct rehearsal *rehearsal, int last, struct probe_result *result)
{
	static const char *const names[] = {"seccomp listener", "pidfd_getfd", "receive a call"};
	const struct filter filter = {one_call, sizeof(one_call) / sizeof(one_call[0])};
	struct err err = {0};
	int step = 1;
	bool done = begin(rehearsal, &filter, &err);

	if (done && last >= 2) {
		step = 2;
		done = take(rehearsal, &err);
	}
	if (done && last >= 3) {
		step = 3;
		done = receive(rehearsal, &err);
	}
	if (!done && step < last)
		probe_say(result, PROBE_UNKNOWN, "not reached: see %s", names[step - 1]);
	else if (!done)
		probe_say_error(result, PROBE_MISSING, &err);
	return done;
}

void probe_try_filter(struct probe_result *result)
{
	struct rehearsal rehearsal;
	struct filter filter;
	struct err err = {0};

	/* The real program of a run: its size counts as well. */
	if (!notify_check_sizes(&err) || !filter_build(&filter, LENS_COUNT - 1, &err) ||
	    !begin(&rehearsal, &filter, &err))
		probe_say_error(result, PROBE_MISSING, &err);
	else if (rehearsal.told.no_new_privs)
		probe_say(result, PROBE_OK,
			  "with no_new_privs: set-user-id programs inside run without their privilege");
	else
		probe_say(result, PROBE_OK, "without no_new_privs: set-user-id programs inside keep their privilege");
}

void probe_try_listener(struct probe_result *result)
{
	struct rehearsal rehearsal;

	if (reach(&rehearsal, 2, result))
		probe_say(result, PROBE_OK, "the listener of a child can be taken");
}

void probe_try_receive(struct probe_result *result)
{
	struct rehearsal rehearsal;

	if (reach(&rehearsal, 3, result))
		probe_say(result, PROBE_OK, "a child's call was stopped and handed over");
}

void probe_try_memory(struct probe_result *result)
{
	struct rehearsal rehearsal;
	struct err err = {0};
	uint64_t found = 0;

	if (!procfs_open(&err)) {
		probe_say(result, PROBE_UNKNOWN, "not reached: see /proc");
		return;
	}
	if (!reach(&rehearsal, 4, result))
		return;
	int task CLEANUP_FD = procfs_task(rehearsal.child);
	int memory CLEANUP_FD = task < 0 ? -1 : openat(task, "mem", O_RDONLY | O_CLOEXEC);
	int error = memory < 0 ? errno : memory_read(memory, (uint64_t)(uintptr_t)&sign, &found, sizeof(found));
	if (error)
		probe_say(result, PROBE_MISSING, "/proc/PID/mem of a stopped child: %s", strerror(error));
	else if (found != SIGN)
		probe_say(result, PROBE_MISSING, "/proc/PID/mem of a stopped child shows something else");
	else
		probe_say(result, PROBE_OK, "/proc/PID/mem of a stopped child is readable");
}

void probe_try_answer(struct probe_result *result)
{
	struct rehearsal rehearsal;
	int64_t value = 0;

	if (!reach(&rehearsal, 4, result))
		return;
	if (!let_go(&rehearsal))
		probe_say(result, PROBE_MISSING, "letting a stopped call go on: %s", strerror(errno));
	else if (fd_read_full(rehearsal.answer, &value, sizeof(value)) != (ssize_t)sizeof(value))
		probe_say(result, PROBE_MISSING, "the process died when its call was let go");
	else if (value != getpid())
		probe_say(result, PROBE_MISSING, "the call returned %lld instead of its own answer", (long long)value);
	else
		probe_say(result, PROBE_OK, "the kernel made the call and its own answer arrived");
}

void probe_try_capture(struct probe_result *result)
{
	struct rehearsal rehearsal;
	struct capture capture;
	int64_t value = 0;

	if (!reach(&rehearsal, 4, result))
		return;
	if (!capture_begin(&capture, rehearsal.child, false)) {
		probe_say(result, PROBE_MISSING, "tracing a child that waits in its call: %s", strerror(errno));
		return;
	}
	if (!let_go(&rehearsal)) {
		probe_say(result, PROBE_UNKNOWN, "not reached: see let it go on");
		return;
	}
	enum capture_outcome outcome = capture_finish(&capture);
	if (outcome != CAPTURE_RETURNED || capture.value != getpid()) {
		probe_say(result, PROBE_MISSING, "the result of a child's call did not arrive (outcome %d, value %lld)",
			  (int)outcome, (long long)capture.value);
		return;
	}
	capture_release(&capture);
	if (fd_read_full(rehearsal.answer, &value, sizeof(value)) != (ssize_t)sizeof(value) || value != getpid())
		probe_say(result, PROBE_MISSING, "the child did not go on after its result was read");
	else
		probe_say(result, PROBE_OK, "the result of a child's call was read at its return");
}
