/* Changes of files that are no writes: extents shared, flags, quotas, swapping, accounting. */
#include "ev2.h"

#include <linux/fs.h>
#include <sys/quota.h>
#include <sys/swap.h>

enum { SIZE = 1 << 16 };

static int filled(const char *name, int flags)
{
	static const char block[SIZE] = "text";

	make_file(name, "");
	int fd = open(name, flags | O_CLOEXEC);
	int writer = open(name, O_WRONLY | O_CLOEXEC);
	MUST(fd >= 0 && writer >= 0 && write(writer, block, SIZE) == SIZE && fsync(writer) == 0);
	close(writer);
	return fd;
}

static int share(int from, int to)
{
	struct {
		struct file_dedupe_range range;
		struct file_dedupe_range_info info;
	} request = {.range = {.src_length = 4096, .dest_count = 1}, .info = {.dest_fd = to}};

	return ioctl(from, FIDEDUPERANGE, &request);
}

int main(void)
{
	int from = filled("src", O_RDONLY), to = filled("dst", O_RDWR), kept = filled("kept", O_RDONLY), flags = 0;

	tried("clone", ioctl(to, FICLONE, from));
	struct file_clone_range range = {.src_fd = from, .src_length = 4096};
	tried("range", ioctl(to, FICLONERANGE, &range));
	tried("dedupe", share(from, to));
	MUST(ioctl(kept, FS_IOC_GETFLAGS, &flags) == 0);
	flags |= FS_NODUMP_FL;
	tried("flags", ioctl(kept, FS_IOC_SETFLAGS, &flags));
	/* No swap space, no device and no file: none of these can work for anybody. */
	tried("swap", swapon("src", 0));
	tried("quota", quotactl(QCMD(Q_QUOTAON, USRQUOTA), "nothing", 2, "nothing"));
	tried("account", acct("nothing"));
	return 0;
}
