#include "base/merkle.h"

bool merkle_leaf(struct hasher *hasher, struct bytes record, struct digest *out)
{
	hasher_begin(hasher);
	hasher_add(hasher, (struct bytes){"\0", 1});
	hasher_add(hasher, record);
	return hasher_end(hasher, out);
}

static bool node(struct hasher *hasher, const struct digest *left, const struct digest *right, struct digest *out)
{
	hasher_begin(hasher);
	hasher_add(hasher, (struct bytes){"\1", 1});
	hasher_add(hasher, digest_bytes(left));
	hasher_add(hasher, digest_bytes(right));
	return hasher_end(hasher, out);
}

bool merkle_append(struct merkle *tree, struct hasher *hasher, const struct digest *leaf)
{
	struct digest whole = *leaf;

	if (tree->size == UINT64_MAX || tree->count >= MERKLE_LEVELS)
		return false;
	/* As many parts become one as the size has ones at its end. */
	for (uint64_t size = tree->size; size & 1; size >>= 1)
		if (!node(hasher, &tree->parts[--tree->count], &whole, &whole))
			return false;
	tree->parts[tree->count++] = whole;
	tree->size++;
	return true;
}

bool merkle_root(const struct merkle *tree, struct hasher *hasher, struct digest *out)
{
	if (tree->size == 0)
		return digest_of(BYTES(""), out);
	*out = tree->parts[tree->count - 1];
	for (unsigned i = tree->count - 1; i > 0; i--)
		if (!node(hasher, &tree->parts[i - 1], out, out))
			return false;
	return true;
}

/* Of leaves [start, end). */
static bool root_of(struct hasher *hasher, merkle_leaf_source source, void *context, uint64_t start, uint64_t end,
		    struct digest *out)
{
	struct merkle tree = {.size = 0};
	struct digest leaf;

	for (uint64_t i = start; i < end; i++)
		if (!source(context, i, &leaf) || !merkle_append(&tree, hasher, &leaf))
			return false;
	return merkle_root(&tree, hasher, out);
}

/* The largest power of two below `size`, which is at least 2. */
static uint64_t left_size(uint64_t size)
{
	return UINT64_C(1) << (63 - __builtin_clzll(size - 1));
}

/*
 * Both proofs walk down from the root to where the answer lies, and take the other side of each fork: found from the top,
 * said from the bottom.
 */
static bool add_step(struct merkle_proof *proof, struct hasher *hasher, merkle_leaf_source source, void *context,
		     uint64_t start, uint64_t end)
{
	return proof->count < sizeof(proof->steps) / sizeof(proof->steps[0]) &&
	       root_of(hasher, source, context, start, end, &proof->steps[proof->count++]);
}

static void turn_round(struct merkle_proof *proof)
{
	for (unsigned i = 0; i < proof->count / 2; i++) {
		struct digest kept = proof->steps[i];
		proof->steps[i] = proof->steps[proof->count - 1 - i];
		proof->steps[proof->count - 1 - i] = kept;
	}
}

bool merkle_prove_leaf(struct hasher *hasher, merkle_leaf_source source, void *context, uint64_t index, uint64_t size,
		       struct merkle_proof *out)
{
	uint64_t start = 0, end = size;

	out->count = 0;
	if (index >= size)
		return false;
	while (end - start > 1) {
		uint64_t middle = start + left_size(end - start);
		bool left = index < middle;
		if (!add_step(out, hasher, source, context, left ? middle : start, left ? end : middle))
			return false;
		if (left)
			end = middle;
		else
			start = middle;
	}
	turn_round(out);
	return true;
}

bool merkle_prove_growth(struct hasher *hasher, merkle_leaf_source source, void *context, uint64_t old, uint64_t size,
			 struct merkle_proof *out)
{
	uint64_t start = 0, end = size;

	out->count = 0;
	if (old == 0 || old > size)
		return false;
	/* Until the part is one that the old tree had whole. */
	while (end != old) {
		uint64_t middle = start + left_size(end - start);
		bool left = old <= middle;
		if (!add_step(out, hasher, source, context, left ? middle : start, left ? end : middle))
			return false;
		if (left)
			end = middle;
		else
			start = middle;
	}
	/* The old root itself is known to whoever asks. */
	if (start > 0 && !add_step(out, hasher, source, context, start, end))
		return false;
	turn_round(out);
	return true;
}

bool merkle_check_leaf(struct hasher *hasher, const struct merkle_proof *proof, uint64_t index, uint64_t size,
		       const struct digest *leaf, const struct digest *root)
{
	struct digest found = *leaf;

	if (index >= size)
		return false;
	uint64_t at = index, last = size - 1;
	for (unsigned i = 0; i < proof->count; i++) {
		if (last == 0)
			return false;
		if (at & 1 || at == last) {
			if (!node(hasher, &proof->steps[i], &found, &found))
				return false;
			for (; !(at & 1) && at != 0; at >>= 1)
				last >>= 1;
		} else if (!node(hasher, &found, &proof->steps[i], &found)) {
			return false;
		}
		at >>= 1;
		last >>= 1;
	}
	return last == 0 && digest_equal(&found, root);
}

bool merkle_check_growth(struct hasher *hasher, const struct merkle_proof *proof, uint64_t old, uint64_t size,
			 const struct digest *old_root, const struct digest *root)
{
	if (old == 0 || old > size)
		return false;
	if (old == size)
		return proof->count == 0 && digest_equal(old_root, root);
	unsigned used = 0;
	bool whole = (old & (old - 1)) == 0;
	if (!whole && proof->count == 0)
		return false;
	struct digest before = whole ? *old_root : proof->steps[used++];
	struct digest after = before;
	uint64_t at = old - 1, last = size - 1;
	for (; at & 1; at >>= 1)
		last >>= 1;
	for (; used < proof->count; used++) {
		const struct digest *step = &proof->steps[used];
		if (last == 0)
			return false;
		if (at & 1 || at == last) {
			if (!node(hasher, step, &before, &before) || !node(hasher, step, &after, &after))
				return false;
			for (; !(at & 1) && at != 0; at >>= 1)
				last >>= 1;
		} else if (!node(hasher, &after, step, &after)) {
			return false;
		}
		at >>= 1;
		last >>= 1;
	}
	return last == 0 && digest_equal(&before, old_root) && digest_equal(&after, root);
}
