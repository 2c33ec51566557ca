/*
 * Every ioctl request that is an effect, made where it cannot do any harm: on a file in memory, by somebody without
 * rights, with an argument of zeros. What it is an effect of stands here once more, written by hand.
 */
#include <linux/blkpg.h>
#include <linux/blkzoned.h>
#include <linux/btrfs.h>
#include <linux/fs.h>
#include <linux/fscrypt.h>
#include <linux/fsverity.h>
#include <linux/fuse.h>
#include <linux/if_tun.h>
#include <linux/kd.h>
#include <linux/loop.h>
#include <linux/msdos_fs.h>
#include <linux/nvme_ioctl.h>
#include <linux/perf_event.h>
#include <linux/random.h>
#include <linux/rtc.h>
#include <linux/sockios.h>
#include <linux/uinput.h>
#include <linux/userfaultfd.h>
#include <scsi/sg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "row_file.h"

/* not in headers that go together with these, or in newer ones */
#ifndef FS_IOC_RESVSP
#define FS_IOC_RESVSP 0x40305828u
#define FS_IOC_UNRESVSP 0x40305829u
#define FS_IOC_RESVSP64 0x4030582au
#define FS_IOC_UNRESVSP64 0x4030582bu
#define FS_IOC_ZERO_RANGE 0x40305839u
#endif
#ifndef FS_IOC_SHUTDOWN
#define FS_IOC_SHUTDOWN 0x8004587du
#endif
#ifndef EXT4_IOC_MOVE_EXT
#define EXT4_IOC_MOVE_EXT 0xc028660fu
#define EXT4_IOC_RESIZE_FS 0x40086610u
#define EXT4_IOC_SWAP_BOOT 0x6611u
#endif
#ifndef XFS_IOC_OPEN_BY_HANDLE
#define XFS_IOC_OPEN_BY_HANDLE 0xc038586bu
#define XFS_IOC_SWAPEXT 0xc0c0586du
#define XFS_IOC_ATTRMULTI_BY_HANDLE 0x4048587bu
#endif
#ifndef XFS_IOC_EXCHANGE_RANGE
#define XFS_IOC_EXCHANGE_RANGE 0x40285881u
#endif
#ifndef PIDFD_GET_CGROUP_NAMESPACE
#define PIDFD_GET_CGROUP_NAMESPACE 0xff01u
#define PIDFD_GET_IPC_NAMESPACE 0xff02u
#define PIDFD_GET_MNT_NAMESPACE 0xff03u
#define PIDFD_GET_NET_NAMESPACE 0xff04u
#define PIDFD_GET_PID_NAMESPACE 0xff05u
#define PIDFD_GET_PID_FOR_CHILDREN_NAMESPACE 0xff06u
#define PIDFD_GET_TIME_NAMESPACE 0xff07u
#define PIDFD_GET_TIME_FOR_CHILDREN_NAMESPACE 0xff08u
#define PIDFD_GET_USER_NAMESPACE 0xff09u
#define PIDFD_GET_UTS_NAMESPACE 0xff0au
#endif
#ifndef SIOCADDTUNNEL
#define SIOCADDTUNNEL 0x89f1
#define SIOCDELTUNNEL 0x89f2
#define SIOCCHGTUNNEL 0x89f3
#endif

struct request {
	const char *kind, *name; /* without a name of its own it is recorded by number */
	unsigned long number;
};

#define REQUEST(kind, name)                   \
	{                                     \
		kind, #name, (unsigned)(name) \
	}

