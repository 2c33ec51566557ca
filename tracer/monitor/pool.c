/*
 * The workers: how many there are, and who receives.
 *
 * One receives and handles a stop, and receives again: each further receiver would be woken for each stop, and make the
 * work wander over one more stack and CPU. But any worker may be stuck, on a path that a process of the tree itself
 * serves, say, whose calls have to be answered meanwhile. So a watch looks at them, for as long as there is anything to
 * do: when nobody receives and nothing moves, it brings another in; when stops always wait, it lets more receive.
 */
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "worker.h"

enum {
	WORKER_STACK = 512 << 10,
	FIRST_WORKERS = 4,   /* made before the tree can use up what its user may have */
	TICK_NS = 5000000,   /* between two looks of the watch */
	QUIET_TICKS = 3,     /* without any stop, and it sleeps: its ticks would cost more than to wake it again */
	FLOOD_TICKS = 3,     /* with stops that wait, and one more may receive */
	EBB_TICKS = 100,     /* without, and one less may */
	PATIENCE_TICKS = 20, /* with workers who are all busy, before they count as stuck */
	PASSED_AT_ONCE = 64,
	RETRY_NS = 100000000, /* after a worker could not be made */
};

static bool start_one(struct monitor *monitor, struct err *err);

/* One more that receives. */
static bool bring_receiver(struct monitor *monitor)
{
	int parked = atomic_load(&monitor->parked_workers);

	while (parked > 0 && !atomic_compare_exchange_weak(&monitor->parked_workers, &parked, parked - 1))
		;
	if (parked == 0)
		return start_one(monitor, NULL);
	atomic_fetch_add(&monitor->idle_workers, 1);
	sem_post(&monitor->unpark);
	return true;
}

void workers_hand_over(struct monitor *monitor)
{
	if (atomic_load(&monitor->idle_workers) == 0)
		(void)bring_receiver(monitor);
}

/*
 * All workers wait for something, and there can be no further one (the user's limit of processes, say): whoever the
 * others wait for must be answered all the same, so its call passes without a look.
 */
static void let_pass(struct monitor *monitor)
{
	struct stop stop;

	if (!monitor->backend.pending(monitor->backend.self) ||
	    monitor->backend.receive(monitor->backend.self, &stop, NULL) != RECEIVE_STOP)
		return;
	const struct syscall_row *row = syscall_row_of(stop.arch, stop.number);
	bool refused = !row || row->handling == HANDLING_refuse;
	enum stop_answer answer = refused ? ANSWER_ERROR : ANSWER_CONTINUE;

	if (!refused)
		worker_note_passed(monitor, row);
	(void)monitor->backend.answer(monitor->backend.self, &stop, answer, ENOSYS);
	pthread_mutex_lock(&monitor->lock);
	record_loss(monitor, GAP_no_worker, NULL, row ? row->name : NULL, 1,
		    "every worker was waiting, so this call was not looked at");
	pthread_mutex_unlock(&monitor->lock);
}

/* What the watch saw when it last looked. */
struct sight {
	unsigned taken;
	unsigned stuck, quiet, floods, ebbs; /* ticks in a row, but for a flood's: each without takes one off */
};

/* More receivers than this only get into each other's way. */
static int receivers_limit(void)
{
	enum { CPUS_EACH = 2, MOST = 16 };
	long cpus = sysconf(_SC_NPROCESSORS_ONLN) / CPUS_EACH;

	return cpus < 1 ? 1 : cpus > MOST ? MOST : (int)cpus;
}

static void adapt_receivers(struct monitor *monitor, struct sight *sight)
{
	if (monitor->backend.pending(monitor->backend.self)) {
		sight->ebbs = 0;
		if (++sight->floods < FLOOD_TICKS)
			return;
		sight->floods = 0;
		if (atomic_load(&monitor->receivers) < receivers_limit()) {
			atomic_fetch_add(&monitor->receivers, 1);
			(void)bring_receiver(monitor);
		}
	} else {
		sight->floods -= sight->floods > 0;
		if (++sight->ebbs < EBB_TICKS)
			return;
		sight->ebbs = 0;
		if (atomic_load(&monitor->receivers) > 1)
			atomic_fetch_sub(&monitor->receivers, 1);
	}
}

