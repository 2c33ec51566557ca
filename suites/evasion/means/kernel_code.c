/*
 * Code and events in the kernel: a program for sockets that drops nothing, an event of our own, and for the rest the
 * attempt with what no kernel takes.
 */
#include "ev2.h"

#include <linux/bpf.h>
#include <linux/perf_event.h>

static int load(void)
{
	/* r0 = 0; exit */
	static const struct bpf_insn code[] = {{.code = 0xb7}, {.code = 0x95}};
	union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_SOCKET_FILTER, .insn_cnt = 2};

	attr.insns = (uintptr_t)code;
	attr.license = (uintptr_t) "GPL";
	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static int count_events(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr)};

	attr.config = PERF_COUNT_SW_TASK_CLOCK;
	attr.exclude_kernel = 1;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

int main(void)
{
	int events = open("/sys/kernel/tracing/uprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC);

	/* Only opened; nothing is traced. */
	tried("probe", events);
	tried("load", load());
	tried("perf", count_events());
	tried("module", syscall(SYS_init_module, "no module", 9, ""));
	tried("kexec", syscall(SYS_kexec_load, 0, 0, NULL, 0xffff));
	return 0;
}
