#include "os/capture.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

/* Return values by which the kernel marks a call that it will make again (include/linux/errno.h). */
enum { RESTART_FIRST = 512, RESTART_LAST = 516 };

static long trace(enum __ptrace_request request, pid_t tid, unsigned long data)
{
	return ptrace(request, tid, NULL, (void *)data);
}

/*
 * Let go of a task that stands. When it was killed meanwhile it cannot be detached any more, and stays ours until we have
 * waited for it: an exec in another thread of its group would wait for that, for good.
 */
static void detach(pid_t tid, int signal)
{
	while (trace(PTRACE_DETACH, tid, (unsigned long)signal) != 0 && errno == ESRCH) {
		int status;
		pid_t waited = waitpid(tid, &status, __WALL | __WNOTHREAD);
		if (waited < 0 && errno == EINTR)
			continue;
		/* Reaped, or gone with the exec that took its number. */
		if (waited != tid || !WIFSTOPPED(status))
			return;
	}
}

bool capture_begin(struct capture *capture, pid_t tid, bool for_exec)
{
	*capture = (struct capture){.tid = tid, .pid = tid};
	if (trace(PTRACE_SEIZE, tid, for_exec ? PTRACE_O_TRACEEXEC : 0) != 0)
		return false;
	/* Without the interrupt a failed exec would leave the task traced, and every signal of it would come to us. */
	if (trace(PTRACE_INTERRUPT, tid, 0) != 0) {
		int number = errno;
		detach(tid, 0);
		errno = number;
		return false;
	}
	return true;
}

static bool read_return_value(pid_t tid, int64_t *value)
{
#if defined(__x86_64__)
	struct user_regs_struct registers;
	struct iovec area = {&registers, sizeof(registers)};
	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &area) != 0)
		return false;
	*value = (int64_t)registers.rax;
#elif defined(__aarch64__)
	struct user_regs_struct registers;
	struct iovec area = {&registers, sizeof(registers)};
	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &area) != 0)
		return false;
	*value = (int64_t)registers.regs[0];
#else
#error "no register access for this architecture"
#endif
	return true;
}

bool capture_stack(const struct capture *capture, uint64_t *pointer, unsigned *word)
{
	/* A program of 32 bits has another set, which is shorter. */
	union {
		struct user_regs_struct wide;
		uint32_t narrow[sizeof(struct user_regs_struct) / sizeof(uint32_t)];
	} registers;
	struct iovec area = {&registers, sizeof(registers)};

	if (ptrace(PTRACE_GETREGSET, capture->pid, (void *)NT_PRSTATUS, &area) != 0)
		return false;
	bool wide = area.iov_len == sizeof(registers.wide);
	*word = wide ? sizeof(uint64_t) : sizeof(uint32_t);
#if defined(__x86_64__)
	enum { NARROW_STACK = 15 }; /* esp in user_regs_struct32 */
	*pointer = wide ? registers.wide.rsp : registers.narrow[NARROW_STACK];
#elif defined(__aarch64__)
	enum { NARROW_STACK = 13 }; /* sp in compat_user_pt_regs */
	*pointer = wide ? registers.wide.sp : registers.narrow[NARROW_STACK];
#endif
	return true;
}

/* A trap of ours, or a job control stop that was in effect when the task reached it. */
static enum capture_outcome at_trap(struct capture *capture, pid_t tid, int status)
{
	int64_t value = 0;
	bool known = read_return_value(tid, &value);

	if (WSTOPSIG(status) != SIGTRAP)
		capture->stop_signal = WSTOPSIG(status);
	capture->pid = tid;
	capture->value = value;
	if (known)
		return value <= -RESTART_FIRST && value >= -RESTART_LAST ? CAPTURE_RESTARTS : CAPTURE_RETURNED;
	detach(tid, 0);
	return CAPTURE_STOPPED;
}

enum capture_outcome capture_finish(struct capture *capture)
{
	for (;;) {
		int status;
		/* An exec from a thread reports under the group leader's id, so any tracee of this thread is asked for. */
		pid_t tid = waitpid(-1, &status, __WALL | __WNOTHREAD);
		if (tid < 0 && errno == EINTR)
			continue;
		if (tid < 0)
			return CAPTURE_DIED;
		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			capture->pid = tid;
			capture->wait_status = status;
			return CAPTURE_DIED;
		}
		if (!WIFSTOPPED(status))
			continue;
		int event = status >> 16;
		if (event == PTRACE_EVENT_EXEC) {
			capture->pid = tid;
			return CAPTURE_EXECUTED;
		}
		if (event == PTRACE_EVENT_STOP)
			return at_trap(capture, tid, status);
		/* A signal on its way: pass it on as if nobody had been here. */
		detach(tid, WSTOPSIG(status));
		return CAPTURE_STOPPED;
	}
}

void capture_abort(struct capture *capture)
{
	/* The caller was killed, or its call was answered: it reaches the trap or its end either way. */
	enum capture_outcome outcome = capture_finish(capture);
	if (outcome != CAPTURE_DIED && outcome != CAPTURE_STOPPED)
		capture_release(capture);
}

void capture_release(struct capture *capture)
{
	detach(capture->pid, 0);
}
