#include <stdlib.h>

#include "base/text.h"
#include "reading_state.h"

struct bytes reading_text_bytes(const struct reading_text *text)
{
	return (struct bytes){text->data, text->size};
}

/* --- which value is what ---------------------------------------------------------------------------------------- */

static enum rule_action find_rule(const struct reading *reading, const struct scan *scan)
{
	const uint8_t *path = scan->step + reading->in_array;
	unsigned size = scan->depth - reading->in_array;

	if (scan->depth <= reading->in_array)
		return RULE_NONE;
	for (size_t i = 0; i < reading->rules.count; i++) {
		const struct rule *rule = &reading->rules.rows[i];
		/* The members of what is used up are numbers of any name. */
		unsigned wanted = rule->action == RULE_USAGE ? rule->size + 1u : rule->size;
		if (wanted == size && memcmp(rule->path, path, rule->size) == 0)
			return (enum rule_action)rule->action;
	}
	return RULE_NONE;
}

static unsigned take_into(struct reading *reading, struct reading_text *target)
{
	reading->target = target;
	target->present = target->cut = false;
	target->size = 0;
	return SCAN_TAKE;
}

static unsigned gather_into(struct reading *reading, struct gathered *gather)
{
	reading->gather = gather;
	/* Even an empty text is one. */
	gathered_add(gather, reading->budget, BYTES(""));
	return SCAN_TAKE;
}

static unsigned begin_delta(struct reading *reading)
{
	bool chat = reading->dialect == DIALECT_openai_chat,
	     known = chat ? reading->item.has_index : reading->has_index;
	uint64_t choice = chat && reading->has_choice ? reading->choice : 0;
	struct slot *slot = NULL;

	if (known)
		slot = chat ? slot_make(reading, choice, reading->item.index) : slot_find(reading, 0, reading->index);
	if (!known) /* into `held`, until it is */
		return SCAN_TAKE;
	if (!slot || slot->told) {
		if (!slot)
			reading->facts.malformed = true;
		return SCAN_PASS;
	}
	if (!slot->has_delta)
		gathered_reset(&slot->arguments, reading->budget);
	slot->has_delta = true;
	return gather_into(reading, &slot->arguments);
}

static unsigned begin_tool(struct reading *reading)
{
	struct reading_facts *facts = &reading->facts;

	if (facts->tool_count == READING_TOOL_LIMIT)
		return SCAN_PASS;
	if (!facts->tools)
		facts->tools = calloc(READING_TOOL_LIMIT, sizeof(*facts->tools));
	return facts->tools ? take_into(reading, &facts->tools[facts->tool_count]) : SCAN_PASS;
}

static unsigned begin_string(struct reading *reading)
{
	struct item *item = &reading->item;

	switch (reading->action) {
	case RULE_EVENT:
		return take_into(reading, &reading->event);
	case RULE_MODEL:
		return take_into(reading, &reading->facts.model);
	case RULE_RESPONSE_ID:
		return take_into(reading, &reading->facts.response_id);
	case RULE_STOP:
		return take_into(reading, &reading->facts.stop);
	case RULE_TOOL:
		return begin_tool(reading);
	case RULE_KIND:
		return take_into(reading, &item->kind);
	case RULE_ID:
		return take_into(reading, &item->id);
	case RULE_NAME:
		return take_into(reading, &item->name);
	case RULE_ARGUMENTS:
	case RULE_OUTPUT:
		return item_may_matter(reading) ? gather_into(reading, &item->text) : SCAN_PASS;
	case RULE_OUTPUT_ERROR:
		item->failed = true;
		return gather_into(reading, &item->text);
	case RULE_DELTA:
		return begin_delta(reading);
	default:
		return SCAN_PASS;
	}
}

static bool is_of_tokens(enum rule_action action)
{
	return action == RULE_USAGE || action == RULE_STREAM || action == RULE_INDEX || action == RULE_CHOICE ||
	       action == RULE_FAILED;
}

