/*
 * From a stop to effects: what a call asks for, in the terms of effects.def. Driven by the row of the call; never
 * guesses: what could not be read is said, not invented.
 */
#pragma once

#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "decode/path.h"
#include "decode/target.h"
#include "ledger/effect.h"
#include "os/stop.h"
#include "os/table.h"

enum decode_state {
	DECODE_EFFECTS,    /* one or more effects */
	DECODE_NOTHING,    /* a mark, or a value of the arguments that has no effect */
	DECODE_UNREADABLE, /* memory of the task could not be read: effects hold what is known without it */
};

/* Why the result of a call must not be waited for. */
enum decode_wait {
	WAITS_NEVER,
	WAITS_PEER, /* sockets, FIFOs, terminals, devices, file systems that another process serves */
	WAITS_LEASE,
};

struct decoded {
	struct effect *effects; /* in the decoder's arena */
	size_t count;
	enum handling handling; /* of the row, or of the variant that matched */
	const struct syscall_variant *variant;
	enum decode_wait waits;
	struct path_facts facts;                 /* about the first effect's object */
	struct path_facts to_facts;              /* about its `to` */
	struct path_request request, to_request; /* how they were named; path absent when they were not */
	struct path_place place, to_place;       /* where they lie, held when the handling is to perform */
	struct bytes address;                    /* the socket address as read: what is recorded is what is used */
	const struct syscall_row *row;
	uint64_t at_flags;        /* as given; 0 for calls without */
	struct open_how how;      /* of an open, whichever call it is */
	struct timespec times[2]; /* as utimensat(2) takes them, when `has_times` */
	bool has_times;           /* else: no times were given, which means now */
	size_t receive_size;      /* bytes that a recvmsg(2) has room for */
	size_t receive_room;      /* and for what comes beside them, msg_controllen */
	bool opens;               /* the call returns a descriptor of its object */
	bool dns;                 /* args.dns_questions was found */
	size_t unreadable;        /* arguments that could not be read */
};

/* One per worker. */
struct decoder {
	struct path_cache *cache;
	struct arena arena;   /* everything that a decoded stop needs; reset by decode() */
	bool executable_maps; /* lens all */
	bool for_acting;      /* what is read may be acted upon in the task's stead: read it as the task would */
};

bool decoder_init(struct decoder *decoder);
void decoder_free(struct decoder *decoder);

/* The names may have changed: look again at what was asked for, and hold the places anew. */
void decoded_look_again(struct decoder *decoder, const struct target *target, struct decoded *decoded);
/* Let go of the places. Before the kernel makes the call itself, and in any case when done with it. */
void decoded_release(struct decoded *decoded);

enum decode_state decode(struct decoder *decoder, const struct target *target, const struct stop *stop,
			 const struct syscall_row *row, struct decoded *out);

/*
 * After the call returned `value` (or a negative errno), while the task still stands: settle what could not be known
 * before, such as whether an open made the file, and which inode a name got.
 */
void decode_result(struct decoder *decoder, const struct target *target, struct decoded *decoded, int64_t value);
/* Whom a socket is connected to, by our own descriptor of it. */
void decode_peer(struct decoder *decoder, const struct target *target, struct decoded *decoded, int socket);
/* After we opened the file ourselves and it is not the one that was seen: what it is, by our own descriptor of it. */
void decode_opened(struct decoder *decoder, const struct target *target, struct decoded *decoded, int descriptor);

/*
 * At the stop of an exec that succeeded, after decode() of the call: what the kernel really ran, with which arguments.
 * Where that differs from what decode() saw it replaces it, and the effect's note says so. `target` is the process by its
 * new number, its `memory` opened after the exec; `stack` its stack pointer, `word` the size of its pointers (0: not
 * known).
 */
void decode_exec(struct decoder *decoder, const struct target *target, uint64_t stack, unsigned word,
		 struct decoded *decoded);

/*
 * An exec of a file that was there failed because there is none. Its interpreter may be missing; or the path changed while
 * the call was made, and then another one stands in the task's memory by turns: that is the one.
 */
void decode_exec_missed(struct decoder *decoder, const struct target *target, const struct stop *stop,
			struct decoded *decoded);

/* Add a remark to those that the effect has. */
void decode_note(struct decoder *decoder, struct effect *effect, const char *text);
