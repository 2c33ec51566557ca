/* Memory and descriptors of other processes. */
#include "row_process.h"

#include <linux/kcmp.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

/* The same address in every child; shared, so that both sides see what was written. */
static char *shared;

enum { PAGE = 4096 };

static void expect_memory(const char *row, pid_t pid, long result)
{
	row_expect(row, "proc.memory", result);
	row_number("target.pid", pid);
}

/* Private memory of the child, at an address that its parent knows: a copy of the parent's at the fork. */
static char private_text[16] = "before";

static void expect_transfer(const char *row, pid_t pid, long result)
{
	expect_memory(row, pid, result);
	row_number("args.liovcnt", 1);
	row_number("args.riovcnt", 1);
	if (result > 0)
		row_number("result.value", result);
	row_done();
}

static void transfer_refused(void)
{
	char buffer[8];
	struct iovec local = {buffer, sizeof(buffer)}, remote = {private_text, sizeof(buffer)};

	row_be_nobody();
	struct row_idle idle = row_idle_start(true);
	expect_transfer("process_vm_readv", idle.pid,
			syscall(SYS_process_vm_readv, idle.pid, &local, 1, &remote, 1, 0));
	expect_transfer("process_vm_writev", idle.pid,
			syscall(SYS_process_vm_writev, idle.pid, &local, 1, &remote, 1, 0));
	row_idle_end(&idle);
}

static void row_process_vm(void)
{
	char buffer[sizeof(private_text)] = "after";
	struct iovec local = {buffer, 6}, remote = {private_text, 6};
	struct row_idle idle = row_idle_start(false);

	expect_transfer("process_vm_writev", idle.pid,
			syscall(SYS_process_vm_writev, idle.pid, &local, 1, &remote, 1, 0));
	memset(buffer, 0, sizeof(buffer));
	expect_transfer("process_vm_readv", idle.pid,
			syscall(SYS_process_vm_readv, idle.pid, &local, 1, &remote, 1, 0));
	/* the child's memory was changed, ours was not */
	if (strcmp(buffer, "after") != 0 || strcmp(private_text, "before") != 0)
		row_give_up("process_vm_writev wrote something else");
	row_idle_end(&idle);
	expect_transfer("process_vm_readv", ROW_NO_PROCESS,
			syscall(SYS_process_vm_readv, ROW_NO_PROCESS, &local, 1, &remote, 1, 0));
	expect_transfer("process_vm_writev", ROW_NO_PROCESS,
			syscall(SYS_process_vm_writev, ROW_NO_PROCESS, &local, 1, &remote, 1, 0));
	row_apart(transfer_refused);

	/* its own memory is nobody else's */
	if (syscall(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0) < 0)
		row_give_up("process_vm_readv");
	row_no_effect("process_vm_readv", "\"target.pid\":%d", getpid());
}

static void expect_advice(struct row_idle *idle, int advice, const char *name, long result)
{
	expect_memory("process_madvise", idle->pid, result);
	row_number("args.pidfd", idle->pidfd);
	row_number("args.n", 1);
	if (name)
		row_text("args.advice", name);
	else
		row_hex("args.advice", (unsigned long)advice);
	if (result > 0)
		row_number("result.value", result);
	row_done();
}

static void row_process_madvise(void)
{
	struct row_idle idle = row_idle_start(false);
	struct iovec range = {shared, PAGE};
	long result = syscall(SYS_process_madvise, idle.pidfd, &range, 1, MADV_COLD, 0);

	expect_advice(&idle, MADV_COLD, "MADV_COLD", result);
	row_wanted("process_madvise", result, "needs CAP_SYS_NICE");
	/* not for other processes; and unknown */
	expect_advice(&idle, MADV_REMOVE, "MADV_REMOVE",
		      syscall(SYS_process_madvise, idle.pidfd, &range, 1, MADV_REMOVE, 0));
	expect_advice(&idle, 999, NULL, syscall(SYS_process_madvise, idle.pidfd, &range, 1, 999, 0));
	row_idle_end(&idle);
}

