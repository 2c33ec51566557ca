#include "os/pids.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>

#include "base/fd.h"

/* Linux 6.11. */
#ifndef NS_GET_PID_FROM_PIDNS
#define NS_GET_PID_FROM_PIDNS _IOR(NSIO, 0x6, int)
#endif

pid_t pids_ours(int task, pid_t pid)
{
	int space CLEANUP_FD = openat(task, "ns/pid", O_RDONLY | O_CLOEXEC);
	int ours = space < 0 ? -1 : ioctl(space, NS_GET_PID_FROM_PIDNS, pid);

	return ours > 0 ? ours : 0;
}
