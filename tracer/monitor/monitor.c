#include "monitor/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/message.h"
#include "os/procfs.h"
#include "os/tree.h"
#include "state.h"

/* Descriptors of ours besides the cached threads' three each. */
enum { OTHER_DESCRIPTORS = 48, DESCRIPTORS_WANTED = 4096, ENDS_WAIT_NS = 500000000, ALIVE_NOTE_NS = 2000000000 };

/* What the main thread waits for, in the order of its poll set. */
enum wait_for { WAIT_KEEPER, WAIT_GUARDIAN, WAIT_CONNECTOR, WAIT_LISTENER, WAIT_EXITS, WAIT_WAKE, WAIT_SCRIBE, WAITS };

struct session {
	struct monitor *monitor;
	struct starting starting;
	struct pollfd waits[WAITS];
	int scribe; /* pidfd */
	bool agent_ended, told_agent_ended, detached, ended;
	bool tree_was_ended;    /* by us */
	const char *why;        /* the run is incomplete because of this */
	uint64_t alive_note_ns; /* when to say who is still alive; 0: not */
};

static void tell(struct session *session, enum message_type type, uint64_t number, struct bytes text)
{
	struct message message = {.type = type, .fields = {{.number = number}, {.bytes = text}}};

	/* A guardian that is gone is noticed by its socket. */
	if (!session->detached)
		(void)message_send(session->monitor->config->guardian_socket, &message, NULL);
}

static void tell_start_failed(const struct monitor_config *config, const struct err *err, int exit_status)
{
	struct message message = {.type = MESSAGE_start_failed};

	message.fields[0].number = (uint64_t)err->number;
	message.fields[1].number = (uint64_t)exit_status;
	message.fields[2].bytes = bytes_of(err->text);
	message.fields[3].bytes = bytes_of(err->hint);
	(void)message_send(config->guardian_socket, &message, NULL);
}

/* The command's input and output are none of our business: a reader must see their end when the command closes them. */
static void leave_inherited(const struct monitor_config *config, const struct session *session)
{
	int null CLEANUP_FD = open("/dev/null", O_RDWR | O_CLOEXEC);
	int keep[] = {config->guardian_socket,     session->starting.listener,
		      session->starting.release,   session->starting.outcome,
		      session->starting.reports,   procfs_root(),
		      session->monitor->connector, config->lifeline};

	for (int fd = 0; fd <= 2; fd++)
		if (null >= 0)
			(void)dup2(null, fd);
	fd_close_from(3, keep, sizeof(keep) / sizeof(keep[0]));
	if (null > 2)
		(void)fd_steal(&null);
}

static size_t raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return 64;
	limit.rlim_cur = limit.rlim_max < DESCRIPTORS_WANTED ? limit.rlim_max : DESCRIPTORS_WANTED;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur < 64 ? 64 : (size_t)limit.rlim_cur;
}

static bool prepare(struct monitor *monitor, const struct monitor_config *config, struct err *err)
{
	pthread_mutex_init(&monitor->lock, NULL);
	buf_init(&monitor->scratch, 0);
	monitor->config = config;
	monitor->counted.wait_status = -1;
	atomic_store(&monitor->scribe_alive, true);
	notify_backend(&monitor->notify, &monitor->backend);
	monitor->actor = (struct actor){&monitor->backend, &monitor->protection, config->io_uring_allowed};
	if (!own_context_read(&monitor->own))
		return err_set(err, errno, "looking at our own namespaces in /proc");
	monitor->protection = (struct protection){
	    .guardian = config->guardian,
	    .monitor = getpid(),
	    .scribe = config->scribe,
	    .guardian_group = config->guardian_group,
	    .state = bytes_of(config->state),
	    .pid_namespace = monitor->own.pid_namespace,
	};
	/* Orphans of the tree come to us, so that we stay an ancestor of all that we look at (Yama). */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
		return err_set(err, errno, "becoming the reaper of the tree");
	struct err births = {0};
	monitor->connector = connector_open(&births);
	monitor->exits = -1;
	return true;
}

