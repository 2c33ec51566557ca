#include "monitor/monitor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/message.h"
#include "os/procfs.h"
#include "os/tree.h"
#include "session.h"

enum { ENDS_WAIT_NS = 500000000, KEEPER_MS = 200, ALIVE_NOTE_NS = 2000000000 };

static void tell(struct session *session, enum message_type type, uint64_t number, struct bytes text)
{
	struct message message = {.type = type, .fields = {{.number = number}, {.bytes = text}}};

	/* A guardian that is gone is noticed by its socket. */
	if (!session->detached)
		(void)message_send(session->monitor->config->guardian_socket, &message, NULL);
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
	if (!session->ended && !session->agent_ended) {
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

	/*
	 * Births come one by one, and whoever needs to know them sooner asks for himself: to be woken for each one would
	 * take the processor from those who wait for an answer.
	 */
	enum { REST_MS = 5 };
	int timeout = poll_timeout(session);
	waits[WAIT_CONNECTOR].fd = session->births_rest ? -1 : monitor->connector;
	waits[WAIT_CONNECTOR].revents = 0;
	if (session->births_rest && (timeout < 0 || timeout > REST_MS))
		timeout = REST_MS;
	int ready = poll(waits, WAITS, timeout);
	session->births_rest = false;
	if (session->alive_note_ns != 0 && clock_monotonic_ns() >= session->alive_note_ns)
		note_who_is_alive(session);
	if (ready <= 0)
		return;
	if (waits[WAIT_CONNECTOR].revents || waits[WAIT_EXITS].revents) {
		pthread_mutex_lock(&monitor->lock);
		births_drain(monitor);
		births_exits(monitor);
		pthread_mutex_unlock(&monitor->lock);
		session->births_rest = true;
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
 * The filter is released early in an exit: its listener hangs up while the last tasks are still on their way out. That of
 * the command is waited for, however long giving back its memory takes, because its status is ours. The ends of others are
 * worth a moment, but a descendant that left the filter's sight may never come.
 */
static void await_ends(struct session *session)
{
	struct monitor *monitor = session->monitor;
	uint64_t limit = clock_monotonic_ns() + ENDS_WAIT_NS;

	for (;;) {
		bool comes = !session->agent_ended && session->waits[WAIT_KEEPER].fd >= 0;
		if (session->waits[WAIT_KEEPER].fd >= 0)
			on_keeper(session);
		if (comes)
			limit = clock_monotonic_ns() + ENDS_WAIT_NS;
		pthread_mutex_lock(&monitor->lock);
		births_drain(monitor);
		births_exits(monitor);
		/* A call may have ended its own caller: its record is still on the way. */
		bool none = monitor->processes.count == 0 && atomic_load(&monitor->busy_workers) == 0;
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
	performers_stop(&monitor->performers);
	/* Its processor time, which is the tree's, becomes ours, and with us the guardian's. */
	(void)tree_reap(session->starting.keeper, KEEPER_MS);
	tell(session, MESSAGE_tree_ended, session->tree_was_ended, bytes_of(session->why));
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
	if (!session_begin(&session, &err)) {
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
