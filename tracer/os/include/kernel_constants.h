/*
 * Every constant that specs/conditions.def, specs/variants.def and specs/flags.def name. Headers older than the running
 * kernel lack some of them; those are given here by number.
 *
 * Not to be included together with <sys/mount.h> or <linux/fcntl.h>, which define parts of the same things again.
 */
#pragma once

#ifndef _GNU_SOURCE
#error "compile with -D_GNU_SOURCE"
#endif

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#if defined(__x86_64__)
#include <asm/prctl.h>
#endif
#include <linux/blkzoned.h>
#include <linux/bpf.h>
#include <linux/btrfs.h>
#include <linux/dqblk_xfs.h>
#include <linux/falloc.h>
#include <linux/fanotify.h>
#include <linux/fs.h>
#include <linux/fscrypt.h>
#include <linux/fsverity.h>
#include <linux/fuse.h>
#include <linux/if_tun.h>
#include <linux/kcmp.h>
#include <linux/kd.h>
#include <linux/keyctl.h>
#include <linux/loop.h>
#include <linux/memfd.h>
#include <linux/mount.h>
#include <linux/msdos_fs.h>
#include <linux/nvme_ioctl.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <linux/prctl.h>
#include <linux/ptrace.h>
#include <linux/quota.h>
#include <linux/random.h>
#include <linux/reboot.h>
#include <linux/rtc.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <linux/uinput.h>
#include <linux/userfaultfd.h>
#include <linux/xattr.h>

#include <linux/blkpg.h>
#include <linux/close_range.h>
#include <linux/ioprio.h>
#include <scsi/sg.h>

/* linux/fs.h and the headers of single file systems */
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

/* linux/pidfd.h (6.11) */
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

/* linux/if_tunnel.h, which defines the headers of IP again */
#ifndef SIOCADDTUNNEL
#define SIOCADDTUNNEL 0x89f1
#define SIOCDELTUNNEL 0x89f2
#define SIOCCHGTUNNEL 0x89f3
#endif

/* linux/sctp.h, which glibc's socket headers do not go together with */
#ifndef SOL_SCTP
#define SOL_SCTP 132
#endif
#ifndef SCTP_SOCKOPT_CONNECTX
#define SCTP_SOCKOPT_BINDX_ADD 100
#define SCTP_SOCKOPT_CONNECTX_OLD 107
#define SCTP_SOCKOPT_CONNECTX 110
#define SCTP_SOCKOPT_CONNECTX3 111
#endif

/* linux/netfilter_ipv4/ip_tables.h and its like */
#ifndef IPT_SO_SET_REPLACE
#define IPT_SO_SET_REPLACE 64
#endif
#ifndef IP6T_SO_SET_REPLACE
#define IP6T_SO_SET_REPLACE 64
#endif
#ifndef ARPT_SO_SET_REPLACE
#define ARPT_SO_SET_REPLACE 96
#endif
#ifndef EBT_SO_SET_ENTRIES
#define EBT_SO_SET_ENTRIES 128
#endif

/* not in any header of user space */
#ifndef SYSLOG_ACTION_CLOSE
#define SYSLOG_ACTION_CLOSE 0
#define SYSLOG_ACTION_OPEN 1
#define SYSLOG_ACTION_READ 2
#define SYSLOG_ACTION_READ_ALL 3
#define SYSLOG_ACTION_READ_CLEAR 4
#define SYSLOG_ACTION_CLEAR 5
#define SYSLOG_ACTION_CONSOLE_OFF 6
#define SYSLOG_ACTION_CONSOLE_ON 7
#define SYSLOG_ACTION_CONSOLE_LEVEL 8
#define SYSLOG_ACTION_SIZE_UNREAD 9
#define SYSLOG_ACTION_SIZE_BUFFER 10
#endif

/* newer than the headers that the project is built with */
#ifndef AT_EXECVE_CHECK
#define AT_EXECVE_CHECK 0x10000
#endif
#ifndef F_DUPFD_QUERY
#define F_DUPFD_QUERY 1027
#endif
#ifndef F_CREATED_QUERY
#define F_CREATED_QUERY 1028
#endif
#ifndef FALLOC_FL_WRITE_ZEROES
#define FALLOC_FL_WRITE_ZEROES 0x80
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u
#define MFD_EXEC 0x0010u
#endif
#ifndef MOVE_MOUNT_BENEATH
#define MOVE_MOUNT_BENEATH 0x200
#endif
#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_GET_MDWE 66
#endif
#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67
#define PR_GET_MEMORY_MERGE 68
#endif
#ifndef SCHED_EXT
#define SCHED_EXT 7
#endif
#ifndef SOL_UDP
#define SOL_UDP 17
#endif
#ifndef SOL_VSOCK
#define SOL_VSOCK 287
#endif
#ifndef LSM_ATTR_CURRENT
#define LSM_ATTR_CURRENT 100
#define LSM_ATTR_EXEC 101
#define LSM_ATTR_FSCREATE 102
#define LSM_ATTR_KEYCREATE 103
#define LSM_ATTR_PREV 104
#define LSM_ATTR_SOCKCREATE 105
#endif
#if defined(__x86_64__) && !defined(ARCH_SHSTK_ENABLE)
#define ARCH_SHSTK_ENABLE 0x5001
#define ARCH_SHSTK_DISABLE 0x5002
#define ARCH_SHSTK_LOCK 0x5003
#endif
/* enumerators in newer headers: a macro of the same name and value, after them, does no harm */
#ifndef FSCONFIG_CMD_CREATE_EXCL
#define FSCONFIG_CMD_CREATE_EXCL 8
#endif
#ifndef BPF_TOKEN_CREATE
#define BPF_TOKEN_CREATE 36
#endif
#ifndef BPF_PROG_STREAM_READ_BY_FD
#define BPF_PROG_STREAM_READ_BY_FD 37
#endif

/* sys/mount.h, which does not go together with linux/mount.h in glibc before 2.37 */
#ifndef MNT_FORCE
#define MNT_FORCE 1
#define MNT_DETACH 2
#define MNT_EXPIRE 4
#define UMOUNT_NOFOLLOW 8
#endif

/* what the kernel takes for O_LARGEFILE, where the C library says 0 */
#if defined(__aarch64__)
#define KERNEL_O_LARGEFILE 0400000
#else
#define KERNEL_O_LARGEFILE 0100000
#endif
