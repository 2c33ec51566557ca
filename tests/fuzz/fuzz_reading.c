/*
 * Exchanges with models: however a body is cut, the same is read of it, within the limits, and nothing is left behind.
 */
#include "fuzz.h"

#include "base/digest.h"
#include "witness/reading.h"

struct seen {
	struct buf text;
};

static void told(void *context, struct call_sighting *sighting, unsigned ordinal)
{
	struct seen *seen = context;
	const struct call_bytes *bytes = sighting->event == CALL_begin ? &sighting->arguments : &sighting->output;
	struct digest digest;

	need(bytes->present && bytes->kept.size <= bytes->size);
	if (bytes->kept.size == bytes->size)
		need(digest_of(bytes->kept, &digest) && memcmp(digest.bytes, bytes->sha256, sizeof(digest.bytes)) == 0);
	need(sighting->event == CALL_end || sighting->tool.size > 0);
	buf_append_format(&seen->text, "%u %d %d %d;", ordinal, (int)sighting->event, sighting->failed,
			  sighting->exit_code);
	buf_append_bytes(&seen->text, sighting->id);
	buf_append_bytes(&seen->text, sighting->tool);
	buf_append_bytes(&seen->text, bytes->kept);
}

static void facts_text(const struct reading_facts *facts, struct buf *out)
{
	need(facts->usage_count <= READING_USAGE_LIMIT && facts->tool_count <= READING_TOOL_LIMIT);
	buf_append_format(out, "|%d%d%d%d%d %u %u %u|", facts->stream, facts->complete, facts->failed, facts->malformed,
			  facts->lost, facts->calls, facts->tool_count, facts->usage_count);
	if (facts->model.present)
		buf_append_bytes(out, reading_text_bytes(&facts->model));
	if (facts->stop.present)
		buf_append_bytes(out, reading_text_bytes(&facts->stop));
}

static void read_it(enum dialect dialect, enum reading_side side, struct bytes body, size_t step, struct seen *seen)
{
	struct reading_budget budget = {0, 1 << 16};
	struct reading *reading = reading_new(dialect, side, &budget, told, seen);

	need(reading);
	while (body.size > 0) {
		size_t size = step < body.size ? step : body.size;
		char *piece = malloc(size);
		memcpy(piece, body.data, size);
		reading_feed(reading, (struct bytes){piece, size});
		free(piece);
		need(budget.used <= budget.limit);
		body.data += size;
		body.size -= size;
	}
	reading_finish(reading, true);
	facts_text(reading_facts(reading), &seen->text);
	reading_free(reading);
	need(budget.used == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	unsigned what = (unsigned)take_number(&input, 1);
	size_t step = 1 + (size_t)take_number(&input, 1);
	enum dialect dialect = (enum dialect)(what / 2 % DIALECT_unwitnessed);
	enum reading_side side = what % 2 ? READING_RESPONSE : READING_REQUEST;
	struct bytes body = {(const char *)input.data, input.size};
	struct seen whole = {{.limit = 1 << 24}}, pieces = {{.limit = 1 << 24}};

	read_it(dialect, side, body, SIZE_MAX, &whole);
	read_it(dialect, side, body, step, &pieces);
	need(bytes_equal(buf_bytes(&whole.text), buf_bytes(&pieces.text)));
	buf_free(&whole.text);
	buf_free(&pieces.text);
	return 0;
}
