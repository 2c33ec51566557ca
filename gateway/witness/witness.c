#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "passage.h"

enum {
	EVENTS = 64,
	ROUNDS = 16, /* of one step: whoever called has others to look after */
	KEPT_LIMIT = 256 << 20,
};

const char *exchange_state_name(enum exchange_state state)
{
	static const char *const names[EXCHANGE_STATE_COUNT] = {
#define EXCHANGE_STATE(identifier, name, ...) [EXCHANGE_##identifier] = name,
#include "exchange-states.def"
#undef EXCHANGE_STATE
	};

	return names[state];
}

const char *witness_loss_code(enum witness_loss loss)
{
	static const char *const codes[WITNESS_LOSS_COUNT] = {
#define WITNESS_LOSS(identifier, code, ...) [WITNESS_LOSS_##identifier] = code,
#include "witness-losses.def"
#undef WITNESS_LOSS
	};

	return codes[loss];
}

static bool start_clock(struct witness *witness, struct err *err)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = event_of(EVENT_TIMER, 0)};

	witness->epoll = epoll_create1(EPOLL_CLOEXEC);
	witness->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (witness->epoll < 0 || witness->timer < 0 ||
	    epoll_ctl(witness->epoll, EPOLL_CTL_ADD, witness->timer, &event) != 0)
		return err_set(err, errno, "the model witness cannot wait");
	return true;
}

struct witness *witness_start(const struct witness_config *config, const struct witness_sink *sink, struct err *err)
{
	int listener = config->listener;
	struct witness *witness = calloc(1, sizeof(*witness));

	if (!witness) {
		fd_close(&listener);
		err_set(err, ENOMEM, "the model witness");
		return NULL;
	}
	witness->epoll = witness->timer = -1;
	witness->sink = *sink;
	witness->capture_bodies = config->capture_bodies;
	witness->budget.limit = KEPT_LIMIT;
	witness->ca_file = config->ca_file ? strdup(config->ca_file) : NULL;
	if (!routes_set(&witness->routes, config->routes, config->route_count, err) || !start_clock(witness, err) ||
	    !fetch_start(witness, err)) {
		fd_close(&listener);
		witness_stop(witness);
		return NULL;
	}
	if (!server_start(witness, listener, err)) {
		witness_stop(witness);
		return NULL;
	}
	return witness;
}

int witness_descriptor(const struct witness *witness)
{
	return witness->epoll;
}

size_t witness_exchanges(const struct witness *witness)
{
	return witness->count;
}

static void look_again(struct witness *witness)
{
	while (witness->step) {
		struct passage *passage = witness->step;
		witness->step = passage->next_step;
		passage->wants_step = false;
		fetch_look(passage);
	}
}

static void happened(struct witness *witness, const struct epoll_event *event)
{
	uint64_t what = event->data.u64 & (((uint64_t)1 << event_shift) - 1), expirations;

	switch ((enum event_kind)(event->data.u64 >> event_shift)) {
	case EVENT_FETCH:
		fetch_event(witness, (int)what, event->events);
		break;
	case EVENT_AGENT: /* those are freed by the daemon alone, which runs after all events */
		server_watched((struct agent *)(uintptr_t)what, event->events);
		break;
	case EVENT_TIMER: /* nothing to read when it was set again meanwhile */
		witness->timer_ms = 0;
		(void)!read(witness->timer, &expirations, sizeof(expirations));
		break;
	default: /* the daemon runs in any case */
		break;
	}
}

/* When the next thing is due that no descriptor tells of: milliseconds from now, or -1. */
static int64_t due(struct witness *witness)
{
	MHD_UNSIGNED_LONG_LONG daemon_ms;
	int64_t due_ms = -1;

	if (witness->curl_due_ms >= 0) {
		due_ms = witness->curl_due_ms - (int64_t)(clock_monotonic_ns() / 1000000);
		if (due_ms < 0)
			due_ms = 0;
	}
	if (MHD_get_timeout(witness->daemon, &daemon_ms) == MHD_YES && (due_ms < 0 || (int64_t)daemon_ms < due_ms))
		due_ms = (int64_t)daemon_ms;
	return due_ms;
}

/* A clock that comes too early costs one look; setting it at each step would cost as much as passing a piece on. */
static void set_timer(struct witness *witness, int64_t due_ms)
{
	int64_t now = (int64_t)(clock_monotonic_ns() / 1000000), at = now + due_ms;
	struct itimerspec when = {0};

	if (due_ms < 0 || (witness->timer_ms > now && witness->timer_ms <= at))
		return;
	witness->timer_ms = at;
	if (due_ms == 0)
		when.it_value.tv_nsec = 1; /* at once; 0 would be never */
	else
		when.it_value = (struct timespec){due_ms / 1000, due_ms % 1000 * 1000000};
	timerfd_settime(witness->timer, 0, &when, NULL);
}

void witness_step(struct witness *witness)
{
	struct epoll_event events[EVENTS];
	int64_t due_ms = -1;

	/* Again only for what no descriptor tells of: what one tells of, it tells whoever waits for it. */
	witness->woken = true;
	for (int round = 0; (witness->woken || due_ms == 0) && round < ROUNDS; round++) {
		int count = epoll_wait(witness->epoll, events, EVENTS, 0);
		for (int i = 0; i < count; i++)
			happened(witness, &events[i]);
		if (witness->curl_due_ms >= 0 && witness->curl_due_ms <= (int64_t)(clock_monotonic_ns() / 1000000))
			fetch_event(witness, -1, 0);
		fetch_finish(witness);
		look_again(witness);
		witness->woken = false;
		MHD_run(witness->daemon);
		look_again(witness);
		due_ms = due(witness);
	}
	set_timer(witness, witness->woken ? 0 : due_ms);
}

void witness_stop(struct witness *witness)
{
	if (!witness)
		return;
	server_stop(witness);
	fetch_stop(witness);
	routes_free(&witness->routes);
	ends_free(&witness->ends);
	fd_close(&witness->timer);
	fd_close(&witness->epoll);
	free(witness->ca_file);
	free(witness);
}