static bool prepare_waiting(struct session *session, struct err *err)
{
	struct monitor *monitor = session->monitor;
	const struct monitor_config *config = monitor->config;

	size_t descriptors = raise_descriptor_limit();
	threads_init(&monitor->threads, (descriptors - OTHER_DESCRIPTORS) / 3);
	if (monitor->connector < 0)
		monitor->exits = epoll_create1(EPOLL_CLOEXEC);
	if (config->hash_images)
		monitor->hashes = image_hashes_new();
	monitor->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	/* Each verified call is a trap of a tracee; none of them is worth a signal. */
	struct sigaction quiet = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP};
	(void)sigaction(SIGCHLD, &quiet, NULL);
	session->scribe = pidfd_open(config->scribe, 0);
	if (monitor->wake < 0 || session->scribe < 0 || fcntl(session->starting.reports, F_SETFL, O_NONBLOCK) != 0)
		return err_set(err, errno, "preparing to wait for the tree");
	session->waits[WAIT_KEEPER] = (struct pollfd){session->starting.reports, POLLIN, 0};
	session->waits[WAIT_GUARDIAN] = (struct pollfd){config->guardian_socket, POLLIN, 0};
	session->waits[WAIT_CONNECTOR] = (struct pollfd){monitor->connector, POLLIN, 0};
	/* Only the hang-up, which is always reported: what there is to receive is the workers'. */
	session->waits[WAIT_LISTENER] = (struct pollfd){monitor->notify.listener, 0, 0};
	session->waits[WAIT_EXITS] = (struct pollfd){monitor->exits, POLLIN, 0};
	session->waits[WAIT_WAKE] = (struct pollfd){monitor->wake, POLLIN, 0};
	session->waits[WAIT_SCRIBE] = (struct pollfd){session->scribe, POLLIN, 0};
	return true;
}

/* The command as the first process of the tree. */
static void adopt_agent(struct session *session)
{
	struct monitor *monitor = session->monitor;
	struct task_status status;
	int task CLEANUP_FD = procfs_task(session->starting.pid);

	pthread_mutex_lock(&monitor->lock);
	monitor->agent = session->starting.pid;
	monitor->config->run_start->births = monitor->connector >= 0 ? BYTES("connector") : BYTES("marks");
	monitor->config->run_start->no_new_privs = session->starting.no_new_privs;
	record_run_begin(monitor);
	struct process *process = processes_add(&monitor->processes, session->starting.pid);
	if (process && task >= 0 && procfs_status(task, &status)) {
		process->lineage = LINEAGE_root;
		process->parent_pid = status.ppid;
		process->session = status.session;
		process->group = status.group;
		process->start_ticks = status.start_ticks;
		process_set_executable(process, bytes_of(monitor->config->program));
		record_new_process(monitor, process);
	}
	if (monitor->connector < 0 && process && task >= 0)
		(void)births_first_sight(monitor, task, session->starting.pid, &status);
	pthread_mutex_unlock(&monitor->lock);
}

/* The exec that starts the program is a stopped call like any other: when the workers fail, it never comes about. */
static ssize_t read_outcome(struct session *session, int *number)
{
	struct monitor *monitor = session->monitor;

	for (;;) {
		struct pollfd waits[] = {{session->starting.outcome, POLLIN, 0}, {monitor->wake, POLLIN, 0}};
		if (poll(waits, 2, -1) < 0 && errno != EINTR)
			return -1;
		if (waits[0].revents)
			return fd_read_full(session->starting.outcome, number, sizeof(*number));
		if (waits[1].revents && atomic_load(&monitor->stopping))
			return -1;
	}
}

/* Wait until the program runs, or learn why it does not. */
static bool await_program(struct session *session, struct err *err)
{
	struct monitor *monitor = session->monitor;
	const struct monitor_config *config = monitor->config;
	int number = 0;
	ssize_t size = read_outcome(session, &number);

	fd_close(&session->starting.outcome);
	if (size == 0)
		return true;
	if (size < 0) {
		pthread_mutex_lock(&monitor->lock);
		err_set(err, 0, "%s", monitor->failure[0] ? monitor->failure : "the command's start was lost sight of");
		pthread_mutex_unlock(&monitor->lock);
		return err_hint(err, "`assure doctor` says what this host allows");
	}
	if (size != (ssize_t)sizeof(number))
		number = EIO;
	err_exit_status(err, number == ENOENT ? 127 : 126);
	err_set(err, number, "starting %s", config->program);
	if (number == ENOENT && access(config->program, F_OK) == 0)
		err_hint(
		    err,
		    "the file is there, but the interpreter that its first line or its program header names is not");
	else if (number == E2BIG)
		err_hint(err, "one argument, or all of them together, exceed what the kernel takes");
	return false;
}

static void end_tree(struct session *session, const char *why)
{
	session->tree_was_ended = true;
	if (!session->why)
		session->why = why;
	atomic_store(&session->monitor->stopping, true);
	for (int rounds = 0; rounds < 200; rounds++) {
		struct pollfd listener = {session->monitor->notify.listener, 0, 0};
		int found =
		    tree_kill(session->starting.keeper, NULL, 0) + tree_kill(getpid(), &session->starting.keeper, 1);
		if (poll(&listener, 1, 5) > 0 && (listener.revents & POLLHUP))
			break;
		if (found == 0 && rounds > 20)
			break;
	}
}

