/*
 * When a call is whole, by dialect, and telling of it.
 */
#include <stdlib.h>

#include "reading_state.h"

void item_reset(struct reading *reading)
{
	struct item *item = &reading->item;

	item->kind.present = item->id.present = item->name.present = false;
	item->failed = item->has_index = false;
	gathered_reset(&item->body, reading->budget);
	gathered_reset(&item->text, reading->budget);
}

struct slot *slot_find(struct reading *reading, uint64_t choice, uint64_t index)
{
	for (unsigned i = 0; i < reading->slot_count; i++)
		if (reading->slots[i]->index == index && reading->slots[i]->choice == choice)
			return reading->slots[i];
	return NULL;
}

struct slot *slot_make(struct reading *reading, uint64_t choice, uint64_t index)
{
	struct slot *slot = slot_find(reading, choice, index);

	if (slot)
		return slot;
	if (reading->slot_count < READING_CALL_LIMIT)
		slot = calloc(1, sizeof(*slot));
	if (!slot) {
		reading->facts.lost = true;
		return NULL;
	}
	slot->choice = choice;
	slot->index = index;
	reading->slots[reading->slot_count++] = slot;
	return slot;
}

/* --- telling ---------------------------------------------------------------------------------------------------- */

/* Was exactly this told before? The Responses dialect says each call up to three times. */
static bool told_before(struct reading *reading, const struct call_sighting *sighting)
{
	CLEANUP_BUF struct buf whole = {.limit = 4096};
	struct digest digest;

	if (reading->dialect != DIALECT_openai_responses || !sighting->id.data)
		return false;
	buf_append_bytes(&whole, sighting->id);
	buf_append_char(&whole, '\0');
	buf_append_bytes(&whole, sighting->tool);
	buf_append_char(&whole, '\0');
	buf_append(&whole, sighting->arguments.sha256, sizeof(sighting->arguments.sha256));
	if (whole.failed || !digest_of(buf_bytes(&whole), &digest))
		return false;
	for (unsigned i = 0; i < reading->told_count; i++)
		if (digest_equal(&reading->told_digests[i], &digest))
			return true;
	if (!reading->told_digests)
		reading->told_digests = calloc(READING_CALL_LIMIT, sizeof(*reading->told_digests));
	if (reading->told_digests && reading->told_count < READING_CALL_LIMIT)
		reading->told_digests[reading->told_count++] = digest;
	return false;
}

static struct bytes present(const struct reading_text *text)
{
	return text->present ? reading_text_bytes(text) : BYTES_NONE;
}

static void tell_call(struct reading *reading, const struct reading_text *id, struct bytes name,
		      struct gathered *arguments)
{
	struct call_sighting sighting = {
	    .lane = CALL_LANE_wire, .event = CALL_begin, .kind = TOOL_other, .tool = name, .id = present(id)};

	if (!name.data || name.size == 0 || id->cut) {
		reading->facts.malformed = true;
		return;
	}
	if (!gathered_end(arguments, &sighting.arguments)) {
		reading->facts.lost = true;
		return;
	}
	if (told_before(reading, &sighting))
		return;
	if (reading->facts.calls == READING_CALL_LIMIT) {
		reading->facts.lost = true;
		return;
	}
	reading->told(reading->context, &sighting, reading->facts.calls++);
}

static void tell_slot(struct reading *reading, struct slot *slot)
{
	if (slot->told)
		return;
	slot->told = true;
	tell_call(reading, &slot->id, slot->name.cut ? BYTES_NONE : present(&slot->name), &slot->arguments);
}

static void tell_item(struct reading *reading, struct gathered *arguments)
{
	const struct item *item = &reading->item;
	struct bytes name = item->name.cut ? BYTES_NONE : present(&item->name);

	if (!item->name.present && text_is(&item->kind, "local_shell_call"))
		name = BYTES("local_shell");
	tell_call(reading, &item->id, name, arguments);
}

