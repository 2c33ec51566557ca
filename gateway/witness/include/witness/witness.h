/*
 * The model witness: it stands between an agent and its model's provider, passes every byte on as it is and as soon as it is
 * there, and tells what it saw of it.
 *
 * It has no thread of its own: whoever starts it waits for its descriptor and lets it step. What it tells comes from within
 * witness_step(). A call is told before the bytes that complete it are passed on: the agent cannot act on one that was not told.
 *
 * Of its process it needs: SIGPIPE ignored (a provider may hang up while TLS writes); two descriptors for each exchange and
 * sixty-four that rest; sockets of AF_INET, AF_INET6 and AF_NETLINK (NETLINK_SOCK_DIAG: who hung up; without it that shows
 * with the next byte); threads, which libcurl makes to look names up; and to read the resolver's files and the certificates.
 *
 * Credentials are passed on and never told: neither headers nor queries are part of what is told.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "attribute/call.h"
#include "base/bytes.h"
#include "base/err.h"
#include "witness/dialect.h"
#include "witness/reading.h"

enum exchange_state {
#define EXCHANGE_STATE(identifier, ...) EXCHANGE_##identifier,
#include "exchange-states.def"
#undef EXCHANGE_STATE
	EXCHANGE_STATE_COUNT
};

enum witness_loss {
#define WITNESS_LOSS(identifier, ...) WITNESS_LOSS_##identifier,
#include "witness-losses.def"
#undef WITNESS_LOSS
	WITNESS_LOSS_COUNT
};

const char *exchange_state_name(enum exchange_state state);
const char *witness_loss_code(enum witness_loss loss);

/* A body: its exact bytes as they were passed on, but for the framing of HTTP. */
struct exchange_body {
	uint64_t size;
	uint8_t sha256[CALL_DIGEST_SIZE];
	const struct reading_facts *facts; /* NULL when it was not read */
};

/* An exchange that is over (specs/CALLS.md section 3). Views that hold during the call alone. */
struct exchange {
	uint64_t number; /* from 1, in the order in which they began */
	enum dialect dialect;
	enum exchange_state state;
	struct bytes method, path; /* as the agent sent them, without the query */
	struct bytes origin;       /* scheme, host and port of the upstream */
	bool test_upstream;        /* it is on loopback */
	unsigned status;           /* that the agent was given; 0 when none */
	struct bytes model_asked;  /* absent when not named */
	unsigned calls;            /* that the answer asks for */
	struct exchange_body request, response;
	struct sockaddr_storage local, peer;       /* of the agent's connection */
	int64_t begun_ns, first_byte_ns, ended_ns; /* CLOCK_REALTIME; first_byte_ns is 0 when there was none */
};

struct witness_sink {
	void *context;
	/* What the tool does and names, into a call's sighting; the bytes must hold until `call` returns. May be NULL. */
	void (*describe)(void *context, struct bytes tool, const struct call_bytes *arguments,
			 struct call_sighting *sighting);
	/* A call, or a result; `mono_ns` and `process` are left 0. A result is told once, however often it is sent. */
	void (*call)(void *context, const struct call_sighting *sighting, uint64_t exchange);
	void (*exchange)(void *context, const struct exchange *exchange);
	/* A piece of a body, as it passes, with capture_bodies. May be NULL. */
	void (*body)(void *context, uint64_t exchange, enum reading_side side, struct bytes piece);
	/* `detail` is text of ours. */
	void (*loss)(void *context, enum witness_loss loss, const char *detail);
};

/* Where requests go whose target starts with `prefix`, which is taken off. */
struct witness_route {
	enum provider provider;
	const char *prefix;   /* "", or "/" and a path without a "/" at its end */
	const char *upstream; /* "https://host[:port][/path]"; "http://" for loopback alone */
};

enum { WITNESS_ROUTE_LIMIT = 16, WITNESS_CONNECTION_LIMIT = 1000 };

struct witness_config {
	int listener; /* bound to loopback and listening; taken over, also when starting fails */
	const struct witness_route
	    *routes; /* copied. The longest prefix that fits; among equals the one of the dialect's provider */
	size_t route_count;
	const char *ca_file; /* certificates that are trusted, or NULL for the system's */
	bool capture_bodies;
};

struct witness;

/* The upstream of a provider when the user has set none: what its clients take. */
const char *witness_default_upstream(enum provider provider);

/* The caller stops it. The sink's functions are copied, its context is borrowed. NULL with `err`. */
struct witness *witness_start(const struct witness_config *config, const struct witness_sink *sink, struct err *err);
/* Readable (poll, epoll) when there is something to do. Borrowed. */
int witness_descriptor(const struct witness *witness);
/* Do what there is to do, without waiting. */
void witness_step(struct witness *witness);
/* Exchanges that are going on. */
size_t witness_exchanges(const struct witness *witness);
/* Break off what is going on, tell of it, and free. */
void witness_stop(struct witness *witness);
