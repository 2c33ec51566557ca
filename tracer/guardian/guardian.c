#include "guardian/guardian.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/message.h"
#include "guardian_state.h"
#include "os/procfs.h"
#include "os/tree.h"
#include "terminal.h"

enum {
	SCRIBE_START_MS = 10000,
	SCRIBE_CLOSE_MS = 120000,
	REAP_MS = 1000,
};

static void set_reason(struct guardian *guardian, const char *reason)
{
	if (guardian->outcome->reason[0] == 0)
		snprintf(guardian->outcome->reason, sizeof(guardian->outcome->reason), "%.255s", reason);
}

/* Orphans of the monitor come to us. Until none is left: what was forked meanwhile is found the next time. */
static void end_tree(struct guardian *guardian)
{
	pid_t spared[] = {guardian->scribe, guardian->canary.pid};

	tree_end(spared, 2);
	guardian->tree_ended = true;
}

static void send_to_monitor(struct guardian *guardian, enum message_type type, uint64_t first, uint64_t second)
{
	struct message message = {.type = type, .fields = {{.number = first}, {.number = second}}};

	if (!guardian->monitor_gone)
		(void)message_send(guardian->monitor_socket, &message, NULL);
}

/* Nobody waits for the tree any more, and it had ended already: then the monitor has nothing to say, and goes. */
static bool monitor_is_done(const struct guardian *guardian)
{
	int status = 0;

	for (int tries = 0; guardian->outcome->detached && tries < REAP_MS / 2; tries++) {
		if (waitpid(guardian->monitor, &status, WNOHANG) == guardian->monitor)
			return WIFEXITED(status) && WEXITSTATUS(status) == 0;
		(void)poll(NULL, 0, 2);
	}
	return false;
}

static void on_monitor_death(struct guardian *guardian)
{
	guardian->monitor_gone = true;
	if (guardian->tree_ended)
		return;
	if (monitor_is_done(guardian)) {
		guardian->tree_ended = true;
		return;
	}
	int status = 0;
	char line[64] = "the monitor ended early";
	/* A signal says whether it was killed or crashed: worth knowing to whoever reports it. */
	if (waitpid(guardian->monitor, &status, WNOHANG) == guardian->monitor && WIFSIGNALED(status))
		snprintf(line, sizeof(line), "the monitor ended early (SIG%s)", sigabbrev_np(WTERMSIG(status)));
	set_reason(guardian, line);
	guardian->outcome->helper_died = true;
	end_tree(guardian);
}

static void notice(struct guardian *guardian, const char *line)
{
	if (guardian->config->notice)
		guardian->config->notice(guardian->config->context, line);
}

/* Was it the monitor that ended the agent, for want of somebody who writes down what it does? */
static void note_scribe(struct guardian *guardian)
{
	if (!guardian->scribe_gone && waitpid(guardian->scribe, NULL, WNOHANG) != guardian->scribe)
		return;
	guardian->scribe_gone = true;
	guardian->outcome->helper_died = true;
	set_reason(guardian, "the scribe ended early");
}

/* 0 when it is gone. */
static char agent_state(const struct guardian *guardian)
{
	struct task_status status;
	int task CLEANUP_FD = procfs_task(guardian->agent);

	return task >= 0 && procfs_status(task, 0, &status) ? status.state : 0;
}

