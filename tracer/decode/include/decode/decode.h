/*
 * From a stop to effects: what a call asks for, in the terms of effects.def. Driven by the row of the call; never
 * guesses: what could not be read is said, not invented.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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
	bool opens;                              /* the call returns a descriptor of its object */
	bool dns;                                /* args.dns_questions was found */
	size_t unreadable;                       /* arguments that could not be read */
};

/* One per worker. */
struct decoder {
	struct path_cache *cache;
	struct arena arena;   /* everything that a decoded stop needs; reset by decode() */
	bool executable_maps; /* lens all */
};

bool decoder_init(struct decoder *decoder);
void decoder_free(struct decoder *decoder);

enum decode_state decode(struct decoder *decoder, const struct target *target, const struct stop *stop,
			 const struct syscall_row *row, struct decoded *out);

/*
 * After the call returned `value` (or a negative errno), while the task still stands: settle what could not be known
 * before, such as whether an open made the file, and which inode a name got.
 */
void decode_result(struct decoder *decoder, const struct target *target, struct decoded *decoded, int64_t value);

/* The chain of interpreters that #! lines name, starting at `program`; before the call, while its names are in place. */
void decode_interpreters(struct decoder *decoder, const struct target *target, struct bytes program,
			 struct effect_image *image);

/* The program that a process runs now: called at the exec stop, after decode() of the call. Keeps the #! chain. */
void decode_image(struct decoder *decoder, const struct target *target, struct effect_image *image);