static void look(struct monitor *monitor, struct sight *sight)
{
	unsigned taken = atomic_load(&monitor->taken);
	bool moved = taken != sight->taken;
	bool received = atomic_load(&monitor->idle_workers) > 0;

	sight->taken = taken;
	sight->quiet = moved || !received ? 0 : sight->quiet + 1;
	sight->stuck = moved || received ? 0 : sight->stuck + 1;
	if (moved)
		adapt_receivers(monitor, sight);
	else if (!received && !bring_receiver(monitor) && sight->stuck > PATIENCE_TICKS)
		for (int i = 0; i < PASSED_AT_ONCE && atomic_load(&monitor->idle_workers) == 0; i++)
			let_pass(monitor);
}

static void *watch(void *argument)
{
	const struct timespec tick = {.tv_nsec = TICK_NS};
	struct monitor *monitor = argument;
	struct sight sight = {0};

	prctl(PR_SET_NAME, "assure-watch");
	while (!atomic_load(&monitor->stopping)) {
		(void)nanosleep(&tick, NULL);
		look(monitor, &sight);
		if (sight.quiet < QUIET_TICKS)
			continue;
		sight.quiet = 0;
		atomic_store(&monitor->watched, false);
		/* Who took a stop before it could see this does not wake us. */
		if (atomic_load(&monitor->taken) != sight.taken && !atomic_exchange(&monitor->watched, true))
			continue;
		while (sem_wait(&monitor->watch) != 0)
			;
	}
	return NULL;
}

/* Back to receiving, unless enough do. Only an atomic exchange of the count decides, so that the last one never parks. */
bool workers_rejoin(struct monitor *monitor)
{
	int idle = atomic_load(&monitor->idle_workers);

	while (idle < atomic_load(&monitor->receivers))
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

static void take(struct worker *worker, const struct stop *stop)
{
	struct monitor *monitor = worker->monitor;

	atomic_fetch_add(&monitor->busy_workers, 1);
	atomic_fetch_sub(&monitor->idle_workers, 1);
	atomic_fetch_add(&monitor->taken, 1);
	if (!atomic_load(&monitor->watched) && !atomic_exchange(&monitor->watched, true))
		sem_post(&monitor->watch);
	worker->rejoined = false;
	worker_handle(worker, stop);
	atomic_fetch_sub(&monitor->busy_workers, 1);
	if (!worker->rejoined && !workers_rejoin(monitor))
		park(monitor);
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct monitor *monitor = worker->monitor;
	struct err err = {0};

	prctl(PR_SET_NAME, "assure-worker");
	/* Calls that make files take the umask of whoever they are made for. */
	worker->may_perform = act_prepare_thread();
	/* The first ones are made before they are needed. */
	if (!worker->rejoined)
		park(monitor);
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
		if (state == RECEIVE_STOP)
			take(worker, &stop);
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
	worker->rejoined = workers_rejoin(monitor);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, WORKER_STACK);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	int status = pthread_create(&thread, &attributes, work, worker);
	pthread_attr_destroy(&attributes);
	if (status == 0)
		return true;
	atomic_store(&failed_ns, clock_monotonic_ns());
	atomic_fetch_sub(&monitor->idle_workers, worker->rejoined ? 1 : 0);
	atomic_fetch_sub(&started, 1);
	buf_free(&worker->body);
	decoder_free(&worker->decoder);
	free(worker);
	return err_set(err, status, "starting a worker of the monitor");
}

static bool start_watch(struct monitor *monitor, struct err *err)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, WORKER_STACK);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	int status = pthread_create(&thread, &attributes, watch, monitor);
	pthread_attr_destroy(&attributes);
	return status == 0 || err_set(err, status, "starting the watch over the monitor's workers");
}

bool workers_start(struct monitor *monitor, struct err *err)
{
	/* One is enough to go on with; more are made as they are needed. */
	bool any = start_watch(monitor, err) && start_one(monitor, err);

	for (int i = 1; any && i < FIRST_WORKERS && i < monitor->workers_limit; i++)
		(void)start_one(monitor, NULL);
	return any;
}