static void tell_result(struct reading *reading)
{
	struct item *item = &reading->item;
	struct gathered *output = item->text.begun ? &item->text : &item->body;
	struct call_sighting sighting = {.lane = CALL_LANE_wire,
					 .event = CALL_end,
					 .kind = TOOL_other,
					 .id = present(&item->id),
					 .tool = present(&item->name),
					 .failed = item->failed};

	if ((!sighting.id.data && !sighting.tool.data) || (item->id.present && item->id.cut) ||
	    (item->name.present && item->name.cut)) {
		reading->facts.malformed = true;
		return;
	}
	if (!gathered_end(output, &sighting.output)) {
		reading->facts.lost = true;
		return;
	}
	sighting.has_exit = reading_exit_code(sighting.output.kept, &sighting.exit_code);
	sighting.failed |= sighting.has_exit && sighting.exit_code != 0;
	reading->told(reading->context, &sighting, reading->facts.calls++);
}

/* --- items ------------------------------------------------------------------------------------------------------ */

/* Calls that the agent carries out; the others (server_tool_use, web_search_call …) are the provider's own. */
static const char *const call_kinds[] = {"tool_use", "function_call", "custom_tool_call", "local_shell_call"};
static const char *const result_kinds[] = {
    "tool_result",         "tool", "function_call_output", "custom_tool_call_output", "local_shell_call_output",
    "mcp_tool_call_output"};
enum {
	CALL_KINDS = sizeof(call_kinds) / sizeof(call_kinds[0]),
	RESULT_KINDS = sizeof(result_kinds) / sizeof(result_kinds[0])
};

static bool kind_is_among(const struct reading_text *kind, const char *const *kinds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (text_is(kind, kinds[i]))
			return true;
	return false;
}

/* Gemini's calls and results, and Chat's calls, are what they are by where they stand. */
static bool has_kinds(const struct reading *reading)
{
	if (dialect_provider(reading->dialect) == PROVIDER_gemini)
		return false;
	return reading->side == READING_REQUEST || reading->dialect != DIALECT_openai_chat;
}

static bool kind_matters(const struct reading *reading)
{
	const struct reading_text *kind = &reading->item.kind;

	if (!has_kinds(reading))
		return true;
	return reading->side == READING_REQUEST ? kind_is_among(kind, result_kinds, RESULT_KINDS)
						: kind_is_among(kind, call_kinds, CALL_KINDS);
}

bool item_may_matter(const struct reading *reading)
{
	return !reading->item.kind.present || kind_matters(reading);
}

/* What Chat says of one call in this event goes to what was said of it before. */
static void merge_chat(struct reading *reading)
{
	struct item *item = &reading->item;
	/* Servers that send whole calls leave the index out. */
	uint64_t index = item->has_index ? item->index : reading->slot_count;
	struct slot *slot = slot_make(reading, reading->has_choice ? reading->choice : 0, index);

	if (slot && !slot->id.present)
		slot->id = item->id;
	if (slot && !slot->name.present)
		slot->name = item->name;
	if (slot && reading->held.size > 0)
		gathered_add(&slot->arguments, reading->budget, buf_bytes(&reading->held));
	if (reading->held.failed)
		reading->facts.lost = true;
	buf_reset(&reading->held);
}

void message_item_ended(struct reading *reading, unsigned depth)
{
	if (reading->side == READING_RESPONSE && reading->dialect == DIALECT_openai_chat &&
	    reading->form == FORM_STREAM) {
		merge_chat(reading);
		return;
	}
	/* An item that is the event's own is looked at when the event is whole: what it means stands beside it. */
	if (depth == 1 && reading->form == FORM_STREAM)
		return;
	if (!kind_matters(reading))
		return;
	if (reading->side == READING_REQUEST)
		tell_result(reading);
	else
		tell_item(reading, reading->item.text.begun ? &reading->item.text : &reading->item.body);
}

void message_choice_ended(struct reading *reading)
{
	uint64_t choice = reading->has_choice ? reading->choice : 0;

	for (unsigned i = 0; reading->finishing && i < reading->slot_count; i++)
		if (reading->slots[i]->choice == choice)
			tell_slot(reading, reading->slots[i]);
	reading->finishing = reading->has_choice = false;
}

