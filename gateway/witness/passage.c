#include "passage.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"

static void unlink_passage(struct passage *passage)
{
	struct witness *witness = passage->witness;

	if (passage->previous)
		passage->previous->next = passage->next;
	else
		witness->passages = passage->next;
	if (passage->next)
		passage->next->previous = passage->previous;
	witness->count--;
	for (struct passage **at = &witness->step; *at; at = &(*at)->next_step)
		if (*at == passage) {
			*at = passage->next_step;
			break;
		}
}

static void free_side(struct side *side)
{
	hasher_free(side->hasher);
	decoder_free(side->decoder);
	reading_free(side->reading);
}

static void free_passage(struct passage *passage)
{
	unlink_passage(passage);
	free_side(&passage->request);
	free_side(&passage->response);
	buf_free(&passage->up.bytes);
	buf_free(&passage->down.bytes);
	buf_free(&passage->head);
	free(passage->target);
	free(passage);
}

struct passage *passage_new(struct witness *witness, const char *target)
{
	struct passage *passage = calloc(1, sizeof(*passage));

	if (passage)
		passage->target = strdup(target);
	if (passage && passage->target) {
		passage->request.hasher = hasher_new(NULL);
		passage->response.hasher = hasher_new(NULL);
	}
	if (!passage || !passage->request.hasher || !passage->response.hasher) {
		if (passage) {
			hasher_free(passage->request.hasher);
			free(passage->target);
			free(passage);
		}
		return NULL;
	}
	passage->witness = witness;
	passage->number = ++witness->numbers;
	passage->length = -1;
	passage->head.limit = RESPONSE_HEADER_LIMIT;
	/* One more piece comes after the mark was passed. */
	passage->up.bytes.limit = passage->down.bytes.limit = 4 * (size_t)PASSAGE_HIGH;
	passage->next = witness->passages;
	if (passage->next)
		passage->next->previous = passage;
	witness->passages = passage;
	witness->count++;
	hasher_begin(passage->request.hasher);
	hasher_begin(passage->response.hasher);
	return passage;
}

size_t pipe_take(struct pipe_bytes *pipe, char *to, size_t size)
{
	if (size > pipe_size(pipe))
		size = pipe_size(pipe);
	if (size > 0)
		memcpy(to, pipe->bytes.data + pipe->start, size);
	pipe->start += size;
	if (pipe->start == pipe->bytes.size) {
		buf_reset(&pipe->bytes);
		pipe->start = 0;
	}
	return size;
}

void passage_step_later(struct passage *passage)
{
	if (passage->wants_step)
		return;
	passage->wants_step = true;
	passage->next_step = passage->witness->step;
	passage->witness->step = passage;
}

/* --- reading ---------------------------------------------------------------------------------------------------- */

/* A result's name for this run: its id, or what it says where there is none. */
static uint64_t end_key(struct passage *passage, const struct call_sighting *sighting, unsigned ordinal)
{
	CLEANUP_BUF struct buf text = {.limit = 4096};
	struct digest digest;
	uint64_t key = 0;

	buf_append_format(&text, "%d %d %u ", (int)dialect_provider(passage->dialect), sighting->id.data != NULL,
			  sighting->id.data ? 0 : ordinal);
	buf_append_bytes(&text, sighting->id.data ? sighting->id : sighting->tool);
	if (!sighting->id.data)
		buf_append(&text, sighting->output.sha256, sizeof(sighting->output.sha256));
	if (digest_of(buf_bytes(&text), &digest))
		memcpy(&key, digest.bytes, sizeof(key));
	return key;
}

static void lose(struct passage *passage, enum witness_loss loss, const char *detail)
{
	passage->witness->sink.loss(passage->witness->sink.context, loss, detail);
}

static void told(void *context, struct call_sighting *sighting, unsigned ordinal)
{
	struct passage *passage = context;
	const struct witness_sink *sink = &passage->witness->sink;

	if (sighting->event == CALL_end) {
		enum ends_answer answer = ends_add(&passage->witness->ends, end_key(passage, sighting, ordinal));
		if (answer == ENDS_KNOWN)
			return;
		if (answer == ENDS_FULL)
			lose(passage, WITNESS_LOSS_results, "results of calls");
	} else {
		passage->calls++;
		if (sink->describe)
			sink->describe(sink->context, sighting->tool, &sighting->arguments, sighting);
	}
	sink->call(sink->context, sighting, passage->number);
}

static void read_decoded(void *context, struct bytes piece)
{
	reading_feed(context, piece);
}

static void spoil(struct passage *passage, struct side *side)
{
	if (side->spoilt)
		return;
	side->spoilt = true;
	if (side->reading)
		reading_spoil(side->reading);
	lose(passage, WITNESS_LOSS_encoding, side == &passage->request ? "a request" : "an answer");
}

