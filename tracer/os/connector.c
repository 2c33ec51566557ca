#include "os/connector.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/probe.h"
#include "os/procfs.h"

enum { RECEIVE_BUFFER = 8 << 20, PACKET_LIMIT = 1024 };

/* Ask for something: a list of 32-bit words behind the two headers. */
static bool ask(int fd, const uint32_t *words, size_t count, struct err *err)
{
	unsigned char packet[NLMSG_HDRLEN + sizeof(struct cn_msg) + 4 * sizeof(*words)] = {0};
	const size_t size = NLMSG_HDRLEN + sizeof(struct cn_msg) + count * sizeof(*words);
	const struct nlmsghdr netlink = {.nlmsg_len = (uint32_t)size, .nlmsg_type = NLMSG_DONE};
	const struct cn_msg connector = {.id = {.idx = CN_IDX_PROC, .val = CN_VAL_PROC},
					 .len = (uint16_t)(count * sizeof(*words))};

	memcpy(packet, &netlink, sizeof(netlink));
	memcpy(packet + NLMSG_HDRLEN, &connector, sizeof(connector));
	memcpy(packet + NLMSG_HDRLEN + sizeof(connector), words, count * sizeof(*words));
	return send(fd, packet, size, 0) == (ssize_t)size ||
	       err_set(err, errno, "asking the kernel's proc connector for events");
}

static bool subscribe(int fd, struct err *err)
{
	const uint32_t listen[] = {PROC_CN_MCAST_LISTEN};
	struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		return err_set(err, errno, "joining the kernel's proc connector");

	/* Storms of births are what the default buffer is too small for; without privilege the system's limit holds. */
	int size = RECEIVE_BUFFER;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) != 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	return ask(fd, listen, 1, err);
}

/*
 * Only what is of interest, where the kernel can do that (6.6; older ones ignore a request of this length): every call
 * that is verified is two events of tracing, and each of them would wake us. Asked for after the acknowledgement, which
 * it would keep from us.
 */
static void narrow(int fd)
{
	const uint32_t narrowed[] = {PROC_CN_MCAST_LISTEN, PROC_EVENT_FORK | PROC_EVENT_EXEC | PROC_EVENT_EXIT};

	(void)ask(fd, narrowed, 2, NULL);
}

/* The kernel answers the subscription; without privilege before 6.6 the answer is an error, or nothing at all. */
static bool await_acknowledgement(int fd, struct err *err)
{
	struct timeval limit = {.tv_usec = 300000};
	char packet[PACKET_LIMIT];

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	for (int tries = 0; tries < 64; tries++) {
		ssize_t size = recv(fd, packet, sizeof(packet), 0);
		if (size < 0)
			return err_set(err, errno, "waiting for the kernel's proc connector");
		struct proc_event event;
		if ((size_t)size < NLMSG_HDRLEN + sizeof(struct cn_msg) + offsetof(struct proc_event, event_data) + 4)
			continue;
		size_t body = (size_t)size - NLMSG_HDRLEN - sizeof(struct cn_msg);
		memset(&event, 0, sizeof(event));
		memcpy(&event, packet + NLMSG_HDRLEN + sizeof(struct cn_msg),
		       body < sizeof(event) ? body : sizeof(event));
		if (event.what != PROC_EVENT_NONE)
			return true; /* events already flow */
		if (event.event_data.ack.err != 0)
			return err_set(err, (int)event.event_data.ack.err, "the kernel's proc connector refused");
		return true;
	}
	return true;
}

static int open_here(struct err *err)
{
	int fd CLEANUP_FD = socket(PF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_CONNECTOR);
	if (fd < 0) {
		err_set(err, errno, "opening the kernel's proc connector");
		return -1;
	}
	if (!subscribe(fd, err) || !await_acknowledgement(fd, err))
		return -1;
	narrow(fd);
	if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
		err_set(err, errno, "setting up the proc connector's socket");
		return -1;
	}
	return fd_steal(&fd);
}

static bool in_initial_pid_namespace(void)
{
	const ino_t initial = 0xEFFFFFFC; /* PROC_PID_INIT_INO of include/linux/proc_ns.h, the same since 3.8 */
	struct stat status;

	return fstatat(procfs_root(), "self/ns/pid", &status, 0) == 0 && status.st_ino == initial;
}

