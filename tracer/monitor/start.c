/*
 * From a fork to a running command that carries the filter, with its listener in our hands alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/message.h"
#include "keeper.h"
#include "state.h"

/* What the child tells before the command begins: the number of its listener, or why there is none. */
struct installed {
	int listener;
	int error;
	bool no_new_privs;
	char text[256], hint[256];
};

/* Between fork and exec of a process without threads; still, it only does what a signal handler may, or nearly. */
static void tell(int fd, const void *data, size_t size)
{
	(void)fd_write_full(fd, data, size);
}

static void run_command(const struct monitor_config *config, int outcome)
{
	execve(config->program, config->argv, config->environment);
	int error = errno;
	if (error == ENOEXEC) {
		/* A script without #!: as execvp(3) and every shell do. */
		size_t count = 0;
		while (config->argv[count])
			count++;
		char **argv = calloc(count + 2, sizeof(*argv));
		if (argv) {
			argv[0] = (char *)(uintptr_t) "/bin/sh";
			argv[1] = (char *)(uintptr_t)config->program;
			for (size_t i = 1; i < count; i++)
				argv[i + 1] = config->argv[i];
			execve("/bin/sh", argv, config->environment);
		}
	}
	tell(outcome, &error, sizeof(error));
	_exit(error == ENOENT ? 127 : 126);
}

static void child(const struct monitor_config *config, int ready, int begin, int outcome)
{
	struct installed installed = {.listener = -1};
	struct err err = {0};
	char go;

	/* Whoever is left when the monitor dies before the command began must not run it unseen. */
	installed.listener = filter_install(config->filter, &installed.no_new_privs, &err);
	if (installed.listener < 0) {
		installed.error = err.number ? err.number : EPERM;
		memcpy(installed.text, err.text, sizeof(installed.text) - 1);
		memcpy(installed.hint, err.hint, sizeof(installed.hint) - 1);
	}
	/* write(2) and read(2) are never in the filter; what is, would wait for a monitor that is not there yet. */
	tell(ready, &installed, sizeof(installed));
	if (installed.listener < 0 || read(begin, &go, 1) != 1)
		_exit(125);
	/* A copy of the listener that outlives the monitor would hang the tree instead of failing its calls. */
	close(installed.listener);
	sigaction(SIGCHLD, config->original_child_action, NULL);
	sigprocmask(SIG_SETMASK, config->original_mask, NULL);
	run_command(config, outcome);
}

static bool take_listener(struct starting *starting, int ready, struct err *err)
{
	struct installed installed;
	ssize_t size = fd_read_full(ready, &installed, sizeof(installed));

	if (size != (ssize_t)sizeof(installed))
		return err_set(err, 0, "the command's process ended before its filter was in place");
	if (installed.error) {
		installed.text[sizeof(installed.text) - 1] = 0;
		installed.hint[sizeof(installed.hint) - 1] = 0;
		err_set(err, 0, "%s", installed.text);
		return installed.hint[0] ? err_hint(err, "%s", installed.hint) : false;
	}
	int pidfd CLEANUP_FD = pidfd_open(starting->pid, 0);
	if (pidfd < 0)
		return err_set(err, errno, "opening the command's process");
	/* Not by SCM_RIGHTS: the filter stops the very sendmsg that would hand it over. */
	starting->listener = pidfd_getfd(pidfd, installed.listener, 0);
	if (starting->listener < 0) {
		err_set(err, errno, "taking the listener from the command's process");
		return err_hint(err,
				"ptrace may be forbidden here (Yama, or a container profile); see `assure doctor`");
	}
	starting->no_new_privs = installed.no_new_privs;
	return true;
}

static void close_pair(int pair[2])
{
	fd_close(&pair[0]);
	fd_close(&pair[1]);
}

/* Between us and the command: see keeper.h. */
static pid_t fork_keeper(const struct monitor_config *config, int ready[2], int begin[2], int outcome[2],
			 int reports[2])
{
	pid_t monitor = getpid();
	pid_t keeper = fork();

	if (keeper != 0)
		return keeper;
	pid_t command = fork();
	if (command == 0) {
		close(ready[0]);
		close(begin[1]);
		close(outcome[0]);
		close_pair(reports);
		child(config, ready[1], begin[0], outcome[1]);
		_exit(125);
	}
	close_pair(ready);
	close_pair(begin);
	close_pair(outcome);
	keeper_main(reports[1], command, monitor);
}

static bool await_child(struct starting *starting, struct err *err)
{
	struct message *message = malloc(sizeof(*message));
	bool got = message && message_receive(starting->reports, message, MESSAGE_ROLE_keeper, err) &&
		   message->type == MESSAGE_child_begun;

	starting->pid = got ? (pid_t)message->fields[0].number : 0;
	free(message);
	return starting->pid > 0 || err_set(err, EAGAIN, "starting a process for the command");
}

bool start_command(const struct monitor_config *config, struct starting *starting, struct err *err)
{
	int ready[2], begin[2], outcome[2], reports[2];

	*starting =
	    (struct starting){.pid = -1, .keeper = -1, .release = -1, .outcome = -1, .listener = -1, .reports = -1};
	if (pipe2(ready, O_CLOEXEC) != 0 || pipe2(begin, O_CLOEXEC) != 0 || pipe2(outcome, O_CLOEXEC) != 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, reports) != 0)
		return err_set(err, errno, "making pipes to the command");
	starting->keeper = fork_keeper(config, ready, begin, outcome, reports);
	int number = errno;
	close(ready[1]);
	close(begin[0]);
	close(outcome[1]);
	close(reports[1]);
	starting->release = begin[1];
	starting->outcome = outcome[0];
	starting->reports = reports[0];
	int in CLEANUP_FD = ready[0];
	if (starting->keeper < 0)
		return err_set(err, number, "starting a process for the command");
	return await_child(starting, err) && take_listener(starting, in, err);
}

bool start_release(struct starting *starting, struct err *err)
{
	bool done = fd_write_full(starting->release, "g", 1);

	fd_close(&starting->release);
	return done || err_set(err, errno, "letting the command begin");
}
