/* Priorities, processors and limits of other processes. */
#include "row_process.h"

#include <linux/ioprio.h>
#include <pthread.h>
#include <sys/resource.h>

/* Of linux/sched/types.h, which C libraries of different age define or not; version 0. */
struct row_attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static void expect_other(const char *row, pid_t pid, long result)
{
	row_expect(row, "kernel.other", result);
	row_number("target.pid", pid);
}

static void row_sched_setparam(void)
{
	struct row_idle idle = row_idle_start(false);
	struct sched_param zero = {0}, five = {5};

	expect_other("sched_setparam", idle.pid, syscall(SYS_sched_setparam, idle.pid, &zero));
	row_done();
	/* an ordinary policy has no priorities */
	expect_other("sched_setparam", idle.pid, syscall(SYS_sched_setparam, idle.pid, &five));
	row_done();
	row_idle_end(&idle);
	expect_other("sched_setparam", ROW_NO_PROCESS, syscall(SYS_sched_setparam, ROW_NO_PROCESS, &zero));
	row_done();

	if (syscall(SYS_sched_setparam, 0, &zero) != 0 || syscall(SYS_sched_setparam, getpid(), &zero) != 0)
		row_give_up("sched_setparam");
	row_no_effect("sched_setparam", "\"target.pid\":0");
	row_no_effect("sched_setparam", "\"target.pid\":%d", getpid());
}

static void try_policy(pid_t pid, int policy, int priority, const char *name)
{
	struct sched_param param = {priority};

	expect_other("sched_setscheduler", pid, syscall(SYS_sched_setscheduler, pid, policy, &param));
	row_text("args.policy", name);
	row_done();
}

static void scheduler_refused(void)
{
	row_be_nobody();
	struct row_idle idle = row_idle_start(false);
	try_policy(idle.pid, SCHED_FIFO, 1, "SCHED_FIFO");
	row_idle_end(&idle);
}

static void *wait_for_end(void *argument)
{
	int *pipes = argument;
	long tid = syscall(SYS_gettid);
	char byte;

	if (write(pipes[1], &tid, sizeof(tid)) == sizeof(tid))
		(void)!read(pipes[2], &byte, 1);
	return NULL;
}

/* Thread libraries set the policy of threads: that is no effect on another process. */
static void sibling_quiet(void)
{
	struct sched_param zero = {0};
	struct rlimit limit = {0, 0};
	pthread_t thread;
	int pipes[4];
	long tid;

	if (pipe(pipes) != 0 || pipe(pipes + 2) != 0 || pthread_create(&thread, NULL, wait_for_end, pipes) != 0 ||
	    read(pipes[0], &tid, sizeof(tid)) != sizeof(tid))
		row_give_up("sibling");
	if (syscall(SYS_sched_setscheduler, tid, SCHED_OTHER, &zero) != 0 ||
	    syscall(SYS_prlimit64, tid, RLIMIT_CORE, &limit, NULL) != 0 || write(pipes[3], "", 1) != 1)
		row_give_up("sibling");
	pthread_join(thread, NULL);
	row_no_effect("sched_setscheduler", "\"target.pid\":%ld", tid);
	row_no_effect("prlimit64", "\"target.pid\":%ld", tid);
}

static void row_sched_setscheduler(void)
{
	struct row_idle idle = row_idle_start(false);

	try_policy(idle.pid, SCHED_BATCH, 0, "SCHED_BATCH");
	if (sched_getscheduler(idle.pid) != SCHED_BATCH)
		row_give_up("sched_setscheduler");
	try_policy(idle.pid, SCHED_BATCH, 7, "SCHED_BATCH");
	try_policy(idle.pid, 99, 0, "0x63");
	row_idle_end(&idle);
	try_policy(ROW_NO_PROCESS, SCHED_BATCH, 0, "SCHED_BATCH");
	row_apart(scheduler_refused);
	row_apart(sibling_quiet);
}

static void try_attributes(pid_t pid, int nice, unsigned priority)
{
	struct row_attributes attributes = {.size = sizeof(attributes), .nice = nice, .priority = priority};

	expect_other("sched_setattr", pid, syscall(SYS_sched_setattr, pid, &attributes, 0));
	row_done();
}

static void attributes_refused(void)
{
	row_be_nobody();
	struct row_idle idle = row_idle_start(false);
	try_attributes(idle.pid, -5, 0);
	row_idle_end(&idle);
}

static void row_sched_setattr(void)
{
	struct row_idle idle = row_idle_start(false);

	try_attributes(idle.pid, 4, 0);
	if (getpriority(PRIO_PROCESS, (id_t)idle.pid) != 4)
		row_give_up("sched_setattr");
	try_attributes(idle.pid, 4, 9);
	row_idle_end(&idle);
	try_attributes(ROW_NO_PROCESS, 4, 0);
	row_apart(attributes_refused);
}

static void row_sched_setaffinity(void)
{
	struct row_idle idle = row_idle_start(false);
	cpu_set_t all, none;

	CPU_ZERO(&none);
	if (sched_getaffinity(0, sizeof(all), &all) != 0)
		row_give_up("sched_getaffinity");
	const struct {
		pid_t pid;
		cpu_set_t *mask;
	} attempts[] = {{idle.pid, &all}, {idle.pid, &none}, {ROW_NO_PROCESS, &all}};
	for (int i = 0; i < 3; i++) {
		expect_other("sched_setaffinity", attempts[i].pid,
			     syscall(SYS_sched_setaffinity, attempts[i].pid, sizeof(all), attempts[i].mask));
		row_number("args.cpusetsize", sizeof(all));
		row_done();
	}
	row_idle_end(&idle);
}