/* In the network namespace of that process, entered for the moment it takes; -1 when it cannot be entered, or has none. */
static int open_beside(pid_t pid, int own)
{
	int task CLEANUP_FD = procfs_task(pid);
	int other CLEANUP_FD = task < 0 ? -1 : openat(task, "ns/net", O_RDONLY | O_CLOEXEC);

	if (other < 0 || setns(other, CLONE_NEWNET) != 0)
		return -1;
	int fd = open_here(NULL);
	if (setns(own, CLONE_NEWNET) != 0)
		fd_close(&fd);
	return fd;
}

/*
 * There is a connector in the initial network namespace alone. The first process is mostly in it, but may be nobody's to
 * look at; whoever put us into another one is an ancestor of ours.
 */
static int open_elsewhere(void)
{
	enum { ANCESTORS = 16 };
	int own CLEANUP_FD = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	pid_t pid = 1, next = getppid();
	struct stat status;
	int fd = -1;

	if (own < 0 || fstat(own, &status) != 0)
		return -1;
	ino_t tried = status.st_ino;
	for (int i = 0; i <= ANCESTORS && pid > 0 && fd < 0; i++) {
		struct task_status about;
		int task CLEANUP_FD = procfs_task(pid);
		bool known = task >= 0 && procfs_status(task, 0, &about);
		if (task >= 0 && fstatat(task, "ns/net", &status, 0) == 0 && status.st_ino != tried) {
			fd = open_beside(pid, own);
			tried = status.st_ino;
		}
		pid = i == 0 ? next : known ? about.ppid : 0;
	}
	return fd;
}

int connector_open(struct err *err)
{
	struct err first = {0};

	if (probe_overridden("connector")) {
		err_set(err, 0, "the proc connector is missing, says ASSURE_PROBES");
		return -1;
	}
	if (!in_initial_pid_namespace()) {
		err_set(err, 0,
			"the proc connector names processes as the initial pid namespace does, and this is another");
		return -1;
	}
	int fd = open_here(&first);
	if (fd >= 0)
		return fd;

	fd = open_elsewhere();
	if (fd >= 0)
		return fd;
	if (err && !err_is_set(err))
		*err = first;
	return -1;
}

bool connector_parse(const void *packet, size_t size, struct connector_event *event)
{
	struct nlmsghdr netlink;
	struct cn_msg message;
	struct proc_event kernel;
	const size_t head = NLMSG_HDRLEN + sizeof(message);

	if (size < head + offsetof(struct proc_event, event_data))
		return false;
	memcpy(&netlink, packet, sizeof(netlink));
	memcpy(&message, (const char *)packet + NLMSG_HDRLEN, sizeof(message));
	if (netlink.nlmsg_len > size || message.id.idx != CN_IDX_PROC || message.id.val != CN_VAL_PROC)
		return false;
	size_t body = size - head;
	memset(&kernel, 0, sizeof(kernel));
	memcpy(&kernel, (const char *)packet + head, body < sizeof(kernel) ? body : sizeof(kernel));

	*event = (struct connector_event){.mono_ns = kernel.timestamp_ns};
	switch (kernel.what) {
	case PROC_EVENT_FORK:
		event->type = CONNECTOR_FORK;
		event->pid = kernel.event_data.fork.child_pid;
		event->tgid = kernel.event_data.fork.child_tgid;
		event->parent_tgid = kernel.event_data.fork.parent_tgid;
		return true;
	case PROC_EVENT_EXEC:
		event->type = CONNECTOR_EXEC;
		event->pid = kernel.event_data.exec.process_pid;
		event->tgid = kernel.event_data.exec.process_tgid;
		return true;
	case PROC_EVENT_EXIT:
		event->type = CONNECTOR_EXIT;
		event->pid = kernel.event_data.exit.process_pid;
		event->tgid = kernel.event_data.exit.process_tgid;
		event->status = (int)kernel.event_data.exit.exit_code;
		return true;
	default:
		return false;
	}
}

int connector_next(int fd, struct connector_event *event)
{
	char packet[PACKET_LIMIT];

	for (;;) {
		struct sockaddr_nl sender = {0};
		socklen_t sender_size = sizeof(sender);
		ssize_t size =
		    recvfrom(fd, packet, sizeof(packet), MSG_DONTWAIT, (struct sockaddr *)&sender, &sender_size);
		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0 && errno == ENOBUFS) {
			*event = (struct connector_event){.type = CONNECTOR_LOST};
			return 1;
		}
		if (size < 0)
			return 0;
		/* Port 0 is the kernel: another process could forge births. */
		if (sender.nl_pid == 0 && connector_parse(packet, (size_t)size, event))
			return 1;
	}
}
