/*
 * What belongs to the whole machine. Nothing is changed: a call either must fail, is made in namespaces of its own, or
 * sets what is set already.
 */
#include "row_process.h"

#include <linux/quota.h>
#include <linux/reboot.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>

enum { LOG_CONSOLE_LEVEL = 8, LOG_SIZE_BUFFER = 10 };

/* Made only by somebody who must not. */
static void module_calls(void)
{
	int file = open("module", O_RDONLY | O_CREAT | O_CLOEXEC, 0600);

	row_be_nobody();
	row_expect("init_module", "kernel.module", syscall(SYS_init_module, "no module", 9, "parameter=1"));
	row_number("args.size", 9);
	row_text("args.param_values", "parameter=1");
	row_done();
	row_expect("finit_module", "kernel.module", syscall(SYS_finit_module, file, "parameter=2", 0));
	row_number("args.fd", file);
	row_text("path", row_path("module"));
	row_text("args.param_values", "parameter=2");
	row_done();
	row_expect("delete_module", "kernel.module", syscall(SYS_delete_module, "no_such_module", O_NONBLOCK));
	row_text("args.name", "no_such_module");
	row_hex("args.flags", O_NONBLOCK);
	row_done();
}

static void row_modules(void)
{
	row_apart(module_calls);
	row_skip("init_module", "a module changes the machine");
	row_skip("finit_module", "a module changes the machine");
	row_skip("delete_module", "a module changes the machine");
}

static void expect_adjust(const char *row, unsigned modes, long result)
{
	row_expect(row, "kernel.time", result);
	row_hex("args.modes", modes);
	if (strcmp(row, "clock_adjtime") == 0)
		row_text("args.clockid", "CLOCK_REALTIME");
	if (result > 0)
		row_number("result.value", result);
	row_done();
}

static void adjust(unsigned modes)
{
	struct timex one = {.modes = modes}, two = {.modes = modes};

	expect_adjust("adjtimex", modes, syscall(SYS_adjtimex, &one));
	expect_adjust("clock_adjtime", modes, syscall(SYS_clock_adjtime, CLOCK_REALTIME, &two));
}

static void expect_time(const char *row, const char *clock, long result)
{
	row_expect(row, "kernel.time", result);
	if (clock)
		row_text("args.clockid", clock);
	row_done();
}

static void time_refused(void)
{
	struct timeval now;
	struct timespec precise;

	row_be_nobody();
	gettimeofday(&now, NULL);
	clock_gettime(CLOCK_REALTIME, &precise);
	expect_time("settimeofday", NULL, syscall(SYS_settimeofday, &now, NULL));
	expect_time("clock_settime", "CLOCK_REALTIME", syscall(SYS_clock_settime, CLOCK_REALTIME, &precise));
	expect_time("clock_settime", "CLOCK_MONOTONIC", syscall(SYS_clock_settime, CLOCK_MONOTONIC, &precise));
	adjust(ADJ_FREQUENCY);
}

static void row_time(void)
{
	struct timeval bad = {0, 2000000};
	struct timex ask = {0};

	row_apart(time_refused);
	expect_time("settimeofday", NULL, syscall(SYS_settimeofday, &bad, NULL));
	/* neither time nor zone: allowed or not, nothing is set */
	long result = syscall(SYS_settimeofday, NULL, NULL);
	expect_time("settimeofday", NULL, result);
	row_wanted("settimeofday", result, "needs CAP_SYS_TIME");
	row_skip("clock_settime", "setting a clock changes the machine");
	row_skip("adjtimex", "an adjustment changes the machine");
	row_skip("clock_adjtime", "an adjustment changes the machine");
	/* an adjustment that only tells what is left of the last one */
	adjust(ADJ_OFFSET_SS_READ);
	if (syscall(SYS_adjtimex, &ask) < 0 || syscall(SYS_clock_adjtime, CLOCK_REALTIME, &ask) < 0)
		row_give_up("adjtimex");
	row_no_effect("adjtimex", "\"args.modes\":\"0x0\"");
	row_no_effect("clock_adjtime", "\"args.modes\":\"0x0\"");
}

static void expect_swap(const char *row, const char *name, long result)
{
	row_expect(row, "kernel.swap", result);
	row_text("path", row_path(name));
	row_text("as_given", name);
	row_done();
}

