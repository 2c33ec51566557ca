/*
 * The record ring with a producer that writes what it likes into the shared memory: the consumer is shown entries inside
 * the ring alone, or none any more; and before that, exactly what was put. Then what the scribe makes of an entry: a
 * record with its number in it, or nothing.
 */
#include "../../base/ring.c" /* NOLINT(bugprone-suspicious-include): its insides are what a producer reaches */

#include "fuzz.h"
#include "ledger/record.h"

enum { CAPACITY = 4096, QUEUE = 1024 };

struct model {
	struct ring *ring;
	uint16_t queue[QUEUE]; /* sizes of what was put; its bytes all say the size */
	unsigned first, last;
	bool honest, ended;
};

static void put(struct model *model, struct input *input)
{
	static char content[CAPACITY];
	size_t head = take_number(input, 1), body = take_number(input, 2) % CAPACITY;
	uint64_t committed = atomic_load(&model->ring->shared->committed);

	/* Who would have to wait is another matter: see the test of the ring. */
	if (ring_room(model->ring, committed, ring_entry_size(head + body)) == RING_FULL)
		return;
	memset(content, (int)((head + body) & 0xff), sizeof(content));
	bool done = ring_put(model->ring, (struct bytes){content, head}, (struct bytes){content, body}, NULL, NULL);
	need(!model->honest || done == (!model->ended && ring_entry_size(head + body) <= CAPACITY));
	if (done && model->honest)
		model->queue[model->last++ % QUEUE] = (uint16_t)(head + body);
}

/* The scribe's part, over the same bytes. */
static void seal(struct bytes entry)
{
	CLEANUP_BUF struct buf sealed = {.limit = 1 << 17};
	struct record_head head;

	if (entry.size < sizeof(head))
		return;
	memcpy(&head, entry.data, sizeof(head));
	struct bytes body = {entry.data + sizeof(head), entry.size - sizeof(head)};
	if (!record_seal(&sealed, &head, body, 17))
		return;
	size_t number = sizeof("\"seq\":17,") - 1;
	need(sealed.data && sealed.size == body.size + number && head.seq_at <= body.size);
	need(memcmp(sealed.data, body.data, head.seq_at) == 0);
	need(memcmp(sealed.data + head.seq_at + number, body.data + head.seq_at, body.size - head.seq_at) == 0);
}

static void look(struct model *model)
{
	const struct ring *ring = model->ring;
	bool was_corrupt = ring->corrupt;
	struct bytes entry;
	enum ring_state state = ring_peek(model->ring, &entry);

	need(!was_corrupt || state == RING_CORRUPT);
	if (state != RING_ENTRY) {
		need(!entry.data && (!model->honest || (state != RING_CORRUPT && model->first == model->last)));
		need(!model->honest || (state == RING_FINISHED) == model->ended);
		return;
	}
	need(entry.data >= ring->data + RING_LENGTH_SIZE && entry.size <= CAPACITY - RING_LENGTH_SIZE &&
	     entry.data + entry.size <= ring->data + (size_t)2 * CAPACITY);
	if (model->honest) {
		need(model->first != model->last && entry.size == model->queue[model->first % QUEUE]);
		for (size_t i = 0; i < entry.size; i++)
			need((unsigned char)entry.data[i] == (entry.size & 0xff));
	}
	seal(entry);
}

static void consume(struct model *model)
{
	if (model->honest && model->ring->shown)
		model->first++;
	ring_consume(model->ring);
}

/* What only a hostile producer does. */
static void attack(struct model *model, struct input *input)
{
	struct ring_shared *shared = model->ring->shared;
	unsigned how = (unsigned)take_number(input, 1) % 6;
	uint64_t value = take_number(input, how == 0 || how == 1 ? 8 : 4);
	size_t at = (size_t)(model->ring->released & (CAPACITY - 1));
	uint32_t length = (uint32_t)value;

	model->honest = false;
	switch (how) {
	case 0:
		atomic_store(&shared->committed, value);
		break;
	case 1:
		atomic_store(&shared->released, value);
		break;
	case 2:
		atomic_store(&shared->committed, model->ring->released + (value & (2 * CAPACITY - 1)));
		break;
	case 3: /* the length of the next entry */
		memcpy(model->ring->data + at, &length, sizeof(length));
		break;
	case 4: { /* its content */
		struct bytes content = take_bytes(input, value & 0xff);
		if (content.size > 0)
			memcpy(model->ring->data + at + RING_LENGTH_SIZE, content.data, content.size);
		break;
	}
	default:
		atomic_store(&shared->finished, length);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct model model = {.ring = ring_create(CAPACITY, NULL), .honest = true};

	need(model.ring && model.ring->data);
	while (input.size > 0) {
		switch (take_number(&input, 1) % 8) {
		case 0:
		case 1:
			put(&model, &input);
			break;
		case 2:
		case 3:
			look(&model);
			break;
		case 4:
			consume(&model);
			break;
		case 5:
			ring_finish(model.ring);
			model.ended = true;
			break;
		case 6:
			ring_wait(model.ring, 0);
			break;
		default:
			attack(&model, &input);
		}
		need(ring_pending(model.ring) <= CAPACITY);
	}
	ring_free(model.ring);
	return 0;
}