static void note_agent_end(struct session *session, int status)
{
	struct monitor *monitor = session->monitor;

	session->agent_ended = true;
	monitor->agent_status = status;
	monitor->counted.wait_status = status;
	tell(session, MESSAGE_agent_exited, (uint64_t)(uint32_t)status, BYTES_NONE);
	session->alive_note_ns = clock_monotonic_ns() + ALIVE_NOTE_NS;
}

static void on_child_end(struct session *session, pid_t pid, int status)
{
	struct monitor *monitor = session->monitor;

	pthread_mutex_lock(&monitor->lock);
	births_drain(monitor);
	struct process *process = processes_find(&monitor->processes, pid);
	if (process)
		births_end(monitor, process, status, clock_monotonic_ns());
	pthread_mutex_unlock(&monitor->lock);
	if (pid == monitor->agent && !session->agent_ended)
		note_agent_end(session, status);
}

static void on_keeper(struct session *session)
{
	struct message *message = malloc(sizeof(*message));
	struct err err = {0};

	while (message && message_receive(session->starting.reports, message, MESSAGE_ROLE_keeper, &err)) {
		pid_t pid = (pid_t)message->fields[0].number;
		if (message->type == MESSAGE_child_ended)
			on_child_end(session, pid, (int)(uint32_t)message->fields[1].number);
		else if (message->type == MESSAGE_child_stopped && pid == session->monitor->agent)
			tell(session, MESSAGE_agent_stopped, message->fields[1].number, BYTES_NONE);
	}
	free(message);
	if (err.number == EAGAIN)
		return;
	session->waits[WAIT_KEEPER].fd = -1;
	if (!session->ended) {
		tell(session, MESSAGE_monitor_failed, 0, BYTES("the keeper ended early"));
		end_tree(session, "the keeper ended early");
		session->ended = true;
	}
}

static void on_wake(struct session *session)
{
	struct monitor *monitor = session->monitor;
	uint64_t count;

	(void)!read(monitor->wake, &count, sizeof(count));
	pthread_mutex_lock(&monitor->lock);
	char failure[sizeof(monitor->failure)];
	memcpy(failure, monitor->failure, sizeof(failure));
	pthread_mutex_unlock(&monitor->lock);
	if (failure[0]) {
		tell(session, MESSAGE_monitor_failed, 0, bytes_of(failure));
		end_tree(session, monitor->failure);
		session->ended = true;
	}
}

static void on_signal_request(struct session *session, const struct message *message)
{
	struct monitor *monitor = session->monitor;
	int signal = (int)message->fields[0].number;
	pid_t sender = (pid_t)message->fields[1].number;

	/* What a process of the tree sent to its whole group has reached the agent already. */
	pthread_mutex_lock(&monitor->lock);
	bool inside = sender > 0 && processes_find(&monitor->processes, sender) != NULL;
	pthread_mutex_unlock(&monitor->lock);
	if (!inside && !session->agent_ended && signal > 0 && signal <= SIGRTMAX)
		(void)kill(monitor->agent, signal);
}

static void note_who_is_alive(struct session *session)
{
	struct monitor *monitor = session->monitor;
	struct buf names CLEANUP_BUF = {.limit = 512};
	unsigned count = 0;

	session->alive_note_ns = 0;
	pthread_mutex_lock(&monitor->lock);
	births_drain(monitor);
	for (size_t i = 0; i < PROCESS_BUCKETS; i++)
		for (struct process *process = monitor->processes.buckets[i]; process; process = process->next) {
			char name[32];
			procfs_comm(process->pid, name);
			if (name[0] == 0)
				continue;
			if (count++ < 4)
				buf_append_format(&names, "%s%s (pid %d)", count > 1 ? ", " : "", name, process->pid);
		}
	pthread_mutex_unlock(&monitor->lock);
	if (count > 0)
		tell(session, MESSAGE_tree_alive, count, buf_bytes(&names));
}

static void on_guardian(struct session *session)
{
	struct message *message = malloc(sizeof(*message));
	struct err err = {0};

	if (!message ||
	    !message_receive(session->monitor->config->guardian_socket, message, MESSAGE_ROLE_guardian, &err)) {
		if (err.number != EAGAIN) {
			session->waits[WAIT_GUARDIAN].fd = -1;
			end_tree(session, "the guardian ended early");
			session->ended = true;
		}
	} else if (message->type == MESSAGE_signal_agent) {
		on_signal_request(session, message);
	} else if (message->type == MESSAGE_stop_waiting) {
		end_tree(session, NULL);
		session->ended = true;
	} else if (message->type == MESSAGE_detach) {
		/* The shell has its status; what still runs is watched to its end. */
		note_who_is_alive(session);
		session->detached = true;
		session->waits[WAIT_GUARDIAN].fd = -1;
	}
	free(message);
}

static int poll_timeout(const struct session *session)
{
	if (session->alive_note_ns == 0)
		return -1;
	uint64_t now = clock_monotonic_ns();
	return now >= session->alive_note_ns ? 0 : (int)((session->alive_note_ns - now) / 1000000) + 1;
}