static void swap_calls(void)
{
	expect_swap("swapon", "swap", syscall(SYS_swapon, "swap", 0));
	expect_swap("swapon", "no-swap", syscall(SYS_swapon, "no-swap", 0));
	expect_swap("swapoff", "swap", syscall(SYS_swapoff, "swap"));
	expect_swap("swapoff", "no-swap", syscall(SYS_swapoff, "no-swap"));
}

static void swap_refused(void)
{
	row_be_nobody();
	swap_calls();
}

static void row_swap(void)
{
	/* An empty file has no signature, so that nobody can swap to it. */
	close(open("swap", O_WRONLY | O_CREAT, 0600));
	swap_calls();
	row_apart(swap_refused);
	row_skip("swapon", "a swap area changes the machine");
	row_skip("swapoff", "a swap area changes the machine");
}

static void quota_refused(void)
{
	int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const int off = QCMD(Q_QUOTAOFF, USRQUOTA), format = QCMD(Q_GETFMT, USRQUOTA);
	uint32_t answer;

	row_be_nobody();
	row_expect("quotactl", "kernel.quota", syscall(SYS_quotactl, off, "no-device", 0, NULL));
	row_text("args.op", "Q_QUOTAOFF");
	row_text("path", row_path("no-device"));
	row_text("as_given", "no-device");
	row_done();
	row_expect("quotactl_fd", "kernel.quota", syscall(SYS_quotactl_fd, here, off, 12, NULL));
	row_text("args.op", "Q_QUOTAOFF");
	row_number("args.id", 12);
	row_number("args.fd", here);
	row_done();
	syscall(SYS_quotactl, format, "no-device", 0, &answer);
	syscall(SYS_quotactl_fd, here, format, 0, &answer);
	row_no_effect("quotactl", "\"args.op\":\"Q_GETFMT\"");
	row_no_effect("quotactl_fd", "\"args.op\":\"Q_GETFMT\"");
}

static void row_quota(void)
{
	row_apart(quota_refused);
	row_skip("quotactl", "success needs a file system with quotas, and changes it");
	row_skip("quotactl_fd", "success needs a file system with quotas, and changes it");
}

/* With a magic number that is none, so that the kernel refuses whoever asks. */
static void expect_reboot(void)
{
	row_expect("reboot", "kernel.reboot", syscall(SYS_reboot, 0, 0, LINUX_REBOOT_CMD_CAD_OFF, NULL));
	row_text("args.op", "LINUX_REBOOT_CMD_CAD_OFF");
	row_done();
}

static void reboot_refused(void)
{
	row_be_nobody();
	expect_reboot();
	row_expect("kexec_load", "kernel.reboot", syscall(SYS_kexec_load, 0x1000, 0, NULL, 2));
	row_number("args.entry", 0x1000);
	row_number("args.nr_segments", 0);
	row_hex("args.flags", 2);
	row_done();
	row_expect("kexec_file_load", "kernel.reboot", syscall(SYS_kexec_file_load, -1, -1, 6, "quiet", 4));
	row_number("args.kernel_fd", -1);
	row_number("args.initrd_fd", -1);
	row_text("args.cmdline", "quiet");
	row_hex("args.flags", 4);
	row_done();
}

static void row_reboot(void)
{
	expect_reboot();
	row_apart(reboot_refused);
	row_skip("reboot", "success ends the machine");
	row_skip("kexec_load", "success replaces the kernel");
	row_skip("kexec_file_load", "success replaces the kernel");
}

static long expect_acct(const char *name)
{
	char here[PATH_MAX];
	long result = syscall(SYS_acct, name);

	row_expect("acct", "kernel.other", result);
	row_text("path", strcmp(name, ".") == 0 ? getcwd(here, sizeof(here)) : row_path(name));
	row_text("as_given", name);
	row_done();
	return result;
}

static void acct_refused(void)
{
	row_be_nobody();
	expect_acct("accounts");
}

/* Accounts are kept by namespace of process ids. */
static void acct_in_namespace(void)
{
	if (expect_acct("accounts") == 0 && syscall(SYS_acct, NULL) != 0)
		row_give_up("acct");
	expect_acct("no-accounts");
	expect_acct(".");
}

static void acct_apart(void)
{
	if (unshare(CLONE_NEWPID) != 0)
		row_skip("acct", "needs root");
	else
		row_apart(acct_in_namespace);
}

