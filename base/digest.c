#include "base/digest.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>

#include "base/fd.h"
#include "base/text.h"

struct hasher {
	EVP_MD_CTX *context; /* owned */
	EVP_MD *algorithm;   /* owned; fetched once, which costs more than a short digest */
	bool failed;
};

struct hasher *hasher_new(struct err *err)
{
	struct hasher *hasher = calloc(1, sizeof(*hasher));

	if (hasher) {
		hasher->context = EVP_MD_CTX_new();
		hasher->algorithm = EVP_MD_fetch(NULL, "SHA256", NULL);
	}
	if (!hasher || !hasher->context || !hasher->algorithm) {
		hasher_free(hasher);
		err_set(err, 0, "SHA-256 is not to be had from OpenSSL");
		return NULL;
	}
	return hasher;
}

void hasher_free(struct hasher *hasher)
{
	if (!hasher)
		return;
	EVP_MD_CTX_free(hasher->context);
	EVP_MD_free(hasher->algorithm);
	free(hasher);
}

void hasher_begin(struct hasher *hasher)
{
	hasher->failed = EVP_DigestInit_ex2(hasher->context, hasher->algorithm, NULL) != 1;
}

void hasher_add(struct hasher *hasher, struct bytes data)
{
	hasher->failed = hasher->failed || EVP_DigestUpdate(hasher->context, data.data, data.size) != 1;
}

bool hasher_end(struct hasher *hasher, struct digest *out)
{
	unsigned size = 0;

	return !hasher->failed && EVP_DigestFinal_ex(hasher->context, out->bytes, &size) == 1 && size == DIGEST_SIZE;
}

bool digest_of(struct bytes data, struct digest *out)
{
	size_t size = 0;

	return EVP_Q_digest(NULL, "SHA256", NULL, data.data ? data.data : "", data.size, out->bytes, &size) == 1 &&
	       size == DIGEST_SIZE;
}

bool digest_of_file(int fd, struct digest *out, uint64_t *size, struct err *err)
{
	enum { PIECE = 1 << 18 };
	struct hasher *hasher = hasher_new(err);
	char *piece = malloc(PIECE);
	ssize_t got = -1;
	uint64_t total = 0;

	if (hasher && piece) {
		hasher_begin(hasher);
		while ((got = fd_read_full(fd, piece, PIECE)) > 0) {
			hasher_add(hasher, (struct bytes){piece, (size_t)got});
			total += (uint64_t)got;
		}
	}
	if (got < 0 && hasher)
		err_set(err, piece ? errno : ENOMEM, "reading for a digest");
	bool done = got == 0 && hasher_end(hasher, out);
	if (got == 0 && !done)
		err_set(err, 0, "OpenSSL cannot hash");
	hasher_free(hasher);
	free(piece);
	if (size)
		*size = total;
	return done;
}

static const char prefix[] = "sha256:";

void digest_text(const struct digest *digest, char out[DIGEST_TEXT_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	char *to = out + sizeof(prefix) - 1;

	memcpy(out, prefix, sizeof(prefix) - 1);
	for (size_t i = 0; i < DIGEST_SIZE; i++) {
		*to++ = digits[digest->bytes[i] >> 4];
		*to++ = digits[digest->bytes[i] & 15];
	}
	*to = '\0';
}

bool digest_parse(struct bytes text, struct digest *out)
{
	if (text.size != DIGEST_TEXT_SIZE - 1 || memcmp(text.data, prefix, sizeof(prefix) - 1) != 0)
		return false;
	return text_hex_parse((struct bytes){text.data + sizeof(prefix) - 1, (size_t)2 * DIGEST_SIZE}, out->bytes,
			      DIGEST_SIZE);
}
