/*
 * The Merkle tree of RFC 6962 section 2.1 over SHA-256: appending to it, its root, and proofs.
 */
#pragma once

#include <stdbool.h>

#include "base/digest.h"

enum { MERKLE_LEVELS = 64 };

/*
 * A tree that only grows, by the roots of its largest complete parts: what is needed to append and to know the root, at
 * most one digest a level. Plain data: a copy is a tree of its own, and all zeroes are the empty one.
 */
struct merkle {
	uint64_t size;
	unsigned count;
	struct digest parts[MERKLE_LEVELS]; /* from the left, sizes falling */
};

/* SHA-256(0x00 ‖ record). */
bool merkle_leaf(struct hasher *hasher, struct bytes record, struct digest *out);
bool merkle_append(struct merkle *tree, struct hasher *hasher, const struct digest *leaf);
/* Of an empty tree SHA-256(""). */
bool merkle_root(const struct merkle *tree, struct hasher *hasher, struct digest *out);

/* Gives the leaf of that index, for making proofs. */
typedef bool (*merkle_leaf_source)(void *context, uint64_t index, struct digest *out);

/* A proof: digests from the leaf, or from the smaller tree, upwards. */
struct merkle_proof {
	unsigned count;
	struct digest steps[MERKLE_LEVELS + 1];
};

/*
 * Proofs that leaf `index` is in the first `size` leaves (section 2.1.1), and that the tree of `old` leaves is the start of
 * that of `size` (2.1.2; 0 < old <= size). They ask for each leaf at most once, and hold one digest a
 * level.
 */
bool merkle_prove_leaf(struct hasher *hasher, merkle_leaf_source source, void *context, uint64_t index, uint64_t size,
		       struct merkle_proof *out);
bool merkle_prove_growth(struct hasher *hasher, merkle_leaf_source source, void *context, uint64_t old, uint64_t size,
			 struct merkle_proof *out);
/* RFC 9162 sections 2.1.3.2 and 2.1.4.2. */
bool merkle_check_leaf(struct hasher *hasher, const struct merkle_proof *proof, uint64_t index, uint64_t size,
		       const struct digest *leaf, const struct digest *root);
bool merkle_check_growth(struct hasher *hasher, const struct merkle_proof *proof, uint64_t old, uint64_t size,
			 const struct digest *old_root, const struct digest *root);