/* --- events ----------------------------------------------------------------------------------------------------- */

static void anthropic_block_begins(struct reading *reading)
{
	struct item *item = &reading->item;

	/* "tool_use" alone is the agent's; fragments of others (server_tool_use) are let go by a slot that is told. */
	if (!item->kind.present ||
	    !bytes_equal(BYTES("tool_use"),
			 item->kind.size >= 8 ? (struct bytes){item->kind.data + item->kind.size - 8, 8} : BYTES_NONE))
		return;
	if (slot_find(reading, 0, reading->index)) {
		reading->facts.malformed =
		    true; /* a block of this index was there: which one the fragments mean is open */
		return;
	}
	struct slot *slot = slot_make(reading, 0, reading->index);
	if (!slot)
		return;
	slot->told = !text_is(&item->kind, "tool_use");
	slot->id = item->id;
	slot->name = item->name;
	slot->arguments = item->body;
	item->body = (struct gathered){0};
}

static void anthropic_event(struct reading *reading)
{
	struct slot *slot = slot_find(reading, 0, reading->index);

	if (text_is(&reading->event, "content_block_start")) {
		anthropic_block_begins(reading);
	} else if (text_is(&reading->event, "content_block_delta") && reading->held.size > 0 && slot) {
		if (!slot->has_delta)
			gathered_reset(&slot->arguments, reading->budget);
		slot->has_delta = true;
		gathered_add(&slot->arguments, reading->budget, buf_bytes(&reading->held));
	} else if (text_is(&reading->event, "content_block_stop") && slot) {
		tell_slot(reading, slot);
	} else if (text_is(&reading->event, "message_stop")) {
		for (unsigned i = 0; i < reading->slot_count; i++)
			tell_slot(reading, reading->slots[i]);
		reading->facts.complete = true;
	} else if (text_is(&reading->event, "error")) {
		reading->facts.failed = true;
	}
}

static void responses_event(struct reading *reading)
{
	struct item *item = &reading->item;
	struct gathered *arguments = item->text.begun ? &item->text : &item->body;
	struct slot *slot;

	if (text_is(&reading->event, "response.output_item.added") && kind_matters(reading)) {
		slot = slot_make(reading, 0, reading->index);
		if (slot) {
			slot->id = item->id;
			slot->name = item->name;
		}
	} else if (text_is(&reading->event, "response.function_call_arguments.done") ||
		   text_is(&reading->event, "response.custom_tool_call_input.done")) {
		slot = slot_find(reading, 0, reading->index);
		if (slot)
			tell_call(reading, &slot->id, slot->name.cut ? BYTES_NONE : present(&slot->name), arguments);
	} else if (text_is(&reading->event, "response.output_item.done") && kind_matters(reading)) {
		tell_item(reading, arguments);
	} else if (text_is(&reading->event, "response.completed") || text_is(&reading->event, "response.incomplete")) {
		reading->facts.complete = true;
	} else if (text_is(&reading->event, "response.failed") || text_is(&reading->event, "error")) {
		reading->facts.failed = true;
	}
}

void message_event_ended(struct reading *reading)
{
	if (reading->held.failed)
		reading->facts.lost = true;
	if (reading->dialect == DIALECT_anthropic_messages)
		anthropic_event(reading);
	else if (reading->dialect == DIALECT_openai_responses)
		responses_event(reading);
	item_reset(reading);
	buf_reset(&reading->held);
	reading->event.present = reading->has_index = reading->has_choice = reading->finishing = false;
	reading->index = reading->choice = 0;
}

void message_done(struct reading *reading)
{
	for (unsigned i = 0; reading->dialect == DIALECT_openai_chat && i < reading->slot_count; i++)
		tell_slot(reading, reading->slots[i]);
	if (reading->dialect == DIALECT_openai_chat)
		reading->facts.complete = true;
}
