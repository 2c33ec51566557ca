/*
 * From a fresh process to a running command: our own setting, the command's process, its filter, its first record.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/probe.h"
#include "os/procfs.h"
#include "session.h"

/* Descriptors of ours besides the cached threads' three each. */
enum { OTHER_DESCRIPTORS = 40, WORKER_DESCRIPTORS = 4, WORKERS_LIMIT = 256, DESCRIPTORS_WANTED = 8192 };
/* For the texts of one record without their secrets. */
enum { CUT_SIZE = 1 << 20 };

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
	sem_init(&monitor->unpark, 0, 0);
	sem_init(&monitor->watch, 0, 0);
	atomic_store(&monitor->receivers, 1);
	buf_init(&monitor->scratch, 0);
	if (!arena_init(&monitor->cut, CUT_SIZE))
		return err_set(err, ENOMEM, "starting the monitor");
	monitor->config = config;
	performers_init(&monitor->performers);
	monitor->counted.wait_status = -1;
	atomic_store(&monitor->umask_era, 1);
	atomic_store(&monitor->scribe_alive, true);
	notify_backend(&monitor->notify, &monitor->backend);
	monitor->actor = (struct actor){
	    .backend = &monitor->backend,
	    .protection = &monitor->protection,
	    .io_uring_allowed = config->io_uring_allowed,
	    .keeps_privilege = procfs_has_capability(CAP_SYS_PTRACE),
	    .results = config->results,
	    .rights = &monitor->rights,
	    .performers = &monitor->performers,
	};
	int self CLEANUP_FD = openat(procfs_root(), "self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (self < 0 || !rights_read(self, &monitor->rights)) {
		/* Without knowing as whom we act we act for nobody. */
		if (monitor->actor.results == RESULTS_perform)
			monitor->actor.results = RESULTS_verify;
	}
	if (!own_context_read(&monitor->own))
		return err_set(err, errno, "looking at our own namespaces in /proc");
	monitor->protection = (struct protection){
	    .scoped = false,
	    .guardian = config->guardian,
	    .monitor = getpid(),
	    .scribe = config->scribe,
	    .guardian_group = config->guardian_group,
	    .state = bytes_of(config->state),
	    .pid_namespace = monitor->own.pid_namespace,
	    .performers = &monitor->performers,
	    .rights = &monitor->rights,
	};
	struct ring_identity ring = ring_identity(config->ring);
	monitor->protection.ring_device = ring.device;
	monitor->protection.ring_ino = ring.ino;
	struct statx state;
	if (statx(AT_FDCWD, config->state, 0, STATX_INO | STATX_MNT_ID, &state) != 0)
		return err_set(err, errno, "looking at the state folder %s", config->state);
	monitor->protection.state_device = makedev(state.stx_dev_major, state.stx_dev_minor);
	monitor->protection.state_ino = state.stx_ino;
	monitor->protection.state_mount = state.stx_mnt_id;
	/* Orphans of the tree come to us, so that we stay an ancestor of all that we look at (Yama). */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
		return err_set(err, errno, "becoming the reaper of the tree");
	struct err births = {0};
	monitor->connector = connector_open(&births);
	if (monitor->connector < 0)
		snprintf(monitor->births, sizeof(monitor->births), "%.250s", births.text);
	monitor->exits = -1;
	return true;
}

static bool prepare_waiting(struct session *session, struct err *err)
{
	struct monitor *monitor = session->monitor;
	const struct monitor_config *config = monitor->config;

	size_t descriptors = raise_descriptor_limit();
	/* A quarter for what workers open while they wait, the rest for the cache. */
	size_t workers = (descriptors - OTHER_DESCRIPTORS) / 4 / WORKER_DESCRIPTORS;
	monitor->workers_limit = workers > WORKERS_LIMIT ? WORKERS_LIMIT : workers < 2 ? 2 : (int)workers;
	threads_init(&monitor->threads, (descriptors - OTHER_DESCRIPTORS) / 4 * 3 / 3);
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

static void describe_births(struct monitor *monitor)
{
	struct record_run_start *start = monitor->config->run_start;
	bool exact = monitor->connector >= 0;

	start->births = exact ? BYTES("connector") : BYTES("marks");
	if (!start->connector || exact)
		return;
	start->connector->state = bytes_of(probe_state_name(PROBE_MISSING));
	start->connector->detail = bytes_of(monitor->births);
	start->connector->follows = bytes_of(probe_rows[PROBE_connector].follows);
}

/* The command as the first process of the tree. */
static void adopt_agent(struct session *session)
{
	struct monitor *monitor = session->monitor;
	struct task_status status;
	int task CLEANUP_FD = procfs_task(session->starting.pid);

	pthread_mutex_lock(&monitor->lock);
	monitor->agent = session->starting.pid;
	describe_births(monitor);
	monitor->config->run_start->no_new_privs = session->starting.no_new_privs;
	record_run_begin(monitor);
	struct process *process = processes_add(&monitor->processes, session->starting.pid);
	if (process && task >= 0 && procfs_status(task, 0, &status)) {
		process->lineage = LINEAGE_root;
		process->parent_pid = status.ppid;
		process->session = status.session;
		process->group = status.group;
		process->start_ticks = status.start_ticks;
		process->seen = true;
		namespaces_read(task, false, &process->namespaces);
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

bool session_begin(struct session *session, struct err *err)
{
	struct monitor *monitor = session->monitor;

	if (!prepare(monitor, monitor->config, err) || !start_command(monitor->config, &session->starting, err))
		return false;
	/* As the keeper: nobody of the same user may look into us. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	/* Out of the shell's session only now: the command was forked into it. No key and no hang-up reaches us there. */
	(void)setsid();
	monitor->protection.keeper = session->starting.keeper;
	leave_inherited(monitor->config, session);
	procfs_settle();
	monitor->notify.listener = session->starting.listener;
	notify_prepare(&monitor->notify);
	if (!prepare_waiting(session, err))
		return false;
	adopt_agent(session);
	return workers_start(monitor, err) && start_release(&session->starting, err) && await_program(session, err);
}
