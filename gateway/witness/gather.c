#include "gather.h"

#include <string.h>

static void begin(struct gathered *gathered)
{
	gathered->begun = true;
	if (!gathered->hasher)
		gathered->hasher = hasher_new(NULL);
	if (gathered->hasher)
		hasher_begin(gathered->hasher);
	else
		gathered->failed = true;
	gathered->kept.limit = READING_KEPT_LIMIT;
}

static void keep(struct gathered *gathered, struct reading_budget *budget, struct bytes piece)
{
	/* A true prefix or nothing more: once something was left out, so is the rest. */
	if (gathered->kept.size != gathered->size || piece.size == 0)
		return;
	size_t room = READING_KEPT_LIMIT - gathered->kept.size, left = budget->limit - budget->used;
	if (room > left)
		room = left;
	if (piece.size > room)
		piece.size = room;
	buf_append_bytes(&gathered->kept, piece);
	if (gathered->kept.failed)
		return;
	budget->used += piece.size;
	gathered->charged += piece.size;
}

void gathered_add(struct gathered *gathered, struct reading_budget *budget, struct bytes piece)
{
	if (!gathered->begun)
		begin(gathered);
	if (gathered->failed)
		return;
	hasher_add(gathered->hasher, piece);
	keep(gathered, budget, piece);
	gathered->size += piece.size;
}

void gathered_reset(struct gathered *gathered, struct reading_budget *budget)
{
	budget->used -= gathered->charged;
	gathered->charged = 0;
	gathered->begun = gathered->failed = false;
	gathered->size = 0;
	buf_reset(&gathered->kept);
}

void gathered_free(struct gathered *gathered, struct reading_budget *budget)
{
	budget->used -= gathered->charged;
	hasher_free(gathered->hasher);
	buf_free(&gathered->kept);
	*gathered = (struct gathered){0};
}

bool gathered_end(struct gathered *gathered, struct call_bytes *out)
{
	struct digest digest;

	if (!gathered->begun)
		begin(gathered);
	if (gathered->failed || !hasher_end(gathered->hasher, &digest))
		return false;
	gathered->failed = true; /* no more pieces */
	*out = (struct call_bytes){.present = true, .kept = buf_bytes(&gathered->kept), .size = gathered->size};
	memcpy(out->sha256, digest.bytes, sizeof(out->sha256));
	return true;
}
