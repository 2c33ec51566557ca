#include "base/ed25519.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/fd.h"
#include "base/text.h"

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif

/* One page holds one key: what lies in secret memory is not shared with anything else. */
struct ed25519_secret {
	uint8_t bytes[crypto_sign_SECRETKEYBYTES]; /* the seed, and the public key behind it */
	struct ed25519_key key;
	size_t mapped;
};

static void *map_secret(size_t size)
{
	int fd CLEANUP_FD = (int)syscall(SYS_memfd_secret, (unsigned)O_CLOEXEC);
	void *memory = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, (off_t)size) == 0)
		memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory != MAP_FAILED)
		return memory;
	/* Not every kernel has it on, and locked memory has limits of its own: then what can be had. */
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory != MAP_FAILED)
		(void)mlock(memory, size);
	return memory;
}

static struct ed25519_secret *new_secret(struct err *err)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);

	if (sodium_init() < 0) {
		err_set(err, 0, "libsodium cannot begin: there is no randomness");
		return NULL;
	}
	struct ed25519_secret *secret = map_secret(size);
	if (secret == MAP_FAILED) {
		err_set(err, errno, "memory for a key");
		return NULL;
	}
	(void)madvise(secret, size, MADV_DONTDUMP);
	(void)madvise(secret, size, MADV_DONTFORK);
	secret->mapped = size;
	return secret;
}

struct ed25519_secret *ed25519_generate(struct err *err)
{
	struct ed25519_secret *secret = new_secret(err);

	if (secret)
		(void)crypto_sign_keypair(secret->key.bytes, secret->bytes);
	return secret;
}

struct ed25519_secret *ed25519_from_seed(const uint8_t seed[ED25519_SEED_SIZE], struct err *err)
{
	struct ed25519_secret *secret = new_secret(err);

	if (secret)
		(void)crypto_sign_seed_keypair(secret->key.bytes, secret->bytes, seed);
	return secret;
}

void ed25519_free(struct ed25519_secret *secret)
{
	if (!secret)
		return;
	size_t size = secret->mapped;
	secret_wipe(secret, sizeof(*secret));
	(void)munmap(secret, size);
}

const struct ed25519_key *ed25519_public(const struct ed25519_secret *secret)
{
	return &secret->key;
}

void ed25519_seed(const struct ed25519_secret *secret, uint8_t seed[ED25519_SEED_SIZE])
{
	(void)crypto_sign_ed25519_sk_to_seed(seed, secret->bytes);
}

void ed25519_sign(const struct ed25519_secret *secret, struct bytes message, struct ed25519_signature *out)
{
	(void)crypto_sign_detached(out->bytes, NULL, (const unsigned char *)(message.data ? message.data : ""),
				   message.size, secret->bytes);
}

bool ed25519_verify(const struct ed25519_key *key, struct bytes message, const struct ed25519_signature *signature)
{
	return crypto_sign_verify_detached(signature->bytes, (const unsigned char *)(message.data ? message.data : ""),
					   message.size, key->bytes) == 0;
}

void ed25519_spki(const struct ed25519_key *key, uint8_t out[ED25519_SPKI_SIZE])
{
	/* SEQUENCE { SEQUENCE { OID 1.3.101.112 }, BIT STRING of 32 bytes } */
	static const uint8_t head[] = {0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00};

	_Static_assert(sizeof(head) + ED25519_KEY_SIZE == ED25519_SPKI_SIZE, "what stands before the key");
	memcpy(out, head, sizeof(head));
	memcpy(out + sizeof(head), key->bytes, ED25519_KEY_SIZE);
}

bool ed25519_fingerprint(const struct ed25519_key *key, char out[ED25519_FINGERPRINT_SIZE])
{
	char text[DIGEST_TEXT_SIZE];
	uint8_t spki[ED25519_SPKI_SIZE];
	struct digest digest;

	ed25519_spki(key, spki);
	if (!digest_of((struct bytes){(const char *)spki, sizeof(spki)}, &digest))
		return false;
	digest_text(&digest, text);
	memcpy(out, text + sizeof("sha256:") - 1, ED25519_FINGERPRINT_SIZE);
	return true;
}

void secret_wipe(void *data, size_t size)
{
	sodium_memzero(data, size);
}
