/*
 * protect_calls: aims each call that can end, stop, read or change another process at every process that watches us.
 * Prints `ROLE CALL ERROR` for each, ERROR being the name of errno or `ok`; the last line says how many calls.
 */
#include <asm/sockios.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int count;

static void show(const char *role, const char *call, long result)
{
	printf("%s %s %s\n", role, call, result < 0 ? strerrorname_np(errno) : "ok");
	count++;
}

static bool read_status(pid_t pid, char comm[17], pid_t *parent)
{
	char path[64], line[256];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	FILE *file = fopen(path, "re");
	if (!file || !fgets(line, sizeof(line), file))
		return false;
	fclose(file);
	char *end = strrchr(line, ')'), *begin = strchr(line, '(');
	*end = 0;
	snprintf(comm, 17, "%s", begin + 1);
	*parent = (pid_t)strtol(end + 4, NULL, 10);
	return true;
}

static pid_t child_of(pid_t parent, const char *wanted)
{
	DIR *directory = opendir("/proc");
	pid_t found = 0, its_parent;
	char comm[17];

	for (struct dirent *entry; directory && (entry = readdir(directory)) != NULL;) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		if (pid > 0 && read_status(pid, comm, &its_parent) && its_parent == parent && strcmp(comm, wanted) == 0)
			found = pid;
	}
	if (directory)
		closedir(directory);
	return found;
}

/* A thread of the process that is not its first. */
static pid_t other_thread(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	DIR *directory = opendir(path);
	pid_t found = pid;
	for (struct dirent *entry; directory && (entry = readdir(directory)) != NULL;) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		if (tid > 0 && tid != pid)
			found = tid;
	}
	if (directory)
		closedir(directory);
	return found;
}

static void signal_it(const char *role, pid_t pid, pid_t tid)
{
	siginfo_t info = {.si_signo = SIGKILL, .si_code = SI_QUEUE};

	show(role, "kill", kill(pid, SIGKILL));
	show(role, "kill_stop", kill(pid, SIGSTOP));
	show(role, "tkill", syscall(SYS_tkill, pid, SIGKILL));
	show(role, "tgkill", syscall(SYS_tgkill, pid, pid, SIGKILL));
	show(role, "tkill_thread", syscall(SYS_tkill, tid, SIGKILL));
	show(role, "kill_thread", kill(tid, SIGKILL));
	show(role, "rt_sigqueueinfo", syscall(SYS_rt_sigqueueinfo, pid, SIGKILL, &info));
	show(role, "rt_tgsigqueueinfo", syscall(SYS_rt_tgsigqueueinfo, pid, tid, SIGKILL, &info));
}

/* A folder of /proc serves as a pidfd, and so do descriptors made with any flag. */
static void by_descriptor(const char *role, pid_t pid)
{
	char path[64];

	show(role, "pidfd_open", syscall(SYS_pidfd_open, pid, 0));
	show(role, "pidfd_open_nonblock", syscall(SYS_pidfd_open, pid, O_NONBLOCK));
	snprintf(path, sizeof(path), "/proc/%d", pid);
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder >= 0)
		show(role, "pidfd_send_signal", syscall(SYS_pidfd_send_signal, folder, SIGKILL, NULL, 0));
	close(folder);
}

static void memory_and_trace(const char *role, pid_t pid)
{
	char byte = 0, path[64];
	struct iovec mine = {&byte, 1}, theirs = {&byte, 1};

	show(role, "ptrace_attach", ptrace(PTRACE_ATTACH, pid, NULL, NULL));
	show(role, "ptrace_seize", ptrace(PTRACE_SEIZE, pid, NULL, NULL));
	show(role, "process_vm_writev", process_vm_writev(pid, &mine, 1, &theirs, 1, 0));
	show(role, "process_vm_readv", process_vm_readv(pid, &mine, 1, &theirs, 1, 0));
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	show(role, "proc_mem", open(path, O_RDWR | O_CLOEXEC));
}

static void limits(const char *role, pid_t pid)
{
	struct rlimit none = {0, 0};
	cpu_set_t cpus;
	struct sched_param parameters = {0};

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	show(role, "prlimit", prlimit(pid, RLIMIT_FSIZE, &none, NULL));
	show(role, "sched_setaffinity", sched_setaffinity(pid, sizeof(cpus), &cpus));
	show(role, "sched_setscheduler", sched_setscheduler(pid, SCHED_IDLE, &parameters));
	show(role, "setpriority", setpriority(PRIO_PROCESS, (id_t)pid, 19));
	show(role, "ioprio_set", syscall(SYS_ioprio_set, 1, pid, 3 << 13));
}

static void own(const char *role, pid_t pid)
{
	int pair[2], argument = pid;
	struct f_owner_ex process = {F_OWNER_PID, pid}, thread = {F_OWNER_TID, pid};

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return;
	show(role, "F_SETOWN", fcntl(pair[0], F_SETOWN, pid));
	show(role, "F_SETOWN_EX", fcntl(pair[0], F_SETOWN_EX, &process));
	show(role, "F_SETOWN_EX_tid", fcntl(pair[0], F_SETOWN_EX, &thread));
	show(role, "FIOSETOWN", ioctl(pair[0], FIOSETOWN, &argument));
	show(role, "SIOCSPGRP", ioctl(pair[0], SIOCSPGRP, &argument));
	close(pair[0]);
	close(pair[1]);
}

/* Groups that are ours alone: as good as the process that leads them. */
static void by_group(const char *role, pid_t pid)
{
	int pair[2], negative = -pid;
	struct f_owner_ex group = {F_OWNER_PGRP, pid};

	if (getpgid(pid) != pid || getpgid(0) == pid)
		return;
	show(role, "kill_group", kill(-pid, SIGKILL));
	show(role, "setpriority_group", setpriority(PRIO_PGRP, (id_t)pid, 19));
	show(role, "ioprio_group", syscall(SYS_ioprio_set, 2, pid, 3 << 13));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return;
	show(role, "F_SETOWN_group", fcntl(pair[0], F_SETOWN, -pid));
	show(role, "F_SETOWN_EX_group", fcntl(pair[0], F_SETOWN_EX, &group));
	show(role, "FIOSETOWN_group", ioctl(pair[0], FIOSETOWN, &negative));
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	char comm[17];
	pid_t pid = getpid(), parent, keeper = 0, monitor = 0, guardian = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while (pid > 1 && !guardian && read_status(pid, comm, &parent)) {
		if (strcmp(comm, "assure-keeper") == 0)
			keeper = pid;
		else if (strcmp(comm, "assure-monitor") == 0)
			monitor = pid;
		else if (strcmp(comm, "assure-guardian") == 0)
			guardian = pid;
		pid = parent;
	}
	struct {
		const char *role;
		pid_t pid;
	} ours[] = {{"keeper", keeper},
		    {"monitor", monitor},
		    {"guardian", guardian},
		    {"scribe", guardian ? child_of(guardian, "assure-scribe") : 0}};
	for (size_t i = 0; i < 4; i++) {
		if (ours[i].pid <= 0) {
			printf("%s none -\n", ours[i].role);
			continue;
		}
		pid_t thread = other_thread(ours[i].pid);
		limits(ours[i].role, ours[i].pid);
		memory_and_trace(ours[i].role, ours[i].pid);
		own(ours[i].role, ours[i].pid);
		by_descriptor(ours[i].role, ours[i].pid);
		by_group(ours[i].role, ours[i].pid);
		signal_it(ours[i].role, ours[i].pid, thread);
	}
	printf("%d calls\n", count);
	return 0;
}