static void on_monitor_message(struct guardian *guardian)
{
	struct message *message = &guardian->message;
	struct err err = {0};
	char line[600];

	if (!message_receive(guardian->monitor_socket, message, MESSAGE_ROLE_monitor, &err)) {
		if (err.number != EAGAIN)
			on_monitor_death(guardian);
		return;
	}
	switch (message->type) {
	case MESSAGE_agent_stopped:
		/* Unless it was continued meanwhile: nobody would wake us a second time. */
		if (!strchr("RSD", agent_state(guardian)))
			terminal_stop_like((int)message->fields[0].number);
		break;
	case MESSAGE_agent_exited:
		guardian->agent_ended = true;
		guardian->outcome->wait_status = (int)(uint32_t)message->fields[0].number;
		note_scribe(guardian);
		break;
	case MESSAGE_tree_alive:
		snprintf(line, sizeof(line), "%llu of its processes still run: %.*s; %s",
			 (unsigned long long)message->fields[0].number, (int)message->fields[1].bytes.size,
			 message->fields[1].bytes.data,
			 guardian->outcome->detached ? "they stay watched, and the run is closed when they end"
						     : "waiting for them, Ctrl-C ends them");
		notice(guardian, line);
		break;
	case MESSAGE_tree_ended:
		guardian->tree_ended = true;
		/* Nothing may pass for a status that is none. */
		if (!guardian->agent_ended) {
			set_reason(guardian, "the end of the command was not seen");
			guardian->outcome->helper_died = true;
		}
		if (message->fields[1].bytes.size > 0) {
			snprintf(line, sizeof(line), "%.*s", (int)message->fields[1].bytes.size,
				 message->fields[1].bytes.data);
			set_reason(guardian, line);
		}
		break;
	case MESSAGE_monitor_failed:
		snprintf(line, sizeof(line), "%.*s", (int)message->fields[1].bytes.size, message->fields[1].bytes.data);
		set_reason(guardian, line);
		guardian->outcome->helper_died = true;
		break;
	default:
		break;
	}
}

static void on_signal(struct guardian *guardian, const struct signalfd_siginfo *info)
{
	int signal = (int)info->ssi_signo;

	if (signal == SIGCHLD)
		return;
	if (guardian->agent_ended) {
		/* Only our waiting is left to be ended. */
		if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT)
			send_to_monitor(guardian, MESSAGE_stop_waiting, 0, 0);
		return;
	}
	/* What the terminal sends reaches the whole job by itself, the agent included. */
	if (info->ssi_code == SI_KERNEL)
		return;
	/* Stopped by a signal that was meant for the agent alone? Then the shell's continue has to reach it as well. */
	if (signal == SIGCONT && agent_state(guardian) != 'T')
		return;
	/* Sent to the whole job, it has reached the agent as well, unless the agent left the job. */
	if (canary_heard(&guardian->canary, signal, (pid_t)info->ssi_pid))
		return;
	send_to_monitor(guardian, MESSAGE_signal_agent, (uint64_t)signal, info->ssi_pid);
}

static void on_signals(struct guardian *guardian)
{
	struct signalfd_siginfo info[8];
	ssize_t size;

	while ((size = read(guardian->signals, info, sizeof(info))) > 0)
		for (size_t i = 0; i < (size_t)size / sizeof(info[0]); i++)
			on_signal(guardian, &info[i]);
	/* Who ended? Orphans of a dead monitor are nobody's concern but ours. */
	for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) > 0;) {
		if (pid == guardian->scribe)
			guardian->scribe_gone = true;
		if (pid == guardian->monitor && !guardian->monitor_gone && !guardian->tree_ended) {
			/* Its last messages may still be unread. */
			while (!guardian->monitor_gone && !guardian->tree_ended)
				on_monitor_message(guardian);
		}
	}
}

static bool is_over(const struct guardian *guardian)
{
	if (guardian->tree_ended)
		return true;
	/* A tree that is being ended is worth the moment it takes: nothing of it may be left when we are gone. */
	return guardian->agent_ended && guardian->config->wait_main && !guardian->outcome->helper_died;
}

static void supervise(struct guardian *guardian)
{
	while (!is_over(guardian)) {
		struct pollfd waits[] = {
		    {guardian->monitor_gone ? -1 : guardian->monitor_socket, POLLIN, 0},
		    {guardian->signals, POLLIN, 0},
		};
		if (poll(waits, 2, -1) < 0 && errno != EINTR)
			break;
		if (waits[0].revents)
			on_monitor_message(guardian);
		if (waits[1].revents)
			on_signals(guardian);
	}
}

