/*
 * From nothing to a running command: the scribe, the monitor, our own signals and descriptors.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/message.h"
#include "descriptors.h"
#include "guardian_state.h"
#include "monitor/monitor.h"
#include "os/notify.h"
#include "os/probe.h"
#include "os/procfs.h"
#include "scribe/scribe.h"

enum { RING_SIZE = 8 << 20, SCRIBE_OPEN_MS = 10000 };

static bool prepare(struct guardian *guardian, struct err *err)
{
	const struct guardian_config *config = guardian->config;

	if (!procfs_open(err) || !probe_required(err) ||
	    !guardian_find_command(config->argv[0], guardian->program, sizeof(guardian->program), err))
		return false;
	if (!notify_check_sizes(err) || !store_new_run_id(guardian->outcome->run, err) ||
	    !describe_run(config, guardian->outcome->run, &guardian->about, err))
		return false;
	guardian->ring = ring_create(RING_SIZE, err);
	return guardian->ring != NULL;
}

static bool make_sockets(int pair[2], struct err *err)
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0 ||
	       err_set(err, errno, "making sockets for our own processes");
}

static bool start_scribe(struct guardian *guardian, struct err *err)
{
	int pair[2];

	if (!make_sockets(pair, err))
		return false;
	if (pipe2(guardian->lifeline, O_CLOEXEC) != 0)
		return err_set(err, errno, "making a pipe for our own processes");
	guardian->scribe = fork();
	if (guardian->scribe == 0) {
		struct scribe_config config = {
		    .home = guardian->config->home,
		    .run = guardian->outcome->run,
		    .name = guardian->config->name,
		    .passphrase = guardian->config->passphrase,
		    .ring = guardian->ring,
		    .lifeline = guardian->lifeline[0],
		    .guardian_socket = pair[1],
		};
		int keep[] = {pair[1], guardian->lifeline[0]};
		fd_close_from(3, keep, 2);
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);
		for (int fd = 0; fd <= 2 && null >= 0; fd++)
			(void)dup2(null, fd);
		_exit(scribe_main(&config));
	}
	/* Nobody else has a use for it: the monitor is a child of ours, too. */
	passphrase_wipe(guardian->config->passphrase);
	close(pair[1]);
	guardian->scribe_socket = pair[0];
	return guardian->scribe > 0 || err_set(err, errno, "starting the scribe");
}

static bool await_scribe(struct guardian *guardian, struct err *err)
{
	struct pollfd wait = {guardian->scribe_socket, POLLIN, 0};

	if (poll(&wait, 1, SCRIBE_OPEN_MS) <= 0)
		return err_set(err, ETIMEDOUT, "waiting for the scribe to open the run");
	struct err receive = {0};
	if (!message_receive(guardian->scribe_socket, &guardian->message, MESSAGE_ROLE_scribe, &receive))
		return err_set(err, 0, "the scribe ended before the run was open");
	if (guardian->message.type == MESSAGE_store_ready) {
		describe_keys(&guardian->about, guardian->message.fields[0].bytes, guardian->message.fields[1].bytes,
			      guardian->message.fields[2].bytes);
		return true;
	}
	struct bytes why = guardian->message.fields[1].bytes;
	err_set(err, 0, "%.*s", (int)why.size, why.data);
	return false;
}

