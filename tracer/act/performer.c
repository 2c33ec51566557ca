#include "performer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/procfs.h"

/* What goes with an order: the descriptors that it names by number. */
enum passed { PASSED_ROOT, PASSED_PLACE, PASSED_BASE, PASSED_TO, PASSED_TO_BASE, PASSED_COUNT };

struct parcel {
	struct order order;
	uint64_t effective; /* capabilities of whoever it is for */
	bool has[PASSED_COUNT];
};

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(PASSED_COUNT * sizeof(int))];
};

/* One message with descriptors. -1, or its size. */
static ssize_t send_parcel(int socket, struct iovec *parts, size_t count, const int *descriptors, size_t passed)
{
	union control control;
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};

	memset(&control, 0, sizeof(control));
	if (passed > 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(passed * sizeof(int));
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(passed * sizeof(int));
		memcpy(CMSG_DATA(header), descriptors, passed * sizeof(int));
	}
	ssize_t sent;
	do
		sent = sendmsg(socket, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent;
}

static ssize_t receive_parcel(int socket, struct iovec *parts, size_t count, int *descriptors, size_t *passed)
{
	union control control;
	struct msghdr message = {.msg_iov = parts,
				 .msg_iovlen = count,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes)};
	ssize_t got;

	*passed = 0;
	do
		got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	struct cmsghdr *header = got < 0 ? NULL : CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
		size_t arrived = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		*passed = arrived < PASSED_COUNT ? arrived : PASSED_COUNT;
		memcpy(descriptors, CMSG_DATA(header), *passed * sizeof(int));
		/* Alignment makes room for more than we asked for. */
		for (size_t i = *passed; i < arrived; i++) {
			int extra;
			memcpy(&extra, CMSG_DATA(header) + i * sizeof(int), sizeof(extra));
			(void)close(extra);
		}
	}
	return got;
}

/* --- the performer --- */

/* Into the namespaces of the task. Who enters a mount namespace must be mighty in the user namespace that owns it. */
static bool move_in(int task)
{
	struct stat mine, theirs;
	int mounts CLEANUP_FD = openat(task, "ns/mnt", O_RDONLY | O_CLOEXEC);
	int user CLEANUP_FD = openat(task, "ns/user", O_RDONLY | O_CLOEXEC);

	if (mounts < 0 || user < 0 || fstatat(procfs_root(), "self/ns/mnt", &mine, 0) != 0 ||
	    fstat(mounts, &theirs) != 0)
		return false;
	if (mine.st_ino != theirs.st_ino) {
		int owner CLEANUP_FD = ioctl(mounts, NS_GET_USERNS);
		struct stat owned, own;
		if (owner < 0 || fstat(owner, &owned) != 0 || fstatat(procfs_root(), "self/ns/user", &own, 0) != 0)
			return false;
		if (owned.st_ino != own.st_ino && setns(owner, CLONE_NEWUSER) != 0)
			return false;
		if (setns(mounts, CLONE_NEWNS) != 0)
			return false;
	}
	if (fstatat(procfs_root(), "self/ns/user", &mine, 0) != 0 || fstat(user, &theirs) != 0)
		return false;
	return mine.st_ino == theirs.st_ino || setns(user, CLONE_NEWUSER) == 0;
}

/* In a user namespace, whoever has no number there is shown as these. */
static bool has_overflow_ids(const struct rights *rights)
{
	char text[32];

	if (!procfs_read(procfs_root(), "sys/kernel/overflowuid", text, sizeof(text)) ||
	    rights->file_user == strtoul(text, NULL, 10))
		return true;
	if (!procfs_read(procfs_root(), "sys/kernel/overflowgid", text, sizeof(text)))
		return true;
	gid_t nobody = (gid_t)strtoul(text, NULL, 10);
	bool found = rights->file_group == nobody;
	for (size_t i = 0; i < rights->group_count; i++)
		found = found || rights->groups[i] == nobody;
	return found;
}

/*
 * Into its namespaces and, for good, into its ids: `theirs` are those that the monitor knows. Inside numbers are no proof
 * of anything: ours and its may show as the same one because neither is mapped.
 */
