/*
 * What /proc says of a task whose name is anything: the numbers behind it are found all the same, and text that the
 * kernel would never write is refused or read within its end.
 *
 * Input: which file (1 byte), whether its text is composed of values or taken as it is (1), then those.
 */
#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "fuzz.h"
#include "os/procfs.h"
#include "os/rights.h"

enum { COMM = 64, NOBODY = -1 /* no task has this number, so that limits are read from the text */ };

static int folder = -1;

static void prepare(void)
{
	folder = private_folder();
	need(mkdirat(folder, "ns", 0700) == 0 && mkdirat(folder, "attr", 0700) == 0 &&
	     mkdirat(folder, "fdinfo", 0700) == 0);
	need(symlinkat("user:[4026531837]", folder, "ns/user") == 0);
	put_file(folder, "attr/current", BYTES_NONE);
}
PREPARE_BY(prepare)

/* A name as a task may give it to itself; in `status` the kernel escapes lines and backslashes. */
static void append_name(struct buf *text, struct input *input, bool escaped)
{
	struct bytes name = take_bytes(input, take_number(input, 1) % COMM);

	for (size_t i = 0; i < name.size && name.data[i]; i++) {
		if (escaped && (name.data[i] == '\n' || name.data[i] == '\\'))
			buf_append_text(text, name.data[i] == '\n' ? "\\n" : "\\\\");
		else
			buf_append_char(text, name.data[i]);
	}
}

static void check_stat(struct input *input)
{
	enum { FIELDS = 52, PARENT = 4, GROUP = 5, SESSION = 6, THREADS = 20, START = 22 };
	struct buf text CLEANUP_BUF = {0};
	int32_t fields[FIELDS + 1] = {0};
	const char states[] = "RSDTtZXI";
	struct task_status status;

	buf_append_format(&text, "%u (", (unsigned)take_number(input, 2));
	append_name(&text, input, false);
	char state = states[take_number(input, 1) % 8];
	buf_append_format(&text, ") %c", state);
	for (int at = PARENT; at <= FIELDS; at++) {
		fields[at] = (int32_t)take_number(input, at == PARENT || at == FIELDS ? 4 : 1);
		buf_append_format(&text, " %" PRId32, fields[at]);
	}
	buf_append_char(&text, '\n');
	put_file(folder, "stat", buf_bytes(&text));
	put_file(folder, "status", BYTES("Name:\tTgid:\t7\nTgid:\t8\n"));
	need(procfs_status(folder, 0, &status));
	need(status.state == state && status.ppid == fields[PARENT] && status.group == fields[GROUP] &&
	     status.session == fields[SESSION] && status.threads == (unsigned)fields[THREADS] &&
	     status.start_ticks == (uint64_t)(int64_t)fields[START] && status.tgid == 8);
	need(procfs_exit_status(folder) == (state == 'Z' ? fields[FIELDS] : -1));
}

static size_t append_groups(struct buf *text, struct input *input, gid_t *groups, size_t limit)
{
	size_t count = take_number(input, 1) % limit;

	buf_append_text(text, "Groups:\t");
	for (size_t i = 0; i < count; i++) {
		groups[i] = (gid_t)take_number(input, 1 + i % 4);
		buf_append_format(text, "%u ", groups[i]);
	}
	buf_append_text(text, "\n");
	return count;
}