static bool start_monitor(struct guardian *guardian, struct err *err)
{
	int pair[2];
	const struct guardian_config *from = guardian->config;

	if (!make_sockets(pair, err))
		return false;
	pid_t self = getpid();
	guardian->monitor = fork();
	if (guardian->monitor == 0) {
		struct monitor_config config = {
		    .program = guardian->program,
		    .argv = from->argv,
		    .environment = environ,
		    .filter = &guardian->filter,
		    .lens = from->lens,
		    .results = from->results,
		    .hash_images = from->hash_images,
		    .io_uring_allowed = from->io_uring_allowed,
		    .redactor = from->redactor,
		    .ring = guardian->ring,
		    .guardian_socket = pair[1],
		    .guardian = self,
		    .scribe = guardian->scribe,
		    .guardian_group = getpgrp(),
		    .state = from->home,
		    .lifeline = guardian->lifeline[1],
		    .original_mask = &guardian->original_mask,
		    .original_child_action = &guardian->original_child_action,
		    .start_mono_ns = guardian->about.start_mono_ns,
		    .class = guardian->about.start.stamp.class,
		    .run_start = &guardian->about.start,
		};
		close(guardian->scribe_socket);
		close(pair[0]);
		_exit(monitor_main(&config));
	}
	close(pair[1]);
	guardian->monitor_socket = pair[0];
	return guardian->monitor > 0 || err_set(err, errno, "starting the monitor");
}

static bool await_start(struct guardian *guardian, struct err *err)
{
	struct err receive = {0};

	if (!message_receive(guardian->monitor_socket, &guardian->message, MESSAGE_ROLE_monitor, &receive))
		return err_set(err, 0, "the monitor ended before the command began");
	const union message_field *fields = guardian->message.fields;
	if (guardian->message.type == MESSAGE_agent_started) {
		guardian->agent = (pid_t)fields[0].number;
		return true;
	}
	if (guardian->message.type != MESSAGE_start_failed)
		return err_set(err, 0, "the monitor said %s before the command began",
			       message_name(guardian->message.type));
	err_exit_status(err, (int)fields[1].number);
	err_set(err, 0, "%.*s", (int)fields[2].bytes.size, fields[2].bytes.data);
	return fields[3].bytes.size ? err_hint(err, "%.*s", (int)fields[3].bytes.size, fields[3].bytes.data) : false;
}

/* From here on a signal is something to read: none may fall between two of our steps. */
static bool hold_signals(struct guardian *guardian, struct err *err)
{
	sigset_t all;

	sigfillset(&all);
	if (sigprocmask(SIG_BLOCK, &all, &guardian->original_mask) != 0)
		return err_set(err, errno, "holding signals back");
	/* Whoever started us may have asked not to hear of children: the command inherits that, we must not. */
	struct sigaction plain = {.sa_handler = SIG_DFL};
	(void)sigaction(SIGCHLD, &plain, &guardian->original_child_action);
	guardian->signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	return guardian->signals >= 0 || err_set(err, errno, "holding signals back");
}

/* Keep the place where our own lines go; everything else of the command is to be closed when the command closes it. */
static void leave_inherited(const struct guardian *guardian)
{
	int keep[] = {guardian->signals, guardian->monitor_socket, guardian->scribe_socket, procfs_root(),
		      guardian->canary.reports};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd <= 1 && null >= 0; fd++)
		(void)dup2(null, fd);
	fd_close_from(3, keep, sizeof(keep) / sizeof(keep[0]));
}

/* Meanwhile a child tries what the host gives: some of it can end whoever asks for it. */
static bool build_and_try(struct guardian *guardian, struct err *err)
{
	struct probe_result results[PROBE_COUNT];
	struct probe_trial trial;

	probe_trial_begin(&trial);
	bool built = filter_build(&guardian->filter, guardian->config->lens, err);
	probe_trial_end(&trial, results);
	describe_host(&guardian->about, results);
	return built;
}

bool guardian_start(struct guardian *guardian, struct err *err)
{
	bool closed[3];

	descriptors_hold_standard(closed);
	if (!prepare(guardian, err) || !hold_signals(guardian, err))
		return false;
	/* When the monitor dies its orphans have to come to somebody who ends them. */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	(void)prctl(PR_SET_NAME, "assure-guardian");
	/* To build the filter takes about as long as the scribe takes to open the run. */
	if (!start_scribe(guardian, err) || !build_and_try(guardian, err) || !await_scribe(guardian, err) ||
	    !start_monitor(guardian, err))
		return false;
	canary_start(&guardian->canary);
	/* Everything that has to be dumpable was forked by now. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	leave_inherited(guardian);
	return await_start(guardian, err);
}
