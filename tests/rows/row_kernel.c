/* Kernel interfaces that reach far: io_uring, BPF, performance events, page faults, file notification. */
#include "row_process.h"

#include <linux/bpf.h>
#include <linux/fanotify.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

/* Answered with ENOSYS without having been made: only in a run, which is where a filter is. */
static void expect_refused(const char *row, long result)
{
	bool unsupported = result == -1 && errno == ENOSYS;

	if (prctl(PR_GET_SECCOMP) == SECCOMP_MODE_FILTER && !unsupported)
		row_give_up("io_uring is not refused");
	row_used = 0;
	row_put("{\"row\":\"%s\",\"outcome\":\"refused\",\"effect\":{\"syscall\":\"%s\",\"kind\":\"kernel.io_uring\"",
		row, row);
	row_text("result.errno", "ENOSYS");
	row_text("result.by", "unsupported");
}

static void row_io_uring(void)
{
	uint32_t parameters[30] = {0}; /* struct io_uring_params */

	long ring = syscall(SYS_io_uring_setup, 4, parameters);
	expect_refused("io_uring_setup", ring);
	row_number("args.entries", 4);
	row_done();
	if (ring >= 0)
		close((int)ring);

	expect_refused("io_uring_enter", syscall(SYS_io_uring_enter, -1, 1, 2, 0, NULL, 0));
	row_number("args.fd", -1);
	row_number("args.to_submit", 1);
	row_number("args.min_complete", 2);
	row_done();

	expect_refused("io_uring_register", syscall(SYS_io_uring_register, -1, 9, NULL, 5));
	row_number("args.fd", -1);
	row_number("args.opcode", 9);
	row_number("args.nr_args", 5);
	row_done();
	row_skip("io_uring_setup", "refused whatever it asks for: it neither succeeds nor fails");
	row_skip("io_uring_enter", "refused whatever it asks for: it neither succeeds nor fails");
	row_skip("io_uring_register", "refused whatever it asks for: it neither succeeds nor fails");
}

static long make_map(uint32_t value_size)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_ARRAY;
	attr.key_size = 4;
	attr.value_size = value_size;
	attr.max_entries = 1;
	return syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
}

static void expect_bpf(const char *command, long result)
{
	row_expect("bpf", "kernel.bpf", result);
	row_text("args.cmd", command);
	if (result > 0)
		row_number("result.value", result);
	row_done();
}

static void bpf_refused(void)
{
	row_be_nobody();
	expect_bpf("BPF_MAP_CREATE", make_map(8));
}

static void row_bpf(void)
{
	long map = make_map(8);

	expect_bpf("BPF_MAP_CREATE", map);
	row_wanted("bpf", map, "needs CAP_BPF");
	if (map >= 0) {
		uint32_t key = 0, none = 7;
		uint64_t value = 5;
		union bpf_attr attr = {.map_fd = (uint32_t)map, .key = (uint64_t)(uintptr_t)&key};
		attr.value = (uint64_t)(uintptr_t)&value;
		expect_bpf("BPF_MAP_UPDATE_ELEM", syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &attr, sizeof(attr)));
		attr.key = (uint64_t)(uintptr_t)&none;
		expect_bpf("BPF_MAP_LOOKUP_ELEM", syscall(SYS_bpf, BPF_MAP_LOOKUP_ELEM, &attr, sizeof(attr)));
		close((int)map);
	}
	expect_bpf("BPF_MAP_CREATE", make_map(0));
	row_apart(bpf_refused);
}

static long open_event(uint32_t type, uint64_t config, pid_t pid, int cpu)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = type;
	attr.config = config;
	attr.disabled = 1;
	attr.exclude_kernel = 1;
	attr.exclude_hv = 1;
	long result = syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	row_expect("perf_event_open", "kernel.perf", result);
	row_number("target.pid", pid);
	row_number("args.cpu", cpu);
	row_number("args.group_fd", -1);
	row_text("args.flags", "0x8");
	if (result > 0)
		row_number("result.value", result);
	row_done();
	if (result > 0)
		close((int)result);
	return result;
}

static void perf_refused(void)
{
	row_be_nobody();
	/* everything that happens on a processor */
	open_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, -1, 0);
}

