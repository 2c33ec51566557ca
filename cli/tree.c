#include "tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "document.h"
#include "effect_text.h"
#include "ledger/claim.h"

struct loading {
	struct tree *tree;
	struct arena arena;
	struct err *err;
};

static size_t *place_of(struct tree *tree, uint64_t id)
{
	size_t at = (size_t)(id * 0x9e3779b97f4a7c15ULL >> 20) & (tree->place_count - 1);
	while (tree->places[at] && tree->items[tree->places[at] - 1].id != id)
		at = (at + 1) & (tree->place_count - 1);
	return &tree->places[at];
}

static bool grow(struct tree *tree)
{
	size_t capacity = tree->capacity ? tree->capacity * 2 : 64;
	struct tree_process *items = reallocarray(tree->items, capacity, sizeof(*items));
	if (!items)
		return false;
	tree->items = items;
	size_t *places = calloc(capacity * 2, sizeof(*places));
	if (!places)
		return false;
	free(tree->places);
	tree->places = places;
	tree->place_count = capacity * 2;
	tree->capacity = capacity;
	for (size_t i = 0; i < tree->count; i++)
		*place_of(tree, items[i].id) = i + 1;
	return true;
}

/* The process with this id; made when a record speaks of one that no record introduced. NULL: out of memory. */
static struct tree_process *process_of(struct tree *tree, uint64_t id)
{
	if (tree->count == tree->capacity && !grow(tree))
		return NULL;
	size_t *place = place_of(tree, id);
	if (!*place) {
		tree->items[tree->count++] =
		    (struct tree_process){.id = id, .class = claim_class(CLAIM_process, CLASS_external)};
		*place = tree->count;
	}
	return &tree->items[*place - 1];
}

static struct bytes keep(struct bytes text)
{
	char *copy = malloc(text.size + 1);
	if (!copy)
		return BYTES_NONE;
	if (text.size)
		memcpy(copy, text.data, text.size);
	copy[text.size] = '\0';
	return (struct bytes){copy, text.size};
}

static void drop(struct bytes *text)
{
	free((void *)(uintptr_t)text->data);
	*text = BYTES_NONE;
}

/* As much as there is room for, but whole characters. */
static void copy_characters(char *out, size_t size, const char *text)
{
	size_t length = strlen(text);

	if (length >= size)
		for (length = size - 1; length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80; length--)
			;
	memcpy(out, text, length);
	out[length] = '\0';
}

static void keep_escaped(char *out, size_t size, const char *text)
{
	CLEANUP_BUF struct buf escaped = {.limit = 4096};
	text_for_terminal(&escaped, bytes_of(text));
	copy_characters(out, size, escaped.data ? escaped.data : "");
}

static void take_process(struct loading *loading, struct tree_process *process, const struct document *record)
{
	document_uint(record, "parent", &process->parent);
	process->pid = document_int(record, "pid", 0);
	keep_escaped(process->lineage, sizeof(process->lineage), document_text(record, "lineage"));
	struct bytes exe = document_bytes(record, "exe", &loading->arena);
	if (exe.data && !process->exe.data)
		process->exe = keep(exe);
}

static void take_exec(struct loading *loading, struct tree_process *process, uint64_t seq,
		      const struct document *effect)
{
	struct tree_exec *execs = reallocarray(process->execs, process->exec_count + 1, sizeof(*execs));
	CLEANUP_BUF struct buf text = {.limit = 1 << 20};
	if (!execs)
		return;
	process->execs = execs;
	struct tree_exec *exec = &execs[process->exec_count++];
	*exec = (struct tree_exec){.seq = seq};
	const char *state = document_text(document_get(effect, "result"), "state");
	exec->ok = state && strcmp(state, "ok") == 0;
	effect_object_text(&text, effect, &loading->arena);
	exec->command = keep(buf_bytes(&text));
	buf_reset(&text);
	effect_result_text(&text, effect);
	copy_characters(exec->result, sizeof(exec->result), text.data ? text.data : "");
	struct bytes image = document_bytes(document_get(effect, "image"), "path", &loading->arena);
	if (!image.data)
		image = document_bytes(effect, "path", &loading->arena);
	if (image.data)
		exec->image = keep(image);
}

static void take_exit(struct tree_process *process, const struct document *effect)
{
	CLEANUP_BUF struct buf text = {.limit = 4096};
	effect_status_text(&text, document_get(effect, "status"));
	drop(&process->status);
	process->status = keep(buf_bytes(&text));
}

static bool load_record(void *context, uint64_t seq, const struct record_head *head, struct bytes json)
{
	struct loading *loading = context;
	bool exec = head->type == RECORD_effect && head->kind == EFFECT_proc_exec;
	bool exit = head->type == RECORD_effect && head->kind == EFFECT_proc_exit;
	if ((head->type != RECORD_effect && head->type != RECORD_process) || head->process == 0)
		return true;
	struct tree_process *process = process_of(loading->tree, head->process);
	if (!process) {
		err_set(loading->err, ENOMEM, "tree");
		return false;
	}
	if (!process->pid)
		process->pid = head->pid;
	enum record_class recorded = claim_class_recorded(json);
	process->class =
	    claim_weaker(process->class, head->type == RECORD_effect ? claim_effect_class(recorded, head->how)
								     : claim_class(CLAIM_process, recorded));
	if (head->type == RECORD_effect) {
		process->effects++;
		process->failed += head->state == RESULT_FAILED || head->state == RESULT_REFUSED;
		if (!exec && !exit)
			return true;
	}
	struct document *record = document_parse(json, loading->err);
	if (!record)
		return false;
	arena_reset(&loading->arena);
	if (exec)
		take_exec(loading, process, seq, record);
	else if (exit)
		take_exit(process, record);
	else
		take_process(loading, process, record);
	document_free(record);
	return true;
}

static void link_children(struct tree *tree)
{
	for (size_t i = 0; i < tree->count; i++) {
		struct tree_process *process = &tree->items[i];
		size_t parent = process->parent ? *place_of(tree, process->parent) : 0;
		/* A parent is introduced before its children: what a damaged file says otherwise cannot make a circle. */
		if (parent == 0 || parent - 1 >= i)
			continue;
		struct tree_process *above = &tree->items[parent - 1];
		process->has_parent = true;
		if (above->last_child)
			tree->items[above->last_child - 1].next = i + 1;
		else
			above->first_child = i + 1;
		above->last_child = i + 1;
	}
}

bool tree_load(struct tree *tree, struct run *run, struct err *err)
{
	struct loading loading = {.tree = tree, .err = err};
	*tree = (struct tree){.count = 0};
	if (!arena_init(&loading.arena, 1 << 20) || !grow(tree))
		err_set(err, ENOMEM, "tree");
	bool good = !err_is_set(err) && run_visit(run, NULL, load_record, &loading, err) && !err_is_set(err);
	arena_free(&loading.arena);
	if (!good) {
		tree_free(tree);
		return false;
	}
	link_children(tree);
	return true;
}

void tree_free(struct tree *tree)
{
	for (size_t i = 0; i < tree->count; i++) {
		struct tree_process *process = &tree->items[i];
		drop(&process->exe);
		drop(&process->status);
		for (size_t j = 0; j < process->exec_count; j++) {
			drop(&process->execs[j].image);
			drop(&process->execs[j].command);
		}
		free(process->execs);
	}
	free(tree->items);
	free(tree->places);
	*tree = (struct tree){.count = 0};
}
