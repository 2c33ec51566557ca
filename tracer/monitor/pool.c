/*
 * The workers: how many there are, and who receives.
 *
 * Any number of them may be in the middle of a stop (one may be stuck on a path that a process of the tree itself
 * serves), but there is always one that receives: whoever takes a stop as the last one brings another in first.
 */
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"
#include "worker.h"

enum {
	WORKER_STACK = 512 << 10,
	RECEIVERS = 2,
	FIRST_WORKERS = 4, /* made before the tree can use up what its user may have */
	PATIENCE_MS = 100,
	NAP_US = 50,
	RETRY_NS = 100000000, /* after a worker could not be made */
};

static bool start_one(struct monitor *monitor, struct err *err);

/* There can be no further worker (the user's limit of processes, say). Those that are merely busy come back soon. */
static bool await_receiver(struct monitor *monitor)
{
	static atomic_ullong exhausted_ns; /* when the wait was last in vain: then the others are stuck, not busy */

	for (int waited = 0; waited < PATIENCE_MS * 1000; waited += NAP_US) {
		if (atomic_load(&monitor->idle_workers) > 0)
			return true;
		if (clock_monotonic_ns() - atomic_load(&exhausted_ns) < RETRY_NS)
			break;
		const struct timespec nap = {.tv_nsec = NAP_US * 1000};
		(void)nanosleep(&nap, NULL);
	}
	atomic_store(&exhausted_ns, clock_monotonic_ns());
	return false;
}

/* Whoever took a stop as the last one that received sees to it that somebody else does. */
static bool ensure_receiver(struct monitor *monitor)
{
	if (atomic_fetch_sub(&monitor->idle_workers, 1) > 1)
		return true;
	int parked = atomic_load(&monitor->parked_workers);
	while (parked > 0 && !atomic_compare_exchange_weak(&monitor->parked_workers, &parked, parked - 1))
		;
	if (parked > 0) {
		atomic_fetch_add(&monitor->idle_workers, 1);
		sem_post(&monitor->unpark);
		return true;
	}
	return start_one(monitor, NULL) || await_receiver(monitor);
}

/*
 * All workers wait for something, and there can be no further one: the last that receives must not wait as well, or
 * whoever the others wait for would never be answered.
 */
static void let_pass(struct monitor *monitor, const struct stop *stop)
{
	const struct syscall_row *row = syscall_row_of(stop->arch, stop->number);
	bool refused = !row || row->handling == HANDLING_refuse;
	enum stop_answer answer = refused ? ANSWER_ERROR : ANSWER_CONTINUE;

	if (!refused)
		worker_note_passed(monitor, row);
	(void)monitor->backend.answer(monitor->backend.self, stop, answer, ENOSYS);
	pthread_mutex_lock(&monitor->lock);
	record_loss(monitor, GAP_no_worker, NULL, row ? row->name : NULL, 1,
		    "every worker was waiting, so this call was not looked at");
	pthread_mutex_unlock(&monitor->lock);
}

/*
 * Back to receiving, unless enough do: the kernel wakes receivers in turn, and each further one makes the loop wander
 * over one more stack and CPU. Only an atomic exchange of the count decides, so that the last one never parks.
 */
bool workers_rejoin(struct monitor *monitor)
{
	int idle = atomic_load(&monitor->idle_workers);

	while (idle < RECEIVERS)
		if (atomic_compare_exchange_weak(&monitor->idle_workers, &idle, idle + 1))
			return true;
	return false;
}

static void park(struct monitor *monitor)
{
	atomic_fetch_add(&monitor->parked_workers, 1);
	/* Who was the last receiver a moment ago may have found nobody parked: then a new worker was started instead. */
	while (sem_wait(&monitor->unpark) != 0)
		;
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct monitor *monitor = worker->monitor;
	struct err err = {0};

	prctl(PR_SET_NAME, "assure-worker");
	/* Calls that make files take the umask of whoever they are made for. */
	worker->may_perform = act_prepare_thread();
	while (!atomic_load(&monitor->stopping)) {
		struct stop stop;
		enum receive_state state = monitor->backend.receive(monitor->backend.self, &stop, &err);
		if (state == RECEIVE_FAILED) {
			pthread_mutex_lock(&monitor->lock);
			monitor_fail(monitor, err.text);
			pthread_mutex_unlock(&monitor->lock);
			break;
		}
		if (state == RECEIVE_ENDED)
			break;
		if (state != RECEIVE_STOP)
			continue;
		bool received = ensure_receiver(monitor);
		atomic_fetch_add(&monitor->busy_workers, 1);
		worker->rejoined = false;
		if (received)
			worker_handle(worker, &stop);
		else
			let_pass(monitor, &stop);
		atomic_fetch_sub(&monitor->busy_workers, 1);
		if (!worker->rejoined && !workers_rejoin(monitor))
			park(monitor);
	}
	return NULL;
}

static bool start_one(struct monitor *monitor, struct err *err)
{
	static atomic_int started;
	static atomic_ullong failed_ns;
	pthread_attr_t attributes;
	pthread_t thread;
	if (clock_monotonic_ns() - atomic_load(&failed_ns) < RETRY_NS)
		return err_set(err, EAGAIN, "starting a worker of the monitor");
	struct worker *worker = calloc(1, sizeof(*worker));

	if (!worker || atomic_load(&started) >= monitor->workers_limit || !decoder_init(&worker->decoder)) {
		free(worker);
		return err_set(err, ENOMEM, "starting a worker of the monitor");
	}
	atomic_fetch_add(&started, 1);
	worker->monitor = monitor;
	worker->decoder.for_acting = monitor->actor.results == RESULTS_perform;
	worker->spare.target = (struct target){.task = -1, .memory = -1, .root = -1};
	buf_init(&worker->body, 0);
	atomic_fetch_add(&monitor->idle_workers, 1);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, WORKER_STACK);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	int status = pthread_create(&thread, &attributes, work, worker);
	pthread_attr_destroy(&attributes);
	if (status == 0)
		return true;
	atomic_store(&failed_ns, clock_monotonic_ns());
	atomic_fetch_sub(&monitor->idle_workers, 1);
	atomic_fetch_sub(&started, 1);
	buf_free(&worker->body);
	decoder_free(&worker->decoder);
	free(worker);
	return err_set(err, status, "starting a worker of the monitor");
}

bool workers_start(struct monitor *monitor, struct err *err)
{
	/* One is enough to go on with; more are made as they are needed. */
	bool any = start_one(monitor, err);

	for (int i = 1; any && i < FIRST_WORKERS && i < monitor->workers_limit; i++)
		(void)start_one(monitor, NULL);
	return any;
}