/* The shell gets its prompt back; monitor and scribe see the rest of the tree to its end. */
static void detach(struct guardian *guardian)
{
	struct message message = {.type = MESSAGE_detach};

	guardian->outcome->detached = true;
	send_to_monitor(guardian, MESSAGE_detach, 0, 0);
	struct pollfd answer = {guardian->monitor_socket, POLLIN, 0};
	if (poll(&answer, 1, SCRIBE_START_MS) > 0)
		on_monitor_message(guardian);
	(void)message_send(guardian->scribe_socket, &message, NULL);
	/* What is shown now should hold what was recorded until now. */
	struct pollfd wait = {guardian->scribe_socket, POLLIN, 0};
	(void)poll(&wait, 1, SCRIBE_START_MS);
}

/* Their work is done and told: who started them takes their end, so that nothing of ours is left to be reaped. */
static void reap_helpers(const struct guardian *guardian)
{
	const pid_t helpers[] = {guardian->scribe, guardian->monitor};

	for (size_t i = 0; i < 2; i++)
		if (helpers[i] > 0)
			(void)tree_reap(helpers[i], REAP_MS);
}

static void close_run(struct guardian *guardian, bool complete)
{
	struct message message = {.type = MESSAGE_close_run};
	struct guardian_outcome *outcome = guardian->outcome;

	message.fields[0].number = complete;
	message.fields[1].bytes = bytes_of(outcome->reason);
	(void)message_send(guardian->scribe_socket, &message, NULL);
	for (;;) {
		struct pollfd wait = {guardian->scribe_socket, POLLIN, 0};
		struct err err = {0};
		if (poll(&wait, 1, SCRIBE_CLOSE_MS) <= 0 ||
		    !message_receive(guardian->scribe_socket, &guardian->message, MESSAGE_ROLE_scribe, &err)) {
			set_reason(guardian, "the scribe ended early");
			outcome->helper_died = outcome->started;
			return;
		}
		if (guardian->message.type == MESSAGE_run_closed)
			break;
		struct bytes why = guardian->message.fields[1].bytes;
		char line[256];
		snprintf(line, sizeof(line), "records were lost: %.*s", (int)why.size, why.data);
		set_reason(guardian, line);
	}
	outcome->complete = complete && outcome->reason[0] == 0;
}

static void guardian_free(struct guardian *guardian)
{
	canary_end(&guardian->canary);
	/* Nothing is left to be protected, and whoever debugs us may want to look. */
	(void)prctl(PR_SET_DUMPABLE, 1);
	filter_free(&guardian->filter);
	if (guardian->ring)
		ring_free(guardian->ring);
	describe_free(&guardian->about);
	free(guardian);
}

bool guardian_run(const struct guardian_config *config, struct guardian_outcome *outcome, struct err *err)
{
	struct guardian *guardian = calloc(1, sizeof(*guardian));

	*outcome = (struct guardian_outcome){0};
	if (!guardian)
		return err_set(err, ENOMEM, "starting");
	guardian->config = config;
	guardian->outcome = outcome;
	guardian->signals = guardian->monitor_socket = guardian->scribe_socket = -1;
	guardian->canary = (struct canary){.pid = -1, .reports = -1};
	outcome->started = guardian_start(guardian, err);
	if (!outcome->started) {
		err_exit_status(err, err->exit_status ? err->exit_status : 125);
		set_reason(guardian, "the command was not started");
		if (guardian->scribe > 0 && guardian->scribe_socket >= 0)
			close_run(guardian, false);
		/* What never ran leaves nothing behind. */
		(void)run_remove(config->home, outcome->run, NULL);
		reap_helpers(guardian);
		guardian_free(guardian);
		return false;
	}
	supervise(guardian);
	if (!guardian->tree_ended)
		detach(guardian);
	else
		close_run(guardian, outcome->reason[0] == 0);
	if (!outcome->detached)
		reap_helpers(guardian);
	guardian_free(guardian);
	return true;
}