static void try_priority(int which, const char *name, int who, int priority)
{
	row_expect("setpriority", "kernel.other", syscall(SYS_setpriority, which, who, priority));
	row_text("args.which", name);
	row_number("args.who", who);
	row_number("args.prio", priority);
	row_done();
}

static void priority_refused(void)
{
	row_be_nobody();
	struct row_idle idle = row_idle_start(false);
	try_priority(PRIO_PROCESS, "PRIO_PROCESS", idle.pid, -3);
	row_idle_end(&idle);
}

static void row_setpriority(void)
{
	struct row_idle idle = row_idle_start(false);

	try_priority(PRIO_PROCESS, "PRIO_PROCESS", idle.pid, 6);
	if (getpriority(PRIO_PROCESS, (id_t)idle.pid) != 6 || setpgid(idle.pid, 0) != 0)
		row_give_up("setpriority");
	try_priority(PRIO_PGRP, "PRIO_PGRP", idle.pid, 8);
	if (getpriority(PRIO_PROCESS, (id_t)idle.pid) != 8)
		row_give_up("setpriority");
	try_priority(9, "0x9", idle.pid, 8);
	row_idle_end(&idle);
	try_priority(PRIO_PROCESS, "PRIO_PROCESS", ROW_NO_PROCESS, 6);
	row_apart(priority_refused);

	if (syscall(SYS_setpriority, PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0)) != 0)
		row_give_up("setpriority");
	row_no_effect("setpriority", "\"args.who\":0");
}

static void try_ioprio(int which, const char *name, int who, int priority)
{
	row_expect("ioprio_set", "kernel.other", syscall(SYS_ioprio_set, which, who, priority));
	row_text("args.which", name);
	row_number("args.who", who);
	row_number("args.ioprio", priority);
	row_done();
}

static void ioprio_refused(void)
{
	row_be_nobody();
	struct row_idle idle = row_idle_start(false);
	try_ioprio(IOPRIO_WHO_PROCESS, "IOPRIO_WHO_PROCESS", idle.pid, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 4));
	row_idle_end(&idle);
}

static void row_ioprio_set(void)
{
	struct row_idle idle = row_idle_start(false);
	int best_effort = IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 6);

	if (setpgid(idle.pid, 0) != 0)
		row_give_up("setpgid");
	try_ioprio(IOPRIO_WHO_PROCESS, "IOPRIO_WHO_PROCESS", idle.pid, best_effort);
	if (syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, idle.pid) != best_effort)
		row_give_up("ioprio_set");
	try_ioprio(IOPRIO_WHO_PGRP, "IOPRIO_WHO_PGRP", idle.pid, best_effort);
	try_ioprio(99, "0x63", idle.pid, best_effort);
	row_idle_end(&idle);
	try_ioprio(IOPRIO_WHO_PROCESS, "IOPRIO_WHO_PROCESS", ROW_NO_PROCESS, best_effort);
	row_apart(ioprio_refused);

	if (syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, best_effort) != 0)
		row_give_up("ioprio_set");
	row_no_effect("ioprio_set", "\"args.who\":0");
}

static void try_limit(pid_t pid, int resource, const char *name, rlim_t soft, rlim_t hard)
{
	struct rlimit limit = {soft, hard};

	expect_other("prlimit64", pid, syscall(SYS_prlimit64, pid, resource, &limit, NULL));
	row_text("args.resource", name);
	row_done();
}

static void limit_refused(void)
{
	row_be_nobody();
	struct row_idle idle = row_idle_start(false);
	try_limit(idle.pid, RLIMIT_CORE, "RLIMIT_CORE", 0, 0);
	/* what was lowered stays low */
	try_limit(idle.pid, RLIMIT_CORE, "RLIMIT_CORE", 1, RLIM_INFINITY);
	row_idle_end(&idle);
}

static void row_prlimit64(void)
{
	struct row_idle idle = row_idle_start(false);
	struct rlimit limit;

	try_limit(idle.pid, RLIMIT_CORE, "RLIMIT_CORE", 0, 0);
	if (syscall(SYS_prlimit64, idle.pid, RLIMIT_CORE, NULL, &limit) != 0 || limit.rlim_max != 0)
		row_give_up("prlimit64");
	try_limit(idle.pid, RLIMIT_STACK, "RLIMIT_STACK", 2, 1);
	try_limit(idle.pid, 99, "0x63", 0, 0);
	row_idle_end(&idle);
	try_limit(ROW_NO_PROCESS, RLIMIT_CORE, "RLIMIT_CORE", 0, 0);
	row_apart(limit_refused);

	/* asking only */
	row_no_effect("prlimit64", "\"args.resource\":\"RLIMIT_NOFILE\"");
	if (syscall(SYS_prlimit64, getppid(), RLIMIT_NOFILE, NULL, &limit) != 0 && errno != EPERM)
		row_give_up("prlimit64");
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {
	    {"sched_setparam", row_sched_setparam}, {"sched_setscheduler", row_sched_setscheduler},
	    {"sched_setattr", row_sched_setattr},   {"sched_setaffinity", row_sched_setaffinity},
	    {"setpriority", row_setpriority},       {"ioprio_set", row_ioprio_set},
	    {"prlimit64", row_prlimit64},           {0},
	};

	return row_main(cases, argc, argv);
}
