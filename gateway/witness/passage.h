/*
 * One exchange on its way through: what is between the agent's connection (server.c, libmicrohttpd) and the upstream's
 * (fetch.c, libcurl), and what is read of it (passage.c). All of it runs in one thread, within witness_step().
 *
 *   agent → server.c → up → fetch.c → upstream
 *   agent ← server.c ← down ← fetch.c ← upstream
 *
 * Either side that cannot go on waits: the agent's connection is suspended, the upstream's transfer paused. Each wakes the other.
 */
#pragma once

#include <curl/curl.h>
#include <microhttpd.h>

#include "base/digest.h"
#include "decode.h"
#include "ends.h"
#include "route.h"
#include "witness/witness.h"

enum {
	PASSAGE_HIGH = 256 << 10, /* bytes waiting in one direction, above which its source waits */
	PASSAGE_LOW = 64 << 10,
	RESPONSE_HEADER_LIMIT = 128 << 10,
	TARGET_LIMIT = 16 << 10,
};

/* Bytes on their way; in front of `start` they are gone. */
struct pipe_bytes {
	struct buf bytes;
	size_t start;
	bool ended;
};

static inline size_t pipe_size(const struct pipe_bytes *pipe)
{
	return pipe->bytes.size - pipe->start;
}
/* Take up to `size` bytes out. */
size_t pipe_take(struct pipe_bytes *pipe, char *to, size_t size);

/* One side as it is witnessed. */
struct side {
	struct hasher *hasher;
	uint64_t size;
	struct decoder *decoder;
	struct reading *reading; /* NULL: not read */
	bool spoilt;
};

/* A connection of the agent's, over all its requests. */
struct agent {
	struct witness *witness;
	struct passage *passage; /* that goes on, or NULL */
	int fd;                  /* the daemon's */
	unsigned looks;          /* since its end said that it says no more */
	struct sockaddr_storage local, peer;
};

struct passage {
	struct witness *witness; /* borrowed, as all pointers that are not said to be owned */
	struct passage *previous, *next;
	uint64_t number;
	bool begun, wants_step; /* in the list of those that fetch.c looks at again */
	struct passage *next_step;

	/* the agent's side */
	struct MHD_Connection *connection;
	struct agent *agent; /* of that connection, or NULL */
	bool suspended, answered, gone;
	char *target; /* owned: as the agent sent it */
	char method[24];
	struct bytes path; /* of target, without the query */
	const struct route *route;

	/* the upstream's side */
	CURL *easy;                 /* owned */
	struct curl_slist *headers; /* owned; may hold credentials */
	bool fetching, up_paused, down_paused, has_body;
	bool head_done, body_less;
	bool failed, broken; /* by the upstream; with an answer that had begun */
	unsigned status;
	int64_t length;  /* of the answer's body, or -1 */
	struct buf head; /* its header lines, each ended by a NUL */
	struct pipe_bytes up, down;

	/* what is read */
	enum dialect dialect;
	struct side request, response;
	unsigned calls;
	int64_t begun_ns, first_byte_ns;
};

struct witness {
	struct witness_sink sink;
	bool capture_bodies;
	char *ca_file; /* owned */
	struct routes routes;
	struct reading_budget budget;
	struct ends ends;
	uint64_t numbers;
	size_t count;
	struct passage *passages; /* owned, by their connections */
	struct passage *step;     /* to be looked at again */
	int epoll, timer;         /* owned */
	struct MHD_Daemon *daemon;
	CURLM *multi;
	int64_t curl_due_ms; /* CLOCK_MONOTONIC, or -1 */
	int64_t timer_ms;    /* for when the timer is set */
	bool woken;          /* a connection of the daemon's goes on, which no descriptor tells of */
};

/* What an event of the witness's epoll is of; the rest of its data is a pointer or a descriptor. */
enum event_kind { EVENT_SERVER, EVENT_FETCH, EVENT_AGENT, EVENT_TIMER };
static const unsigned event_shift = 56; /* addresses of programs end below */

static inline uint64_t event_of(enum event_kind kind, uint64_t what)
{
	return (uint64_t)kind << event_shift | what;
}

/* --- passage.c --- */

/* NULL when there is no memory. */
struct passage *passage_new(struct witness *witness, const char *target);
/* The request's first line is known: choose dialect, route, readings. */
void passage_begin(struct passage *passage, const char *method, struct bytes encoding);
/* Bytes of the request or the answer, before they are passed on. */
void passage_saw(struct passage *passage, enum reading_side which, struct bytes bytes);
/* The answer's header is known. */
void passage_answered(struct passage *passage, struct bytes encoding);
/* It is over: told, and freed. `whole`: the agent got all that there was. */
void passage_end(struct passage *passage, bool whole);
/* fetch.c looks at it again before the step ends. */
void passage_step_later(struct passage *passage);

/* --- server.c: the agent's side --- */

bool server_start(struct witness *witness, int listener, struct err *err);
void server_stop(struct witness *witness);
/* There is something for the agent, or room for what it sends. */
void server_wake(struct passage *passage);
/* The agent says no more on this connection. */
void server_watched(struct agent *agent, uint32_t events);

/* --- fetch.c: the upstream's side --- */

bool fetch_start(struct witness *witness, struct err *err);
void fetch_stop(struct witness *witness);
/* Begin; what fails is the answer. */
void fetch_begin(struct passage *passage);
/* There is something to send, or room for what comes. */
void fetch_look(struct passage *passage);
/* Break off. */
void fetch_abort(struct passage *passage);
/* Events of a descriptor, or of the clock (-1). */
void fetch_event(struct witness *witness, int fd, uint32_t events);
/* Transfers that are over. */
void fetch_finish(struct witness *witness);

/* --- peer.c --- */

/* Is nobody left at the other end of this loopback connection? False when that cannot be found out. */
bool peer_is_gone(const struct sockaddr_storage *local, const struct sockaddr_storage *peer);
