/*
 * SHA-256 (FIPS 180-4), by OpenSSL: libsodium's is portable and slow.
 */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"
#include "base/err.h"

enum { DIGEST_SIZE = 32, DIGEST_TEXT_SIZE = sizeof("sha256:") + 2 * DIGEST_SIZE };

struct digest {
	uint8_t bytes[DIGEST_SIZE];
};

/* For many digests, one after the other. */
struct hasher;

/* Owned by the caller; NULL when there is no memory, or the library refuses. */
struct hasher *hasher_new(struct err *err);
void hasher_free(struct hasher *hasher);
/* Begin a digest, whatever was begun before; add to it; end it. A failure shows at the end, as false. */
void hasher_begin(struct hasher *hasher);
void hasher_add(struct hasher *hasher, struct bytes data);
bool hasher_end(struct hasher *hasher, struct digest *out);

/* One digest of one piece. False when the library refuses. */
bool digest_of(struct bytes data, struct digest *out);
/* Of a descriptor's content from where it stands, to its end; `size` (may be NULL) receives how much that was. */
bool digest_of_file(int fd, struct digest *out, uint64_t *size, struct err *err);

static inline bool digest_equal(const struct digest *a, const struct digest *b)
{
	return memcmp(a->bytes, b->bytes, DIGEST_SIZE) == 0;
}

static inline struct bytes digest_bytes(const struct digest *digest)
{
	return (struct bytes){(const char *)digest->bytes, DIGEST_SIZE};
}

/* "sha256:" and 64 digits, as in JSON; NUL-terminated. */
void digest_text(const struct digest *digest, char out[DIGEST_TEXT_SIZE]);
/* Exactly that form. */
bool digest_parse(struct bytes text, struct digest *out);
