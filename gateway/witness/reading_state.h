/*
 * What a reading holds, for the files that make it up: reading.c (bytes → values), message.c (values → calls).
 */
#pragma once

#include "base/digest.h"
#include "gather.h"
#include "rules.h"
#include "witness/reading.h"
#include "witness/scan.h"
#include "witness/sse.h"

/* A call or a result while it is read. */
struct item {
	struct reading_text kind, id, name;
	struct gathered body, text; /* what is taken raw; what is taken as text */
	bool failed;
	bool has_index;
	uint64_t index;
};

/* A call that comes in fragments, by where the dialect says that they belong. */
struct slot {
	uint64_t choice, index;
	bool told;      /* or not one that the agent carries out */
	bool has_delta; /* its arguments are what the fragments are */
	struct reading_text id, name;
	struct gathered arguments;
};

enum form { FORM_UNKNOWN, FORM_STREAM, FORM_JSON };

struct reading {
	enum dialect dialect;
	enum reading_side side;
	enum form form;
	bool in_array; /* the document is an array of events */
	struct rules rules;
	struct reading_budget *budget; /* borrowed */
	reading_told *told;
	void *context;
	struct reading_facts facts;

	struct scan scan;
	struct sse sse;
	enum rule_action action;     /* of the string or token that is being read */
	struct reading_text *target; /* where its text goes */
	struct gathered *gather;     /* or where its bytes go */

	/* of the event, or the whole message */
	struct reading_text event;
	bool has_index, has_choice, finishing;
	uint64_t index, choice;
	struct item item;
	struct buf held; /* a fragment that came before its index */
	char head[8];    /* the first bytes of an event's data */
	size_t data_size;

	struct slot *slots[READING_CALL_LIMIT]; /* owned */
	unsigned slot_count;
	struct digest *told_digests; /* owned: of the calls that were told, where a dialect repeats them */
	unsigned told_count;
};

static inline bool text_is(const struct reading_text *text, const char *word)
{
	return text->present && !text->cut && bytes_equal(reading_text_bytes(text), bytes_of(word));
}

void item_reset(struct reading *reading);
struct slot *slot_find(struct reading *reading, uint64_t choice, uint64_t index);
/* The same, made when it is not there. NULL at the limit, which is then a loss. */
struct slot *slot_make(struct reading *reading, uint64_t choice, uint64_t index);

/* Is the item, as far as its kind is known, one that is told? */
bool item_may_matter(const struct reading *reading);
/* The end of an item, a choice, an event of a stream (or the whole message), and the word that ends a stream. */
void message_item_ended(struct reading *reading, unsigned depth);
void message_choice_ended(struct reading *reading);
void message_event_ended(struct reading *reading);
void message_done(struct reading *reading);