static unsigned begin(void *context, const struct scan *scan, enum scan_kind kind)
{
	struct reading *reading = context;

	if (scan->depth == 0 && kind == SCAN_ARRAY) {
		reading->in_array = reading->form == FORM_JSON && dialect_provider(reading->dialect) == PROVIDER_gemini;
		return SCAN_PASS;
	}
	reading->action = find_rule(reading, scan);
	reading->target = NULL;
	reading->gather = NULL;
	if (reading->action == RULE_BODY)
		return item_may_matter(reading) ? SCAN_RAW : SCAN_PASS;
	if (reading->action == RULE_ERROR) {
		reading->facts.failed |= kind != SCAN_TOKEN;
		return SCAN_PASS;
	}
	if (reading->action == RULE_OUTPUT_ERROR)
		reading->item.failed |= kind != SCAN_TOKEN;
	if (kind == SCAN_STRING)
		return begin_string(reading);
	if (kind == SCAN_TOKEN)
		return is_of_tokens(reading->action) ? SCAN_TAKE : SCAN_PASS;
	if (reading->action == RULE_ITEM)
		item_reset(reading);
	return kind == SCAN_OBJECT && (reading->action == RULE_ITEM || reading->action == RULE_CHOICE_ITEM) ? SCAN_TAKE
													    : SCAN_PASS;
}

/* --- what values say -------------------------------------------------------------------------------------------- */

