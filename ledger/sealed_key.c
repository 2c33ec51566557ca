#include "sealed_key.h"

#include <errno.h>
#include <inttypes.h>

#include "base/text.h"

/* What new ones cost: half a second or so, and no more memory than any machine with an agent has to spare. */
enum { PASSES = 4, MEMORY = 64 << 20 };
/* What is tried at all. */
enum { PASSES_LIMIT = 16, MEMORY_LIMIT = 1 << 30 };

static const struct bytes format = BYTES("assure.sealed-key/1"), function = BYTES("argon2id13");

/* The next word; `end` is what must stand behind it. */
static struct bytes word(struct bytes *rest, char end)
{
	const char *found = rest->size ? memchr(rest->data, end, rest->size) : NULL;
	struct bytes taken = {rest->data, found ? (size_t)(found - rest->data) : 0};

	if (!found)
		return BYTES_NONE;
	rest->data += taken.size + 1;
	rest->size -= taken.size + 1;
	return taken;
}

static bool take(struct bytes *rest, char end, void *out, size_t size)
{
	CLEANUP_BUF struct buf decoded = {.limit = 128};
	struct bytes text = word(rest, end);

	if (!text.data || !text_base64_parse(&decoded, text) || decoded.size != size)
		return false;
	memcpy(out, decoded.data, size);
	return true;
}

bool sealed_key_parse(struct bytes text, struct sealed_key *out)
{
	return bytes_equal(word(&text, ' '), format) && bytes_equal(word(&text, ' '), function) &&
	       text_decimal_parse(word(&text, ' '), &out->passes) &&
	       text_decimal_parse(word(&text, ' '), &out->memory) && out->passes >= crypto_pwhash_OPSLIMIT_MIN &&
	       out->passes <= PASSES_LIMIT && out->memory >= crypto_pwhash_MEMLIMIT_MIN &&
	       out->memory <= MEMORY_LIMIT && take(&text, ' ', out->salt, sizeof(out->salt)) &&
	       take(&text, ' ', out->nonce, sizeof(out->nonce)) && take(&text, ' ', out->box, sizeof(out->box)) &&
	       take(&text, '\n', out->public.bytes, sizeof(out->public.bytes)) && text.size == 0;
}

static bool derive(const struct sealed_key *sealed, struct bytes passphrase, uint8_t key[crypto_secretbox_KEYBYTES],
		   struct err *err)
{
	if (passphrase.size > PASSPHRASE_LIMIT)
		return err_set(err, 0, "host key: the passphrase is longer than %d bytes", PASSPHRASE_LIMIT);
	return crypto_pwhash(key, crypto_secretbox_KEYBYTES, passphrase.data, passphrase.size, sealed->salt,
			     sealed->passes, (size_t)sealed->memory, crypto_pwhash_ALG_ARGON2ID13) == 0 ||
	       err_set(err, ENOMEM, "host key: its passphrase takes %" PRIu64 " MiB of memory", sealed->memory >> 20);
}

bool sealed_key_open(const struct sealed_key *sealed, struct bytes passphrase, uint8_t seed[ED25519_SEED_SIZE],
		     struct err *err)
{
	uint8_t key[crypto_secretbox_KEYBYTES];
	bool good = sodium_init() >= 0 && derive(sealed, passphrase, key, err);

	if (good && crypto_secretbox_open_easy(seed, sealed->box, sizeof(sealed->box), sealed->nonce, key) != 0)
		good = err_set(err, EACCES, "host key: the passphrase is wrong");
	secret_wipe(key, sizeof(key));
	return good;
}

static void put(struct buf *out, const void *data, size_t size, char end)
{
	text_base64(out, (struct bytes){data, size});
	buf_append_char(out, end);
}

bool sealed_key_write(const uint8_t seed[ED25519_SEED_SIZE], const struct ed25519_key *public, struct bytes passphrase,
		      struct buf *out, struct err *err)
{
	struct sealed_key sealed = {.passes = PASSES, .memory = MEMORY, .public = *public};
	uint8_t key[crypto_secretbox_KEYBYTES];

	if (sodium_init() < 0)
		return err_set(err, 0, "host key: libsodium cannot be used");
	randombytes_buf(sealed.salt, sizeof(sealed.salt));
	randombytes_buf(sealed.nonce, sizeof(sealed.nonce));
	bool good = derive(&sealed, passphrase, key, err);
	if (good)
		crypto_secretbox_easy(sealed.box, seed, ED25519_SEED_SIZE, sealed.nonce, key);
	secret_wipe(key, sizeof(key));
	if (!good)
		return false;
	buf_append_format(out, "%s %s %" PRIu64 " %" PRIu64 " ", format.data, function.data, sealed.passes,
			  sealed.memory);
	put(out, sealed.salt, sizeof(sealed.salt), ' ');
	put(out, sealed.nonce, sizeof(sealed.nonce), ' ');
	put(out, sealed.box, sizeof(sealed.box), ' ');
	put(out, public->bytes, sizeof(public->bytes), '\n');
	return !out->failed || err_set(err, ENOMEM, "host key");
}