/* A child that has begun to end, and is held just before its memory goes. */
static void mrelease_dying(void)
{
	struct row_idle idle = row_idle_start(false);
	int status, pidfd = dup(idle.pidfd);

	expect_memory("process_mrelease", idle.pid, syscall(SYS_process_mrelease, pidfd, 0));
	row_number("args.pidfd", pidfd);
	row_done();
	if (ptrace(PTRACE_SEIZE, idle.pid, 0, PTRACE_O_TRACEEXIT) != 0)
		row_give_up("PTRACE_SEIZE");
	close(idle.hold);
	if (waitpid(idle.pid, &status, __WALL) != idle.pid || status >> 8 != (SIGTRAP | (PTRACE_EVENT_EXIT << 8)))
		row_give_up("PTRACE_EVENT_EXIT");
	expect_memory("process_mrelease", idle.pid, syscall(SYS_process_mrelease, pidfd, 0));
	row_number("args.pidfd", pidfd);
	row_done();
	if (ptrace(PTRACE_CONT, idle.pid, 0, 0) != 0)
		row_give_up("PTRACE_CONT");
	row_wait(idle.pid);
	close(idle.pidfd);
	close(pidfd);
}

static void expect_kcmp(pid_t one, pid_t two, const char *type, long result)
{
	expect_memory("kcmp", one, result);
	row_number("args.pid2", two);
	row_text("args.type", type);
	row_number("args.idx1", 0);
	row_number("args.idx2", 0);
	if (result > 0)
		row_number("result.value", result);
	row_done();
}

static void kcmp_refused(void)
{
	row_be_nobody();
	struct row_idle idle = row_idle_start(true);
	expect_kcmp(idle.pid, getpid(), "KCMP_VM", syscall(SYS_kcmp, idle.pid, getpid(), KCMP_VM, 0, 0));
	row_idle_end(&idle);
}

static void row_kcmp(void)
{
	struct row_idle idle = row_idle_start(false);

	/* descriptor 0 is the same open file, the memory is another */
	expect_kcmp(idle.pid, getpid(), "KCMP_FILE", syscall(SYS_kcmp, idle.pid, getpid(), KCMP_FILE, 0, 0));
	expect_kcmp(idle.pid, getpid(), "KCMP_VM", syscall(SYS_kcmp, idle.pid, getpid(), KCMP_VM, 0, 0));
	expect_kcmp(idle.pid, getpid(), "0x63", syscall(SYS_kcmp, idle.pid, getpid(), 99, 0, 0));
	row_idle_end(&idle);
	expect_kcmp(ROW_NO_PROCESS, getpid(), "KCMP_VM", syscall(SYS_kcmp, ROW_NO_PROCESS, getpid(), KCMP_VM, 0, 0));
	row_apart(kcmp_refused);
}

static void robust_refused(void)
{
	void *head;
	size_t size;

	row_be_nobody();
	struct row_idle idle = row_idle_start(true);
	expect_memory("get_robust_list", idle.pid, syscall(SYS_get_robust_list, idle.pid, &head, &size));
	row_done();
	row_idle_end(&idle);
}

static void row_get_robust_list(void)
{
	struct row_idle idle = row_idle_start(false);
	void *head;
	size_t size;

	expect_memory("get_robust_list", idle.pid, syscall(SYS_get_robust_list, idle.pid, &head, &size));
	row_done();
	row_idle_end(&idle);
	expect_memory("get_robust_list", ROW_NO_PROCESS, syscall(SYS_get_robust_list, ROW_NO_PROCESS, &head, &size));
	row_done();
	row_apart(robust_refused);
	if (syscall(SYS_get_robust_list, 0, &head, &size) != 0 ||
	    syscall(SYS_get_robust_list, getpid(), &head, &size) != 0)
		row_give_up("get_robust_list");
	row_no_effect("get_robust_list", "\"target.pid\":0");
	row_no_effect("get_robust_list", "\"target.pid\":%d", getpid());
}

