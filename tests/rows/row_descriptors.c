/*
 * Calls on descriptors that change something at certain commands only: mmap, fcntl, ioctl. The failures of every single
 * ioctl request are in row_requests.c.
 */
#include <linux/fs.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "row_file.h"

#ifndef FS_IOC_RESVSP
#define FS_IOC_RESVSP 0x40305828u
#endif
#ifndef FIOSETOWN
#define FIOSETOWN 0x8901
#endif
#ifndef SIOCSPGRP
#define SIOCSPGRP 0x8902
#endif
#ifndef PIDFD_GET_UTS_NAMESPACE
#define PIDFD_GET_UTS_NAMESPACE 0xff0au
#endif

enum { LENGTH = 4096 };

static void mapped(int protection, int flags, int fd, long offset, const char *names)
{
	long result = syscall(SYS_mmap, NULL, (long)LENGTH, protection, flags, fd, offset);

	row_descriptor("mmap", "file.map", result, fd);
	row_json("flags", names);
	row_number("args.addr", 0);
	row_number("args.length", LENGTH);
	row_number("args.offset", offset);
	if (result != -1)
		row_number("result.value", result);
	row_done();
	if (result != -1)
		munmap((void *)result, LENGTH);
}

static void test_mmap(void)
{
	int fd = row_make("mapped");
	int reader = open("mapped", O_RDONLY | O_CLOEXEC);
	int folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (ftruncate(fd, 2 * LENGTH) != 0)
		abort();
	mapped(PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0, "[\"PROT_READ\",\"PROT_WRITE\",\"MAP_SHARED\"]");
	mapped(PROT_WRITE, MAP_SHARED_VALIDATE, fd, LENGTH, "[\"PROT_WRITE\",\"MAP_SHARED_VALIDATE\"]");
	mapped(PROT_READ | PROT_EXEC, MAP_PRIVATE, reader, 0, "[\"PROT_READ\",\"PROT_EXEC\",\"MAP_PRIVATE\"]");
	/* what is open for reading cannot be written through a mapping */
	mapped(PROT_READ | PROT_WRITE, MAP_SHARED, reader, 0, "[\"PROT_READ\",\"PROT_WRITE\",\"MAP_SHARED\"]");
	mapped(PROT_WRITE, MAP_SHARED, fd, 1, "[\"PROT_WRITE\",\"MAP_SHARED\"]");
	mapped(PROT_EXEC, MAP_PRIVATE, folder, 0, "[\"PROT_EXEC\",\"MAP_PRIVATE\"]");
	close(folder);
	close(reader);
	close(fd);
}

/* A command with its argument, which is recorded as it stands in the register. */
static void commanded(const char *row, const char *kind, long result, int fd, const char *name, unsigned long argument)
{
	row_descriptor(row, kind, result, fd);
	row_text("args.op", name);
	if (argument)
		row_hex(strcmp(row, "fcntl") == 0 ? "args.arg" : "args.argp", argument);
}

static void seals(void)
{
	int fd = memfd_create("row-sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	commanded("fcntl", "file.mode", syscall(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL), fd,
		  "F_ADD_SEALS", F_SEAL_GROW | F_SEAL_SEAL);
	row_done();
	commanded("fcntl", "file.mode", syscall(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK), fd, "F_ADD_SEALS",
		  F_SEAL_SHRINK);
	row_done();
	close(fd);
}

static void leases(void)
{
	row_touch("leased");
	int fd = open("leased", O_RDONLY | O_CLOEXEC);
	commanded("fcntl", "kernel.other", syscall(SYS_fcntl, fd, F_SETLEASE, F_WRLCK), fd, "F_SETLEASE", F_WRLCK);
	row_done();
	commanded("fcntl", "kernel.other", syscall(SYS_fcntl, fd, F_SETLEASE, F_UNLCK), fd, "F_SETLEASE", F_UNLCK);
	row_done();

	/* somebody else has it open */
	int other = open("leased", O_RDONLY | O_CLOEXEC);
	commanded("fcntl", "kernel.other", syscall(SYS_fcntl, fd, F_SETLEASE, F_WRLCK), fd, "F_SETLEASE", F_WRLCK);
	row_done();
	close(other);
	close(fd);
}