/* Names of plain letters alone: others are no provider's, and no key of a record. */
static bool says_token(struct bytes name)
{
	for (size_t i = 0; i < name.size; i++) {
		char c = name.data[i];
		if (!((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_'))
			return false;
	}
	for (size_t i = 0; i + 5 <= name.size; i++)
		if (name.data[i + 1] == 'o' && name.data[i + 2] == 'k' && (name.data[i] | 0x20) == 't' &&
		    name.data[i + 3] == 'e' && name.data[i + 4] == 'n')
			return true;
	return false;
}

/* Later numbers replace earlier ones: they are sums. */
static void set_usage(struct reading_facts *facts, struct bytes name, uint64_t value)
{
	unsigned i = 0;

	if (name.size >= READING_USAGE_NAME_SIZE || !says_token(name))
		return;
	while (i < facts->usage_count && !bytes_equal(bytes_of(facts->usage[i].name), name))
		i++;
	if (i == READING_USAGE_LIMIT)
		return;
	if (i == facts->usage_count) {
		facts->usage_count++;
		memcpy(facts->usage[i].name, name.data, name.size);
		facts->usage[i].name[name.size] = '\0';
	}
	facts->usage[i].value = value;
}

static void token(struct reading *reading, const struct scan *scan, struct bytes text)
{
	bool is_true = bytes_equal(text, BYTES("true"));
	uint64_t number = 0;
	bool is_number = text_decimal_parse(text, &number);

	if (reading->action == RULE_STREAM) {
		reading->facts.stream = is_true;
	} else if (reading->action == RULE_FAILED) {
		reading->item.failed = is_true;
	} else if (reading->action == RULE_USAGE && is_number) {
		set_usage(&reading->facts, scan_name(scan), number);
	} else if (reading->action == RULE_CHOICE && is_number) {
		reading->choice = number;
		reading->has_choice = true;
	} else if (reading->action == RULE_INDEX && is_number && reading->dialect == DIALECT_openai_chat) {
		reading->item.index = number;
		reading->item.has_index = true;
	} else if (reading->action == RULE_INDEX && is_number) {
		reading->index = number;
		reading->has_index = true;
	}
}

static void add_text(struct reading_text *target, struct bytes piece)
{
	size_t room = sizeof(target->data) - target->size, kept = piece.size < room ? piece.size : room;

	memcpy(target->data + target->size, piece.data, kept);
	target->size = (uint16_t)(target->size + kept);
	target->cut |= kept < piece.size;
}

static void text(void *context, const struct scan *scan, struct bytes piece, bool last)
{
	struct reading *reading = context;

	if (is_of_tokens(reading->action)) {
		token(reading, scan, piece);
		return;
	}
	if (reading->target) {
		add_text(reading->target, piece);
		reading->target->present |= last;
	} else if (reading->gather) {
		gathered_add(reading->gather, reading->budget, piece);
	} else if (reading->action == RULE_DELTA) {
		reading->held.limit = READING_HELD_LIMIT;
		buf_append_bytes(&reading->held, piece);
	}
	if (last && reading->action == RULE_TOOL && reading->target)
		reading->facts.tool_count++;
	if (last && reading->action == RULE_STOP)
		reading->finishing = true;
}

static void raw(void *context, struct bytes piece, bool last)
{
	struct reading *reading = context;

	(void)last;
	gathered_add(&reading->item.body, reading->budget, piece);
}

static void end(void *context, const struct scan *scan)
{
	struct reading *reading = context;
	enum rule_action action = find_rule(reading, scan);

	if (action == RULE_ITEM)
		message_item_ended(reading, scan->depth);
	else if (action == RULE_CHOICE_ITEM)
		message_choice_ended(reading);
}

static const struct scan_handler scan_handler = {.begin = begin, .text = text, .end = end, .raw = raw};

/* --- streams ---------------------------------------------------------------------------------------------------- */

static void event_data(void *context, struct bytes piece)
{
	struct reading *reading = context;

	for (size_t i = 0; i < piece.size && reading->data_size + i < sizeof(reading->head); i++)
		reading->head[reading->data_size + i] = piece.data[i];
	reading->data_size += piece.size;
	scan_feed(&reading->scan, piece);
}

static void begin_event(struct reading *reading)
{
	reading->data_size = 0;
	scan_begin(&reading->scan, &scan_handler, reading);
}

static void event_dispatched(void *context)
{
	struct reading *reading = context;
	struct bytes done = BYTES("[DONE]");

	if (reading->data_size == done.size && memcmp(reading->head, done.data, done.size) == 0) {
		message_done(reading);
	} else if (!scan_is_empty(&reading->scan)) {
		/* What a broken event seemed to say is not told: nobody can act on it either. */
		if (scan_end(&reading->scan)) {
			message_event_ended(reading);
		} else {
			reading->facts.malformed = true;
			reading->event.present = false;
			message_event_ended(reading);
		}
	}
	begin_event(reading);
}

static const struct sse_handler sse_handler = {.data = event_data, .dispatch = event_dispatched};

/* --- bodies ----------------------------------------------------------------------------------------------------- */

struct reading *reading_new(enum dialect dialect, enum reading_side side, struct reading_budget *budget,
			    reading_told *told, void *context)
{
	struct reading *reading = calloc(1, sizeof(*reading));

	if (!reading)
		return NULL;
	reading->dialect = dialect;
	reading->side = side;
	reading->budget = budget;
	reading->told = told;
	reading->context = context;
	reading->held.limit = READING_HELD_LIMIT;
	return reading;
}

void reading_free(struct reading *reading)
{
	if (!reading)
		return;
	for (unsigned i = 0; i < reading->slot_count; i++) {
		gathered_free(&reading->slots[i]->arguments, reading->budget);
		free(reading->slots[i]);
	}
	gathered_free(&reading->item.body, reading->budget);
	gathered_free(&reading->item.text, reading->budget);
	buf_free(&reading->held);
	free(reading->told_digests);
	free(reading->facts.tools);
	free(reading);
}

/* What a body is shows in its first byte; what its header says may be another thing than what the agent takes it for. */
static void choose_form(struct reading *reading, struct bytes *bytes)
{
	while (bytes->size > 0 &&
	       (bytes->data[0] == ' ' || bytes->data[0] == '\t' || bytes->data[0] == '\r' || bytes->data[0] == '\n')) {
		bytes->data++;
		bytes->size--;
	}
	if (bytes->size == 0)
		return;
	bool json = reading->side == READING_REQUEST || bytes->data[0] == '{' || bytes->data[0] == '[';
	reading->form = json ? FORM_JSON : FORM_STREAM;
	if (reading->side == READING_REQUEST)
		reading->rules = rules_request(reading->dialect);
	else
		reading->rules = json ? rules_answer(reading->dialect) : rules_event(reading->dialect);
	sse_begin(&reading->sse, &sse_handler, reading);
	begin_event(reading);
}

void reading_feed(struct reading *reading, struct bytes bytes)
{
	if (reading->form == FORM_UNKNOWN)
		choose_form(reading, &bytes);
	if (bytes.size == 0)
		return;
	if (reading->form == FORM_STREAM)
		sse_feed(&reading->sse, bytes);
	else if (!scan_feed(&reading->scan, bytes))
		reading->facts.malformed = true;
}

/* A whole answer, and a stream that ends without a word that ends it. */
static bool ends_well(const struct reading *reading)
{
	const struct reading_facts *facts = &reading->facts;

	if (reading->side == READING_REQUEST)
		return true;
	if (reading->dialect == DIALECT_anthropic_messages || reading->dialect == DIALECT_openai_responses)
		return reading->form == FORM_JSON && facts->response_id.present;
	return facts->stop.present;
}

void reading_finish(struct reading *reading, bool whole)
{
	struct reading_facts *facts = &reading->facts;

	if (reading->form == FORM_JSON)
		whole = scan_end(&reading->scan) && whole;
	else if (reading->form == FORM_STREAM)
		whole = sse_is_between(&reading->sse) && whole;
	else
		whole = false;
	if (whole && !facts->malformed && ends_well(reading))
		facts->complete = true;
	if (!facts->complete && !facts->failed)
		facts->malformed = true;
}

void reading_spoil(struct reading *reading)
{
	reading->facts.malformed = true;
}

const struct reading_facts *reading_facts(const struct reading *reading)
{
	return &reading->facts;
}