static void row_perf_event_open(void)
{
	row_wanted("perf_event_open", open_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 0, -1),
		   "needs performance events");
	open_event(PERF_TYPE_SOFTWARE, 9999, 0, -1);
	open_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, ROW_NO_PROCESS, -1);
	row_apart(perf_refused);
}

static long try_userfaultfd(unsigned flags)
{
	long result = syscall(SYS_userfaultfd, flags);

	row_expect("userfaultfd", "kernel.other", result);
	if (flags)
		row_hex("args.flags", flags);
	if (result > 0)
		row_number("result.value", result);
	row_done();
	if (result > 0)
		close((int)result);
	return result;
}

static void userfaultfd_refused(void)
{
	row_be_nobody();
	try_userfaultfd(0);
}

static void row_userfaultfd(void)
{
	row_wanted("userfaultfd", try_userfaultfd(O_CLOEXEC | UFFD_USER_MODE_ONLY), "needs userfaultfd");
	try_userfaultfd(2);
	row_apart(userfaultfd_refused);
}

static long try_fanotify(unsigned flags, int event_flags, const char *names)
{
	long result = syscall(SYS_fanotify_init, flags, event_flags);

	row_expect("fanotify_init", "kernel.other", result);
	row_json("flags", names);
	if (result > 0)
		row_number("result.value", result);
	row_done();
	return result;
}

static void fanotify_refused(void)
{
	row_be_nobody();
	try_fanotify(FAN_CLASS_CONTENT, O_RDONLY, "[\"FAN_CLASS_CONTENT\",\"O_RDONLY\"]");
}

static void row_fanotify_init(void)
{
	long group = try_fanotify(FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_FID, O_RDONLY | O_CLOEXEC,
				  "[\"FAN_CLOEXEC\",\"FAN_NONBLOCK\",\"FAN_REPORT_FID\",\"O_RDONLY\",\"O_CLOEXEC\"]");

	row_wanted("fanotify_init", group, "needs fanotify");
	if (group >= 0)
		close((int)group);
	/* no such access mode */
	try_fanotify(FAN_REPORT_FID, O_ACCMODE, "[\"FAN_REPORT_FID\",\"O_ACCMODE\"]");
	row_apart(fanotify_refused);
}

static void expect_mark(int group, const char *path, const char *given, const char *names, long result)
{
	struct stat status;

	row_expect("fanotify_mark", "kernel.other", result);
	row_number("args.fanotify_fd", group);
	row_text("path", path);
	row_text("as_given", given);
	row_json("flags", names);
	if (stat(path, &status) == 0)
		row_inode("", &status);
	row_done();
}

static void row_fanotify_mark(void)
{
	int group = (int)syscall(SYS_fanotify_init, FAN_CLOEXEC | FAN_REPORT_FID, O_RDONLY);
	int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int file = open("marked", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (group < 0) {
		row_skip("fanotify_mark", "needs fanotify");
		return;
	}
	long result = syscall(SYS_fanotify_mark, group, FAN_MARK_ADD, (uint64_t)FAN_MODIFY, here, "marked");
	expect_mark(group, row_path("marked"), "marked", "[\"FAN_MARK_ADD\",\"FAN_MODIFY\"]", result);
	row_wanted("fanotify_mark", result, "needs a file system with identities");
	expect_mark(
	    group, row_path("marked"), "marked", "[\"FAN_MARK_ADD\",\"FAN_MARK_ONLYDIR\",\"FAN_MODIFY\"]",
	    syscall(SYS_fanotify_mark, group, FAN_MARK_ADD | FAN_MARK_ONLYDIR, (uint64_t)FAN_MODIFY, here, "marked"));
	expect_mark(group, row_path("unmarked"), "unmarked", "[\"FAN_MARK_ADD\",\"FAN_MODIFY\"]",
		    syscall(SYS_fanotify_mark, group, FAN_MARK_ADD, (uint64_t)FAN_MODIFY, here, "unmarked"));
	close(file);
	close(here);
	close(group);
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {
	    {"io_uring_setup", row_io_uring},
	    {"bpf", row_bpf},
	    {"perf_event_open", row_perf_event_open},
	    {"userfaultfd", row_userfaultfd},
	    {"fanotify_init", row_fanotify_init},
	    {"fanotify_mark", row_fanotify_mark},
	    {0},
	};

	return row_main(cases, argc, argv);
}