static bool become(int self, int task, const struct rights *theirs)
{
	const uint64_t switching = 1ull << CAP_SETUID | 1ull << CAP_SETGID;
	struct rights mine, inside;

	if (!rights_read_ids(self, &mine))
		return false;
	if (rights_same_ids(&mine, theirs))
		return move_in(task);
	if ((mine.effective & switching) == switching)
		return rights_take_ids(theirs) && move_in(task);
	return move_in(task) && rights_read_ids(task, &inside) && !has_overflow_ids(&inside) &&
	       rights_take_ids(&inside);
}

static bool take_root(int root)
{
	return fchdir(root) == 0 && chroot(".") == 0 && fchdir(procfs_root()) == 0;
}

/* With the task's capabilities; its ids are ours. */
static struct order_outcome perform(const struct rights *own, struct parcel *parcel, const int *descriptors)
{
	struct order_outcome outcome = {.state = ORDER_NOT_MADE, .descriptor = -1};
	struct order *order = &parcel->order;
	struct rights theirs = *own;

	order->place.directory = descriptors[PASSED_PLACE];
	order->place.base = descriptors[PASSED_BASE];
	order->to.directory = descriptors[PASSED_TO];
	order->to.base = descriptors[PASSED_TO_BASE];
	theirs.effective = parcel->effective;
	if ((theirs.effective & ~own->permitted) != 0 || !take_root(descriptors[PASSED_ROOT]))
		return outcome;
	if (theirs.effective == own->effective) {
		outcome = order_carry_out(order);
	} else if (rights_adopt(own, &theirs)) {
		outcome = order_carry_out(order);
		rights_return(own, &theirs);
	}
	/* Whoever stands in a root keeps its mount in place. */
	(void)take_root(procfs_root());
	return outcome;
}

static bool serve_one(int socket, const struct rights *own)
{
	/* Too large for a stack, and there is only one thread here. */
	static struct parcel parcel;
	static char value[ORDER_VALUE_LIMIT];
	struct iovec parts[] = {{&parcel, sizeof(parcel)}, {value, sizeof(value)}};
	int received[PASSED_COUNT], descriptors[PASSED_COUNT];
	size_t passed = 0, used = 0;

	ssize_t got = receive_parcel(socket, parts, 2, received, &passed);
	if (got < (ssize_t)sizeof(parcel))
		return false;
	for (size_t i = 0; i < PASSED_COUNT; i++)
		descriptors[i] = parcel.has[i] && used < passed ? received[used++] : -1;
	parcel.order.value = value;
	struct order_outcome outcome = perform(own, &parcel, descriptors);
	/* Before the answer: once the caller goes on, nothing of this may be in use. */
	for (size_t i = 0; i < passed; i++)
		fd_close(&received[i]);
	struct iovec answer = {&outcome, sizeof(outcome)};
	bool opened = outcome.descriptor >= 0;
	bool sent = send_parcel(socket, &answer, 1, &outcome.descriptor, opened) > 0;
	fd_close(&outcome.descriptor);
	return sent && (!opened || send(socket, "", 1, MSG_NOSIGNAL) == 1);
}