static void check_status(struct input *input)
{
	enum { GROUPS = RIGHTS_GROUPS_LIMIT + 8 };
	struct buf text CLEANUP_BUF = {0};
	static struct rights rights;
	gid_t groups[GROUPS];
	uint32_t ids[8];
	uint64_t sets[5];

	buf_append_text(&text, "Name:\t");
	append_name(&text, input, true);
	unsigned mask = (unsigned)take_number(input, 2) & 0777;
	buf_append_format(&text, "\nUmask:\t%#06o\nState:\tS (sleeping)\n", mask);
	for (size_t i = 0; i < 8; i++)
		ids[i] = (uint32_t)take_number(input, 1 + i % 4);
	for (size_t i = 0; i < 5; i++)
		sets[i] = take_number(input, 8);
	buf_append_format(&text, "Uid:\t%u\t%u\t%u\t%u\nGid:\t%u\t%u\t%u\t%u\n", ids[0], ids[1], ids[2], ids[3], ids[4],
			  ids[5], ids[6], ids[7]);
	size_t count = append_groups(&text, input, groups, GROUPS);
	buf_append_format(&text, "SigPnd:\t%016" PRIx64 "\nShdPnd:\t%016" PRIx64 "\nSigBlk:\t%016" PRIx64 "\n", sets[0],
			  sets[1], sets[2]);
	buf_append_format(&text, "CapPrm:\t%016" PRIx64 "\nCapEff:\t%016" PRIx64 "\n", sets[3], sets[4]);
	put_file(folder, "status", buf_bytes(&text));
	need(procfs_umask(folder) == (int)mask);
	need(procfs_signal_pending(folder) == (((sets[0] | sets[1]) & ~sets[2]) != 0));
	if (!rights_read(folder, &rights)) {
		need(count > RIGHTS_GROUPS_LIMIT);
		return;
	}
	need(rights.group_count == count && memcmp(rights.groups, groups, count * sizeof(groups[0])) == 0);
	need(memcmp(rights.users, ids, 3 * sizeof(ids[0])) == 0 && rights.file_user == ids[3] &&
	     rights.file_group == ids[7] && rights.permitted == sets[3] && rights.effective == sets[4]);
}

static void check_limits(struct input *input)
{
	struct buf text CLEANUP_BUF = {0};
	uint64_t soft = take_number(input, 8), limit = 0;
	bool unlimited = take_number(input, 1) & 1;
	int resource = take_number(input, 1) & 1 ? RLIMIT_FSIZE : RLIMIT_NOFILE;

	buf_append_text(&text, "Limit                     Soft Limit           Hard Limit           Units     \n");
	buf_append_format(&text, "%-25s ", resource == RLIMIT_FSIZE ? "Max file size" : "Max open files");
	if (unlimited)
		buf_append_format(&text, "%-20s %-20s %-10s\n", "unlimited", "unlimited", "bytes");
	else
		buf_append_format(&text, "%-20" PRIu64 " %-20s %-10s\n", soft, "unlimited", "bytes");
	put_file(folder, "limits", buf_bytes(&text));
	need(procfs_limit(folder, NOBODY, resource, &limit) && limit == (unlimited ? UINT64_MAX : soft));
}

static void check_fdinfo(struct input *input)
{
	struct buf text CLEANUP_BUF = {0};
	int flags = (int)(take_number(input, 4) & INT32_MAX), pid = (int)(take_number(input, 4) & INT32_MAX);

	buf_append_format(&text, "pos:\t%u\nflags:\t0%o\nmnt_id:\t15\nino:\t%u\nPid:\t%d\nNSpid:\t%d\n",
			  (unsigned)take_number(input, 4), flags, (unsigned)take_number(input, 4), pid, pid);
	put_file(folder, "fdinfo/3", buf_bytes(&text));
	need(procfs_fd_flags(folder, 3) == flags && procfs_pidfd_target(folder, 3) == pid);
}

/* Nobody's text at all: nothing is said but what can be. */
static void check_raw(unsigned which, struct bytes text)
{
	static const char *const names[] = {"stat", "status", "limits", "fdinfo/3", "attr/current"};
	static struct rights rights;
	struct task_status status;
	uint64_t limit;

	put_file(folder, names[which], text);
	if (procfs_status(folder, 0, &status))
		need(status.state != 0);
	need(procfs_exit_status(folder) == -1 || memchr(text.data, 'Z', text.size) || which != 0);
	(void)procfs_signal_pending(folder);
	(void)procfs_umask(folder);
	if (rights_read(folder, &rights))
		need(rights.group_count <= RIGHTS_GROUPS_LIMIT && memchr(rights.label, 0, sizeof(rights.label)));
	(void)procfs_limit(folder, NOBODY, RLIMIT_NOFILE, &limit);
	(void)procfs_limit(folder, NOBODY, RLIMIT_FSIZE, &limit);
	(void)procfs_fd_flags(folder, 3);
	(void)procfs_pidfd_target(folder, 3);
	put_file(folder, "attr/current", BYTES_NONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const checks[])(struct input *) = {check_stat, check_status, check_limits, check_fdinfo};
	struct input input = {data, size};
	unsigned which = (unsigned)take_number(&input, 1);
	struct open_set before = open_now();

	if (take_number(&input, 1) & 1)
		check_raw(which % 5, take_bytes(&input, input.size));
	else
		checks[which % 4](&input);
	need_same_open(&before);
	return 0;
}