static long migrate(pid_t pid)
{
	unsigned long nodes = 1;

	/* One more than the number of bits, as the kernel counts. */
	return syscall(SYS_migrate_pages, pid, 65, &nodes, &nodes);
}

static long move(pid_t pid, int flags)
{
	void *pages[1] = {shared};
	int status[1];

	/* Without nodes the call only tells where the pages are. */
	return syscall(SYS_move_pages, pid, 1, pages, NULL, status, flags);
}

static void expect_migrate(pid_t pid, long result)
{
	expect_memory("migrate_pages", pid, result);
	row_number("args.maxnode", 65);
	row_done();
	if (result == -1 && errno == ENOSYS)
		row_skip("migrate_pages", "the kernel knows no memory nodes");
}

static void expect_move(pid_t pid, int flags, long result)
{
	expect_memory("move_pages", pid, result);
	row_number("args.count", 1);
	if (flags)
		row_hex("args.flags", (unsigned long)flags);
	row_done();
}

static void pages_refused(void)
{
	row_be_nobody();
	struct row_idle idle = row_idle_start(true);
	expect_migrate(idle.pid, migrate(idle.pid));
	expect_move(idle.pid, 0, move(idle.pid, 0));
	row_idle_end(&idle);
}

static void row_pages(void)
{
	struct row_idle idle = row_idle_start(false);

	expect_migrate(idle.pid, migrate(idle.pid));
	expect_move(idle.pid, 0, move(idle.pid, 0));
	expect_move(idle.pid, 0x100, move(idle.pid, 0x100));
	row_idle_end(&idle);
	expect_migrate(ROW_NO_PROCESS, migrate(ROW_NO_PROCESS));
	expect_move(ROW_NO_PROCESS, 0, move(ROW_NO_PROCESS, 0));
	row_apart(pages_refused);
}

static void expect_getfd(struct row_idle *idle, int number, long result)
{
	row_expect("pidfd_getfd", "ipc.receive_fd", result);
	row_number("target.pid", idle->pid);
	row_number("args.pidfd", idle->pidfd);
	row_number("args.targetfd", number);
	if (result > 0)
		row_number("result.value", result);
	row_done();
	if (result > 0)
		close((int)result);
}

static void getfd_refused(void)
{
	row_be_nobody();
	struct row_idle idle = row_idle_start(true);
	expect_getfd(&idle, 0, syscall(SYS_pidfd_getfd, idle.pidfd, 0, 0));
	row_idle_end(&idle);
}

static void getfd_own(void)
{
	int self = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (syscall(SYS_pidfd_getfd, self, 0, 0) < 0)
		row_give_up("pidfd_getfd");
	row_no_effect("pidfd_getfd", "\"target.pid\":%d", getpid());
}

static void row_pidfd_getfd(void)
{
	int file = open("given", O_WRONLY | O_CREAT, 0600);
	struct row_idle idle = row_idle_start(false);
	struct stat mine, its;

	int taken = (int)syscall(SYS_pidfd_getfd, idle.pidfd, file, 0);
	if (taken < 0 || fstat(file, &mine) != 0 || fstat(taken, &its) != 0 || mine.st_ino != its.st_ino)
		row_give_up("pidfd_getfd");
	expect_getfd(&idle, file, taken);
	/* the other process has no such descriptor */
	expect_getfd(&idle, 999, syscall(SYS_pidfd_getfd, idle.pidfd, 999, 0));
	row_idle_end(&idle);
	row_apart(getfd_refused);
	row_apart(getfd_own);
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {
	    {"process_vm_writev", row_process_vm},    {"process_madvise", row_process_madvise},
	    {"process_mrelease", mrelease_dying},     {"kcmp", row_kcmp},
	    {"get_robust_list", row_get_robust_list}, {"move_pages", row_pages},
	    {"pidfd_getfd", row_pidfd_getfd},         {0},
	};

	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		row_give_up("mmap");
	shared[0] = 1;
	return row_main(cases, argc, argv);
}