/* Above every process id that the kernel gives out. */
enum { NO_PROCESS = 0x400001 };

/* Whom the signal will reach is what these effects are about. */
static void owners(void)
{
	int fd = row_make("owned");
	pid_t self = getpid();
	struct f_owner_ex owner = {.type = F_OWNER_PID, .pid = self};

	commanded("fcntl", "proc.signal", syscall(SYS_fcntl, fd, F_SETOWN, self), fd, "F_SETOWN", (unsigned)self);
	row_number("target.pid", self);
	row_done();
	commanded("fcntl", "proc.signal", syscall(SYS_fcntl, fd, F_SETOWN, NO_PROCESS), fd, "F_SETOWN", NO_PROCESS);
	row_number("target.pid", NO_PROCESS);
	row_done();
	commanded("fcntl", "proc.signal", syscall(SYS_fcntl, fd, F_SETOWN_EX, &owner), fd, "F_SETOWN_EX",
		  (uintptr_t)&owner);
	row_number("target.pid", self);
	row_done();
	owner.type = 77;
	commanded("fcntl", "proc.signal", syscall(SYS_fcntl, fd, F_SETOWN_EX, &owner), fd, "F_SETOWN_EX",
		  (uintptr_t)&owner);
	row_done();

	commanded("fcntl", "proc.signal", syscall(SYS_fcntl, fd, F_SETSIG, SIGUSR1), fd, "F_SETSIG", SIGUSR1);
	row_done();
	commanded("fcntl", "proc.signal", syscall(SYS_fcntl, fd, F_SETSIG, 99), fd, "F_SETSIG", 99);
	row_done();
	close(fd);
}

/* What only asks is no effect. */
static void questions(void)
{
	int fd = row_make("asked");

	syscall(SYS_fcntl, fd, F_GETFL);
	close(fd);
	row_used = 0;
	row_put("{\"row\":\"fcntl\",\"absent\":{\"syscall\":\"fcntl\",\"args.op\":\"F_GETFL\"}}\n");
	if (write(ROW_FD, row_line, row_used) < 0 && errno != EBADF)
		abort();
}

static void test_fcntl(void)
{
	seals();
	leases();
	owners();
	questions();
}

/* Inode flags; ours are ours to set, and the foreign file's are not. */
static void inode_flags(void)
{
	unsigned long request = FS_IOC_SETFLAGS;
	int flags = 0;
	int fd = row_make("flagged");

	if (ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0) {
		row_skip("ioctl", "the file system has no inode flags");
		close(fd);
		return;
	}
	flags |= FS_NODUMP_FL;
	commanded("ioctl", "file.mode", syscall(SYS_ioctl, fd, request, &flags), fd, "FS_IOC_SETFLAGS",
		  (uintptr_t)&flags);
	row_done();
	int immutable = flags | FS_IMMUTABLE_FL;
	long result = ROW_AS_NOBODY(syscall(SYS_ioctl, fd, request, &immutable));
	commanded("ioctl", "file.mode", result, fd, "FS_IOC_SETFLAGS", (uintptr_t)&immutable);
	row_done();

	struct fsxattr attributes;
	if (ioctl(fd, FS_IOC_FSGETXATTR, &attributes) != 0)
		abort();
	commanded("ioctl", "file.mode", syscall(SYS_ioctl, fd, FS_IOC_FSSETXATTR, &attributes), fd, "FS_IOC_FSSETXATTR",
		  (uintptr_t)&attributes);
	row_done();
	close(fd);
}

/* As the kernel's struct space_resv. */
struct space {
	int16_t type, whence;
	int64_t start, length;
	int32_t system, process;
	int32_t pad[4];
};