/* Never returns. Only calls that a child of a process with threads may make. */
static void serve(int socket, int task, const struct rights *theirs, pid_t parent)
{
	const int keep[] = {socket, task, procfs_root()};
	struct rights own;

	prctl(PR_SET_NAME, "assure-perform");
	fd_close_from(0, keep, sizeof(keep) / sizeof(keep[0]));
	int self CLEANUP_FD = openat(procfs_root(), "self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool ready = self >= 0 && become(self, task, theirs) && order_prepare() && rights_read_ids(self, &own);
	/* Only now: a change of credentials undoes both. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)close(task);
	char word = ready ? 'y' : 'n';
	if (getppid() == parent && send(socket, &word, 1, MSG_NOSIGNAL) == 1 && ready)
		while (serve_one(socket, &own))
			;
	_exit(0);
}

/* --- the monitor --- */

struct attendant {
	struct performer *performer;
	int sockets[2];
	int task;
	const struct rights *rights;
};

/*
 * A thread of its own for each performer: its parent must not be a worker, whose waits for traced tasks would catch the
 * performer's end.
 */
static void *attend(void *argument)
{
	struct attendant attendant = *(struct attendant *)argument;
	pid_t parent = getpid();

	pid_t pid = fork();
	if (pid == 0)
		serve(attendant.sockets[1], attendant.task, attendant.rights, parent);
	(void)close(attendant.sockets[1]);
	atomic_store(&attendant.performer->pid, pid > 0 ? pid : 0);
	/* From here on `argument` may be gone: whoever made it waits for the performer's first word. */
	int status;
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	atomic_store(&attendant.performer->pid, 0);
	return NULL;
}

static void retire(struct performer *performer)
{
	/* The end of the socket is its end. */
	fd_close(&performer->socket);
	performer->user_namespace = performer->mount_namespace = 0;
	performer->refused = false;
}

static bool employ(struct performer *performer, const struct target *target)
{
	struct attendant attendant = {.performer = performer, .task = target->task, .rights = target->rights};
	pthread_attr_t attributes;
	pthread_t thread;
	char word = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, attendant.sockets) != 0)
		return false;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	int error = pthread_create(&thread, &attributes, attend, &attendant);
	pthread_attr_destroy(&attributes);
	performer->socket = attendant.sockets[0];
	if (error)
		(void)close(attendant.sockets[1]);
	return !error && recv(performer->socket, &word, 1, 0) == 1 && word == 'y';
}

static bool is_for(const struct performer *performer, const struct target *target)
{
	return performer->user_namespace == target->rights->user_namespace &&
	       performer->mount_namespace == target->mount_namespace &&
	       rights_same_ids(&performer->rights, target->rights);
}

/* The place of its performer, or one that nobody uses just now, which is `made` anew and locked. NULL: none. */
static struct performer *find_place(struct performers *performers, const struct target *target, bool *made)
{
	struct performer *oldest = NULL;

	for (size_t i = 0; i < PERFORMERS_LIMIT; i++) {
		struct performer *performer = &performers->all[i];
		if (is_for(performer, target))
			return performer;
		/* The attendant of one that was let go may not have seen its end yet. */
		bool ending = performer->user_namespace == 0 && atomic_load(&performer->pid) != 0;
		if (!ending && (!oldest || performer->last_use < oldest->last_use))
			oldest = performer;
	}
	if (!oldest || pthread_mutex_trylock(&oldest->lock) != 0)
		return NULL;
	bool free = oldest->user_namespace == 0;
	retire(oldest);
	if (!free) {
		pthread_mutex_unlock(&oldest->lock);
		return NULL;
	}
	oldest->user_namespace = target->rights->user_namespace;
	oldest->mount_namespace = target->mount_namespace;
	oldest->rights = *target->rights;
	*made = true;
	return oldest;
}

/* The performer for this one, locked, or NULL. Nobody is waited for while the list is locked. */
static struct performer *find(struct performers *performers, const struct target *target)
{
	bool made = false;

	pthread_mutex_lock(&performers->lock);
	struct performer *found = find_place(performers, target, &made);
	if (found)
		found->last_use = ++performers->clock;
	pthread_mutex_unlock(&performers->lock);
	if (!found)
		return NULL;
	if (made)
		found->refused = !employ(found, target);
	else
		pthread_mutex_lock(&found->lock);
	if (found->refused || !is_for(found, target)) {
		pthread_mutex_unlock(&found->lock);
		return NULL;
	}
	return found;
}

static void add(struct parcel *parcel, int *descriptors, size_t *count, enum passed which, int descriptor)
{
	parcel->has[which] = descriptor >= 0;
	if (descriptor >= 0)
		descriptors[(*count)++] = descriptor;
}