static void begin_reading(struct passage *passage, enum reading_side which, struct bytes encoding)
{
	struct side *side = which == READING_REQUEST ? &passage->request : &passage->response;

	if (passage->dialect == DIALECT_unwitnessed)
		return;
	side->reading = reading_new(passage->dialect, which, &passage->witness->budget, told, passage);
	if (!side->reading) {
		lose(passage, WITNESS_LOSS_calls, "no memory");
		return;
	}
	side->decoder = decoder_new(encoding);
	if (!side->decoder)
		spoil(passage, side);
}

void passage_begin(struct passage *passage, const char *method, struct bytes encoding)
{
	struct bytes target = bytes_of(passage->target);
	const char *query = strchr(passage->target, '?');

	passage->begun = true;
	passage->begun_ns = clock_realtime_ns();
	buf_reset(&passage->head);
	size_t size = strlen(method) < sizeof(passage->method) ? strlen(method) : sizeof(passage->method) - 1;
	memcpy(passage->method, method, size);
	passage->path = (struct bytes){target.data, query ? (size_t)(query - target.data) : target.size};
	passage->dialect = dialect_of(bytes_of(passage->method), passage->path);
	passage->route = routes_find(&passage->witness->routes, target, passage->dialect);
	if (!passage->route)
		passage->dialect = DIALECT_unwitnessed;
	begin_reading(passage, READING_REQUEST, encoding);
}

void passage_answered(struct passage *passage, struct bytes encoding)
{
	/* What stands in an error is nothing that anybody acts on. */
	if (passage->status >= 200 && passage->status < 300)
		begin_reading(passage, READING_RESPONSE, encoding);
}

void passage_saw(struct passage *passage, enum reading_side which, struct bytes bytes)
{
	struct side *side = which == READING_REQUEST ? &passage->request : &passage->response;
	const struct witness_sink *sink = &passage->witness->sink;

	if (which == READING_RESPONSE && side->size == 0)
		passage->first_byte_ns = clock_realtime_ns();
	side->size += bytes.size;
	hasher_add(side->hasher, bytes);
	if (passage->witness->capture_bodies && sink->body)
		sink->body(sink->context, passage->number, which, bytes);
	if (side->reading && !side->spoilt && !decoder_feed(side->decoder, bytes, read_decoded, side->reading))
		spoil(passage, side);
}

/* --- the end ---------------------------------------------------------------------------------------------------- */

static struct exchange_body body_of(struct side *side, bool whole)
{
	struct exchange_body body = {.size = side->size};
	struct digest digest = {0};

	if (hasher_end(side->hasher, &digest))
		memcpy(body.sha256, digest.bytes, sizeof(body.sha256));
	if (side->reading) {
		reading_finish(side->reading, whole && !side->spoilt);
		body.facts = reading_facts(side->reading);
	}
	return body;
}

static enum exchange_state state_of(const struct passage *passage, const struct exchange *exchange, bool whole)
{
	const struct reading_facts *request = exchange->request.facts, *response = exchange->response.facts;

	if (passage->failed)
		return EXCHANGE_upstream_failed;
	if (!whole)
		return EXCHANGE_aborted;
	if (passage->status >= 400 || (response && response->failed))
		return EXCHANGE_upstream_failed;
	if ((request && request->malformed) || (response && (response->malformed || response->lost)))
		return EXCHANGE_malformed;
	return EXCHANGE_complete;
}

static void tell(struct passage *passage, bool whole)
{
	const struct witness_sink *sink = &passage->witness->sink;
	const struct route *route = passage->route;
	struct exchange exchange = {
	    .number = passage->number,
	    .dialect = passage->dialect,
	    .method = bytes_of(passage->method),
	    .path = passage->path,
	    .origin = route ? bytes_of(route->origin) : BYTES_NONE,
	    .test_upstream = route && route->loopback,
	    .status = passage->status,
	    .request = body_of(&passage->request, passage->up.ended),
	    .response = body_of(&passage->response, whole && !passage->failed),
	    .begun_ns = passage->begun_ns,
	    .first_byte_ns = passage->first_byte_ns,
	    .ended_ns = clock_realtime_ns(),
	};

	if (passage->agent) {
		exchange.local = passage->agent->local;
		exchange.peer = passage->agent->peer;
	}
	/* The end of a body can make a call whole, too. */
	exchange.calls = passage->calls;
	exchange.model_asked = dialect_path_model(passage->dialect, passage->path);
	if (!exchange.model_asked.data && exchange.request.facts && exchange.request.facts->model.present)
		exchange.model_asked = reading_text_bytes(&exchange.request.facts->model);
	if ((exchange.request.facts && exchange.request.facts->lost) ||
	    (exchange.response.facts && exchange.response.facts->lost))
		lose(passage, WITNESS_LOSS_calls, "a limit, or no memory");
	exchange.state = state_of(passage, &exchange, whole);
	sink->exchange(sink->context, &exchange);
}

void passage_end(struct passage *passage, bool whole)
{
	fetch_abort(passage);
	if (passage->begun)
		tell(passage, whole && passage->answered);
	free_passage(passage);
}
