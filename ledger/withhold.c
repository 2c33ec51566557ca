#include "ledger/withhold.h"

enum { TEXT_LIMIT = 4 << 20 };

struct withholder {
	const struct redactor *redactor;
	struct arena *arena;
	struct buf text;
	redactions what;
};

static struct withholder begin(const struct redactor *redactor, struct arena *arena)
{
	return (struct withholder){.redactor = redactor, .arena = arena, .text = {.limit = TEXT_LIMIT}};
}

/* What was found, and no memory of it left behind. */
static redactions end(struct withholder *withholder)
{
	buf_free(&withholder->text);
	return withholder->what;
}

static void replace(struct withholder *withholder, struct bytes *value)
{
	if (!withholder->text.failed)
		*value = arena_copy(withholder->arena, buf_bytes(&withholder->text));
	/* A secret that there is no room to cut out goes with all that is around it. */
	if (withholder->text.failed || !value->data)
		*value = BYTES("[withheld]");
}

static void name(struct withholder *withholder, struct bytes *value)
{
	if (value->data && redact(withholder->redactor, *value, REDACT_NAME, &withholder->text, &withholder->what))
		replace(withholder, value);
}

static void argument(struct withholder *withholder, struct bytes before, struct bytes *value)
{
	if (redact_argument(withholder->redactor, before, *value, &withholder->text, &withholder->what))
		replace(withholder, value);
}

/* The vector may be somebody else's: it is copied before an element changes. */
static void vector(struct withholder *withholder, struct bytes **items, size_t count)
{
	struct bytes before = BYTES_NONE;
	bool copied = false;

	for (size_t i = 0; i < count; i++) {
		struct bytes item = (*items)[i], given = item;
		argument(withholder, before, &item);
		before = given;
		if (item.data == given.data)
			continue;
		struct bytes *copy = copied ? *items : arena_alloc(withholder->arena, count * sizeof(*copy));
		/* Without a copy the element is changed where it stands: it must not be recorded as it is. */
		if (copy && !copied)
			memcpy(copy, *items, count * sizeof(*copy));
		*items = copy ? copy : *items;
		copied = true;
		(*items)[i] = item;
	}
}

static void object(struct withholder *withholder, struct effect_object *object)
{
	name(withholder, &object->path);
	name(withholder, &object->host_path);
	name(withholder, &object->as_given);
}

static void peer(struct withholder *withholder, struct effect_peer *peer)
{
	name(withholder, &peer->path);
	object(withholder, &peer->object);
}

static void value(struct withholder *withholder, struct effect_value *value)
{
	if (value->type == VALUE_BYTES)
		argument(withholder, BYTES_NONE, &value->bytes);
	else if (value->type == VALUE_LIST)
		vector(withholder, &value->list.items, value->list.count);
}

void withhold_effect(const struct redactor *redactor, struct arena *arena, struct effect *effect)
{
	struct withholder withholder = begin(redactor, arena);

	name(&withholder, &effect->process.executable);
	name(&withholder, &effect->target.executable);
	object(&withholder, &effect->object);
	object(&withholder, &effect->to);
	name(&withholder, &effect->to_text);
	peer(&withholder, &effect->peer);
	peer(&withholder, &effect->local);
	vector(&withholder, &effect->argv, effect->has_argv ? effect->argv_count : 0);
	name(&withholder, &effect->cwd);
	object(&withholder, &effect->image.object);
	vector(&withholder, &effect->image.argv, effect->image.has_argv ? effect->image.argv_count : 0);
	for (size_t i = 0; i < effect->image.interpreter_count; i++)
		name(&withholder, &effect->image.interpreters[i]);
	for (size_t i = 0; i < effect->value_count; i++)
		value(&withholder, &effect->values[i]);
	name(&withholder, &effect->note);
	effect->withheld |= end(&withholder);
}

void withhold_run_start(const struct redactor *redactor, struct arena *arena, struct record_run_start *start)
{
	struct withholder withholder = begin(redactor, arena);

	vector(&withholder, &start->argv, start->argv_count);
	name(&withholder, &start->cwd);
	for (size_t i = 0; i < start->descriptor_count; i++) {
		name(&withholder, &start->descriptors[i].path);
		peer(&withholder, &start->descriptors[i].peer);
	}
	start->withheld |= end(&withholder);
}

void withhold_process(const struct redactor *redactor, struct arena *arena, struct record_process *process)
{
	struct withholder withholder = begin(redactor, arena);

	name(&withholder, &process->executable);
	process->withheld |= end(&withholder);
}

void withhold_reads(const struct redactor *redactor, struct arena *arena, struct record_reads *reads,
		    struct record_reads_item *items)
{
	struct withholder withholder = begin(redactor, arena);

	for (size_t i = 0; i < reads->count; i++)
		name(&withholder, &items[i].path);
	reads->withheld |= end(&withholder);
}