static bool exchange(struct performer *performer, const struct target *target, struct order *order, int root,
		     struct order_outcome *outcome)
{
	struct parcel parcel = {.order = *order, .effective = target->rights->effective};
	int descriptors[PASSED_COUNT], received[PASSED_COUNT];
	size_t count = 0, passed = 0;

	add(&parcel, descriptors, &count, PASSED_ROOT, root);
	add(&parcel, descriptors, &count, PASSED_PLACE, order->place.directory);
	add(&parcel, descriptors, &count, PASSED_BASE, order->place.base);
	add(&parcel, descriptors, &count, PASSED_TO, order->to.directory);
	add(&parcel, descriptors, &count, PASSED_TO_BASE, order->to.base);
	size_t value = order->kind == ORDER_SET_XATTR ? order->value_size : 0;
	struct iovec parts[] = {{&parcel, sizeof(parcel)}, {(void *)(uintptr_t)order->value, value}};
	if (send_parcel(performer->socket, parts, value > 0 ? 2 : 1, descriptors, count) < 0)
		return false;
	struct iovec answer = {outcome, sizeof(*outcome)};
	ssize_t got = receive_parcel(performer->socket, &answer, 1, received, &passed);
	outcome->descriptor = passed > 0 ? received[0] : -1;
	for (size_t i = 1; i < passed; i++)
		(void)close(received[i]);
	/* It says when it has closed its own; an end does as well. */
	char closed;
	if (passed > 0)
		(void)recv(performer->socket, &closed, 1, 0);
	return got == (ssize_t)sizeof(*outcome);
}

bool performer_carry_out(struct performers *performers, const struct target *target, struct order *order,
			 struct order_outcome *outcome, bool *lost)
{
	int root CLEANUP_FD = openat(target->task, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct performer *performer = root < 0 || !target->rights ? NULL : find(performers, target);

	*lost = false;
	if (!performer)
		return false;
	bool done = exchange(performer, target, order, root, outcome);
	if (!done) {
		*lost = true;
		retire(performer);
	}
	pthread_mutex_unlock(&performer->lock);
	return done;
}

void performers_init(struct performers *performers)
{
	memset(performers, 0, sizeof(*performers));
	pthread_mutex_init(&performers->lock, NULL);
	for (size_t i = 0; i < PERFORMERS_LIMIT; i++) {
		performers->all[i].socket = -1;
		pthread_mutex_init(&performers->all[i].lock, NULL);
	}
}

bool performers_has(const struct performers *performers, pid_t pid)
{
	for (size_t i = 0; pid > 0 && i < PERFORMERS_LIMIT; i++)
		if (atomic_load(&performers->all[i].pid) == pid)
			return true;
	return false;
}

void performers_stop(struct performers *performers)
{
	enum { PATIENCE_MS = 1000 };

	for (size_t i = 0; i < PERFORMERS_LIMIT; i++)
		/* Who has it just now waits for a call that may be stuck. */
		if (pthread_mutex_trylock(&performers->all[i].lock) == 0) {
			retire(&performers->all[i]);
			pthread_mutex_unlock(&performers->all[i].lock);
		}
	for (size_t i = 0, waited = 0; i < PERFORMERS_LIMIT; i++) {
		pid_t pid;
		while ((pid = atomic_load(&performers->all[i].pid)) != 0 && waited < 2 * PATIENCE_MS) {
			if (waited++ == PATIENCE_MS)
				(void)kill(pid, SIGKILL);
			(void)poll(NULL, 0, 1);
		}
	}
}

void performers_end(struct performers *performers, performers_needed needed, void *context)
{
	pthread_mutex_lock(&performers->lock);
	for (size_t i = 0; i < PERFORMERS_LIMIT; i++) {
		struct performer *performer = &performers->all[i];
		if (performer->user_namespace == 0 ||
		    needed(context, performer->user_namespace, performer->mount_namespace))
			continue;
		/* Somebody who has it just now gives it work that is still to be done. */
		if (pthread_mutex_trylock(&performer->lock) != 0)
			continue;
		retire(performer);
		pthread_mutex_unlock(&performer->lock);
	}
	pthread_mutex_unlock(&performers->lock);
}