static const struct request requests[] = {
    REQUEST("proc.signal", FIOSETOWN),
    REQUEST("proc.signal", SIOCSPGRP),

    REQUEST("file.mode", FS_IOC_SETFLAGS),
    REQUEST("file.mode", FS_IOC_FSSETXATTR),
    REQUEST("file.mode", FS_IOC_SETVERSION),
    REQUEST("file.mode", FAT_IOCTL_SET_ATTRIBUTES),
    REQUEST("file.mode", FS_IOC_SET_ENCRYPTION_POLICY),
    REQUEST("file.mode", FS_IOC_ENABLE_VERITY),
    REQUEST("file.mode", BTRFS_IOC_SUBVOL_SETFLAGS),

    REQUEST("kernel.keys", FS_IOC_ADD_ENCRYPTION_KEY),
    REQUEST("kernel.keys", FS_IOC_REMOVE_ENCRYPTION_KEY),
    REQUEST("kernel.keys", FS_IOC_REMOVE_ENCRYPTION_KEY_ALL_USERS),

    REQUEST("file.write", FICLONE),
    REQUEST("file.write", FICLONERANGE),
    REQUEST("file.write", FIDEDUPERANGE),
    REQUEST("file.write", EXT4_IOC_MOVE_EXT),
    REQUEST("file.write", EXT4_IOC_SWAP_BOOT),
    REQUEST("file.write", XFS_IOC_SWAPEXT),
    REQUEST("file.write", XFS_IOC_EXCHANGE_RANGE),
    REQUEST("file.write", BTRFS_IOC_ENCODED_WRITE),
    REQUEST("file.write", XFS_IOC_OPEN_BY_HANDLE),
    REQUEST("file.write", BLKDISCARD),
    REQUEST("file.write", BLKSECDISCARD),
    REQUEST("file.write", BLKZEROOUT),
    REQUEST("file.write", BLKRESETZONE),
    REQUEST("file.xattr", XFS_IOC_ATTRMULTI_BY_HANDLE),

    REQUEST("file.truncate", FS_IOC_RESVSP),
    REQUEST("file.truncate", FS_IOC_RESVSP64),
    REQUEST("file.truncate", FS_IOC_UNRESVSP),
    REQUEST("file.truncate", FS_IOC_UNRESVSP64),
    REQUEST("file.truncate", FS_IOC_ZERO_RANGE),

    REQUEST("dir.create", BTRFS_IOC_SUBVOL_CREATE),
    REQUEST("dir.create", BTRFS_IOC_SUBVOL_CREATE_V2),
    REQUEST("dir.create", BTRFS_IOC_SNAP_CREATE),
    REQUEST("dir.create", BTRFS_IOC_SNAP_CREATE_V2),
    REQUEST("dir.delete", BTRFS_IOC_SNAP_DESTROY),
    REQUEST("dir.delete", BTRFS_IOC_SNAP_DESTROY_V2),

    /* whole file systems, devices */
    REQUEST("kernel.other", BTRFS_IOC_DEFAULT_SUBVOL),
    REQUEST("kernel.other", BTRFS_IOC_ADD_DEV),
    REQUEST("kernel.other", BTRFS_IOC_RM_DEV),
    REQUEST("kernel.other", BTRFS_IOC_RM_DEV_V2),
    REQUEST("kernel.other", BTRFS_IOC_RESIZE),
    REQUEST("kernel.other", FIFREEZE),
    REQUEST("kernel.other", FITHAW),
    REQUEST("kernel.other", FITRIM),
    REQUEST("kernel.other", FS_IOC_SETFSLABEL),
    REQUEST("kernel.other", FS_IOC_SHUTDOWN),
    REQUEST("kernel.other", EXT4_IOC_RESIZE_FS),
    REQUEST("kernel.other", FUSE_DEV_IOC_CLONE),
    REQUEST("kernel.other", BLKROSET),
    REQUEST("kernel.other", BLKRRPART),
    REQUEST("kernel.other", BLKPG),
    REQUEST("kernel.other", LOOP_SET_FD),
    REQUEST("kernel.other", LOOP_CLR_FD),
    REQUEST("kernel.other", LOOP_CHANGE_FD),
    REQUEST("kernel.other", LOOP_SET_STATUS),
    REQUEST("kernel.other", LOOP_SET_STATUS64),
    REQUEST("kernel.other", LOOP_CONFIGURE),
    REQUEST("kernel.other", LOOP_CTL_ADD),
    REQUEST("kernel.other", LOOP_CTL_REMOVE),
    REQUEST("kernel.other", SG_IO),
    REQUEST("kernel.other", NVME_IOCTL_ADMIN_CMD),
    REQUEST("kernel.other", NVME_IOCTL_IO_CMD),
    REQUEST("kernel.other", NVME_IOCTL_ADMIN64_CMD),
    REQUEST("kernel.other", NVME_IOCTL_IO64_CMD),
    /* families by their letter: the first of device-mapper, md's stop, nbd's disconnect */
    {"kernel.other", NULL, 0xc138fd00u},
    {"kernel.other", NULL, 0x0932u},
    {"kernel.other", NULL, 0xab08u},

    /* terminals and input */
    REQUEST("kernel.other", TIOCSTI),
    REQUEST("kernel.other", TIOCLINUX),
    REQUEST("kernel.other", TIOCCONS),
    {"kernel.other", "TIOCVHANGUP", 0x5437u},
    REQUEST("kernel.other", TIOCSETD),
    REQUEST("kernel.other", KDSKBENT),
    REQUEST("kernel.other", KDSKBSENT),
    REQUEST("kernel.other", UI_DEV_CREATE),

    /* the network */
    REQUEST("net.raw", TUNSETIFF),
    REQUEST("net.raw", SIOCADDRT),
    REQUEST("net.raw", SIOCDELRT),
    REQUEST("net.raw", SIOCSIFFLAGS),
    REQUEST("net.raw", SIOCSIFADDR),
    REQUEST("net.raw", SIOCDIFADDR),
    REQUEST("net.raw", SIOCSIFDSTADDR),
    REQUEST("net.raw", SIOCSIFBRDADDR),
    REQUEST("net.raw", SIOCSIFNETMASK),
    REQUEST("net.raw", SIOCSIFMETRIC),
    REQUEST("net.raw", SIOCSIFMTU),
    REQUEST("net.raw", SIOCSIFNAME),
    REQUEST("net.raw", SIOCSIFHWADDR),
    REQUEST("net.raw", SIOCSIFHWBROADCAST),
    REQUEST("net.raw", SIOCSIFPFLAGS),
    REQUEST("net.raw", SIOCSIFTXQLEN),
    REQUEST("net.raw", SIOCSIFMAP),
    REQUEST("net.raw", SIOCADDMULTI),
    REQUEST("net.raw", SIOCDELMULTI),
    REQUEST("net.raw", SIOCSARP),
    REQUEST("net.raw", SIOCDARP),
    REQUEST("net.raw", SIOCSIFBR),
    REQUEST("net.raw", SIOCBRADDBR),
    REQUEST("net.raw", SIOCBRDELBR),
    REQUEST("net.raw", SIOCBRADDIF),
    REQUEST("net.raw", SIOCBRDELIF),
    REQUEST("net.raw", SIOCSIFVLAN),
    REQUEST("net.raw", SIOCETHTOOL),
    REQUEST("net.raw", SIOCADDTUNNEL),
    REQUEST("net.raw", SIOCDELTUNNEL),
    REQUEST("net.raw", SIOCCHGTUNNEL),

    /* what calls of their own do, too */
    REQUEST("priv.namespace", PIDFD_GET_CGROUP_NAMESPACE),
    REQUEST("priv.namespace", PIDFD_GET_IPC_NAMESPACE),
    REQUEST("priv.namespace", PIDFD_GET_MNT_NAMESPACE),
    REQUEST("priv.namespace", PIDFD_GET_NET_NAMESPACE),
    REQUEST("priv.namespace", PIDFD_GET_PID_NAMESPACE),
    REQUEST("priv.namespace", PIDFD_GET_PID_FOR_CHILDREN_NAMESPACE),
    REQUEST("priv.namespace", PIDFD_GET_TIME_NAMESPACE),
    REQUEST("priv.namespace", PIDFD_GET_TIME_FOR_CHILDREN_NAMESPACE),
    REQUEST("priv.namespace", PIDFD_GET_USER_NAMESPACE),
    REQUEST("priv.namespace", PIDFD_GET_UTS_NAMESPACE),
    REQUEST("kernel.other", USERFAULTFD_IOC_NEW),
    REQUEST("kernel.bpf", PERF_EVENT_IOC_SET_BPF),
    REQUEST("kernel.time", RTC_SET_TIME),
    REQUEST("kernel.other", RNDADDENTROPY),
};

enum { REQUEST_COUNT = sizeof(requests) / sizeof(requests[0]) };

static void attempt(const struct request *request, int fd)
{
	/* room for the largest of the structures, and nothing asked for in any */
	static char zeros[16384];
	long result = ROW_AS_NOBODY(syscall(SYS_ioctl, fd, request->number, zeros));

	row_descriptor("ioctl", request->kind, result, fd);
	if (request->name)
		row_text("args.op", request->name);
	else
		row_hex("args.op", request->number);
	row_hex("args.argp", (uintptr_t)zeros);
	row_done();
}

static void test_ioctl(void)
{
	int fd = memfd_create("row-requests", MFD_CLOEXEC);

	if (fd < 0)
		abort();
	for (size_t i = 0; i < REQUEST_COUNT; i++)
		attempt(&requests[i], fd);
	close(fd);
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {{"ioctl", test_ioctl}, {NULL, NULL}};

	return row_main(cases, argc, argv);
}