static void allocation(void)
{
	struct space space = {.length = 8192};
	int fd = row_make("allocated");

	commanded("ioctl", "file.truncate", syscall(SYS_ioctl, fd, FS_IOC_RESVSP, &space), fd, "FS_IOC_RESVSP",
		  (uintptr_t)&space);
	row_done();
	close(fd);
	fd = open("allocated", O_RDONLY | O_CLOEXEC);
	commanded("ioctl", "file.truncate", syscall(SYS_ioctl, fd, FS_IOC_RESVSP, &space), fd, "FS_IOC_RESVSP",
		  (uintptr_t)&space);
	row_done();
	close(fd);
}

static void copies(void)
{
	int from = row_make("from");
	int fd = row_make("copy");
	int reader = open("copy", O_RDONLY | O_CLOEXEC);

	/* few file systems can; the rest say so */
	commanded("ioctl", "file.write", syscall(SYS_ioctl, fd, FICLONE, from), fd, "FICLONE", (unsigned)from);
	row_done();
	commanded("ioctl", "file.write", syscall(SYS_ioctl, reader, FICLONE, from), reader, "FICLONE", (unsigned)from);
	row_done();
	close(reader);
	close(fd);
	close(from);
}

static void socket_owner(void)
{
	int pair[2];
	int self = getpid();
	int nobody = NO_PROCESS;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		abort();
	commanded("ioctl", "proc.signal", syscall(SYS_ioctl, pair[0], FIOSETOWN, &self), pair[0], "FIOSETOWN",
		  (uintptr_t)&self);
	row_number("target.pid", self);
	row_done_waiting();
	commanded("ioctl", "proc.signal", syscall(SYS_ioctl, pair[0], SIOCSPGRP, &nobody), pair[0], "SIOCSPGRP",
		  (uintptr_t)&nobody);
	row_number("target.pid", nobody);
	row_done_waiting();
	close(pair[0]);
	close(pair[1]);
}

/* In a network of its own, which is gone with the child. */
static void interface_child(void)
{
	struct ifreq request = {.ifr_flags = IFF_UP};

	if (unshare(geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) != 0) {
		row_skip("ioctl", "no network namespaces: interfaces are not set up");
		return;
	}
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	snprintf(request.ifr_name, sizeof(request.ifr_name), "lo");
	commanded("ioctl", "net.raw", syscall(SYS_ioctl, fd, SIOCSIFFLAGS, &request), fd, "SIOCSIFFLAGS",
		  (uintptr_t)&request);
	row_done_waiting();
	snprintf(request.ifr_name, sizeof(request.ifr_name), "row-absent");
	commanded("ioctl", "net.raw", syscall(SYS_ioctl, fd, SIOCSIFFLAGS, &request), fd, "SIOCSIFFLAGS",
		  (uintptr_t)&request);
	row_done_waiting();
}

static void interface(void)
{
	pid_t child = fork();

	if (child == 0) {
		interface_child();
		_exit(0);
	}
	if (child < 0 || waitpid(child, NULL, 0) != child)
		abort();
}

static void namespaces(void)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	long result = syscall(SYS_ioctl, fd, PIDFD_GET_UTS_NAMESPACE, 0);

	if (result == -1 && errno == ENOTTY)
		row_skip("ioctl", "needs Linux 6.11: namespaces of a process descriptor");
	else {
		row_expect("ioctl", "priv.namespace", result);
		row_text("args.op", "PIDFD_GET_UTS_NAMESPACE");
		row_number("args.fd", fd);
		row_done_waiting();
	}
	if (result >= 0)
		close((int)result);
	/* these take no argument */
	result = syscall(SYS_ioctl, fd, PIDFD_GET_UTS_NAMESPACE, 1);
	row_expect("ioctl", "priv.namespace", result);
	row_text("args.op", "PIDFD_GET_UTS_NAMESPACE");
	row_hex("args.argp", 1);
	row_done_waiting();
	close(fd);
}

static void test_ioctl(void)
{
	inode_flags();
	allocation();
	copies();
	socket_owner();
	interface();
	namespaces();
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {
	    {"mmap", test_mmap},
	    {"fcntl", test_fcntl},
	    {"ioctl", test_ioctl},
	    {NULL, NULL},
	};

	umask(022);
	return row_main(cases, argc, argv);
}