static void row_acct(void)
{
	close(open("accounts", O_WRONLY | O_CREAT, 0600));
	row_apart(acct_apart);
	row_apart(acct_refused);
}

static void expect_syslog(int level)
{
	row_expect("syslog", "kernel.other", syscall(SYS_syslog, LOG_CONSOLE_LEVEL, NULL, level));
	row_text("args.type", "SYSLOG_ACTION_CONSOLE_LEVEL");
	row_number("args.len", level);
	row_done();
}

static void syslog_refused(void)
{
	row_be_nobody();
	expect_syslog(99);
}

/* What the console's level is now; 0 when that is not known. */
static int console_level(void)
{
	char text[32] = "";
	FILE *file = fopen("/proc/sys/kernel/printk", "re");

	if (!file)
		return 0;
	if (!fgets(text, sizeof(text), file))
		text[0] = 0;
	fclose(file);
	return (int)strtol(text, NULL, 10);
}

static void row_syslog(void)
{
	int level = console_level();

	if (geteuid() == 0 && level >= 1 && level <= 8)
		expect_syslog(level);
	else
		row_skip("syslog", "needs root");
	expect_syslog(99);
	row_apart(syslog_refused);
	syscall(SYS_syslog, LOG_SIZE_BUFFER, NULL, 0);
	row_no_effect("syslog", "\"args.type\":\"SYSLOG_ACTION_SIZE_BUFFER\"");
}

/* The name is what its length says; what follows in memory is no part of it. */
static void expect_name(const char *row, long number, const char *memory, size_t size)
{
	char name[256];

	snprintf(name, sizeof(name), "%.*s", (int)size, memory);
	row_expect(row, "kernel.other", syscall(number, memory, size));
	row_text("args.name", name);
	row_number("args.len", (long long)size);
	row_done();
}

static void both_names(const char *memory, size_t size)
{
	expect_name("sethostname", SYS_sethostname, memory, size);
	expect_name("setdomainname", SYS_setdomainname, memory, size);
}

static void names_refused(void)
{
	row_be_nobody();
	both_names("refused", 7);
}

static void names_apart(void)
{
	char name[65] = "", long_name[66];

	if (unshare(CLONE_NEWUSER | CLONE_NEWUTS) != 0) {
		row_skip("sethostname", "needs user namespaces");
		row_skip("setdomainname", "needs user namespaces");
		return;
	}
	both_names("row", 3);
	both_names("shortened", 5);
	if (gethostname(name, sizeof(name)) != 0 || strcmp(name, "short") != 0)
		row_give_up("sethostname");
	memset(long_name, 'x', 65);
	long_name[65] = 0;
	both_names(long_name, 65);
}

static void row_host_names(void)
{
	row_apart(names_apart);
	row_apart(names_refused);
}

static void ports_refused(void)
{
#ifdef SYS_iopl
	row_be_nobody();
	row_expect("iopl", "kernel.other", syscall(SYS_iopl, 3));
	row_number("args.level", 3);
	row_done();
	row_expect("ioperm", "kernel.other", syscall(SYS_ioperm, 0x80, 1, 1));
	row_number("args.from", 0x80);
	row_number("args.num", 1);
	row_number("args.turn_on", 1);
	row_done();
#endif
}

static void row_ports(void)
{
	row_apart(ports_refused);
	row_skip("iopl", "success opens the hardware");
	row_skip("ioperm", "success opens the hardware");
}

/* In a session without a terminal there is nothing to hang up. */
static void vhangup_nothing(void)
{
	if (setsid() < 0)
		row_give_up("setsid");
	row_expect("vhangup", "kernel.other", syscall(SYS_vhangup));
	row_done();
}

static void vhangup_refused(void)
{
	row_be_nobody();
	vhangup_nothing();
}

static void row_vhangup(void)
{
	if (geteuid() == 0)
		row_apart(vhangup_nothing);
	else
		row_skip("vhangup", "needs root");
	row_apart(vhangup_refused);
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {
	    {"init_module", row_modules},
	    {"adjtimex", row_time},
	    {"swapon", row_swap},
	    {"quotactl", row_quota},
	    {"reboot", row_reboot},
	    {"acct", row_acct},
	    {"syslog", row_syslog},
	    {"iopl", row_ports},
	    {"vhangup", row_vhangup},
	    {"sethostname", row_host_names},
	    {0},
	};

	return row_main(cases, argc, argv);
}