static void one_round(struct session *session)
{
	struct monitor *monitor = session->monitor;
	struct pollfd *waits = session->waits;

	int ready = poll(waits, WAITS, poll_timeout(session));
	if (session->alive_note_ns != 0 && clock_monotonic_ns() >= session->alive_note_ns)
		note_who_is_alive(session);
	if (ready <= 0)
		return;
	if (waits[WAIT_CONNECTOR].revents || waits[WAIT_EXITS].revents) {
		pthread_mutex_lock(&monitor->lock);
		births_drain(monitor);
		births_exits(monitor);
		pthread_mutex_unlock(&monitor->lock);
	}
	if (waits[WAIT_KEEPER].revents)
		on_keeper(session);
	if (waits[WAIT_WAKE].revents)
		on_wake(session);
	if (waits[WAIT_SCRIBE].revents && !session->ended) {
		atomic_store(&monitor->scribe_alive, false);
		end_tree(session, "the scribe ended early");
		session->ended = true;
	}
	if (waits[WAIT_GUARDIAN].revents && !session->ended)
		on_guardian(session);
	if (waits[WAIT_LISTENER].revents & (POLLHUP | POLLERR)) {
		session->ended = true;
	}
}

/*
 * The filter is released early in an exit: its listener hangs up while the last tasks are still on their way out. Their
 * ends are worth a moment, but a descendant that left the filter's sight may never come.
 */
static void await_ends(struct session *session)
{
	struct monitor *monitor = session->monitor;
	uint64_t limit = clock_monotonic_ns() + ENDS_WAIT_NS;

	for (;;) {
		if (session->waits[WAIT_KEEPER].fd >= 0)
			on_keeper(session);
		pthread_mutex_lock(&monitor->lock);
		births_drain(monitor);
		births_exits(monitor);
		bool none = monitor->processes.count == 0;
		pthread_mutex_unlock(&monitor->lock);
		if ((none && session->agent_ended) || clock_monotonic_ns() > limit)
			return;
		struct pollfd waits[] = {session->waits[WAIT_KEEPER], session->waits[WAIT_CONNECTOR],
					 session->waits[WAIT_EXITS]};
		(void)poll(waits, 3, 20);
	}
}

/* Nobody is left: say how the last ones ended as far as it is known, and close the run. */
static void close_run(struct session *session)
{
	struct monitor *monitor = session->monitor;

	atomic_store(&monitor->stopping, true);
	await_ends(session);
	pthread_mutex_lock(&monitor->lock);
	for (size_t i = 0; i < PROCESS_BUCKETS; i++)
		while (monitor->processes.buckets[i])
			births_end(monitor, monitor->processes.buckets[i], -1, clock_monotonic_ns());
	monitor->counted.tree_was_ended = session->tree_was_ended;
	if (monitor->io_uring_used && !session->why)
		session->why = "io_uring was allowed and used: its effects were not seen";
	record_run_finish(monitor, session->why == NULL, session->why);
	pthread_mutex_unlock(&monitor->lock);
	ring_finish(monitor->config->ring);
	tell(session, MESSAGE_tree_ended, session->tree_was_ended, bytes_of(session->why));
}

static bool begin(struct session *session, struct err *err)
{
	struct monitor *monitor = session->monitor;

	if (!prepare(monitor, monitor->config, err) || !start_command(monitor->config, &session->starting, err))
		return false;
	/* Out of the shell's session only now: the command was forked into it. No key and no hang-up reaches us there. */
	(void)setsid();
	monitor->protection.keeper = session->starting.keeper;
	leave_inherited(monitor->config, session);
	monitor->notify.listener = session->starting.listener;
	if (!prepare_waiting(session, err))
		return false;
	adopt_agent(session);
	return workers_start(monitor, err) && start_release(&session->starting, err) && await_program(session, err);
}

int monitor_main(const struct monitor_config *config)
{
	struct monitor *monitor = calloc(1, sizeof(*monitor));
	struct session session = {.monitor = monitor, .scribe = -1};
	struct err err = {0};

	prctl(PR_SET_NAME, "assure-monitor");
	if (!monitor)
		return 125;
	monitor->connector = -1;
	monitor->agent_status = -1;
	monitor->config = config;
	if (!begin(&session, &err)) {
		tell_start_failed(config, &err, err.exit_status ? err.exit_status : 125);
		if (session.starting.keeper > 0)
			(void)tree_kill(session.starting.keeper, NULL, 0);
		ring_finish(config->ring);
		return 125;
	}
	tell(&session, MESSAGE_agent_started, (uint64_t)monitor->agent, BYTES_NONE);
	while (!session.ended)
		one_round(&session);
	close_run(&session);
	return 0;
}
