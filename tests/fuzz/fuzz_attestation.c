/*
 * Attestations: two lines of a foreign file, and what is inside of them. Inside of the Base64 a fuzzer would change what is
 * signed, so each input is read once as it is and once as the payload of an envelope that is signed here.
 */
#include <fcntl.h>
#include <sys/mman.h>

#include "base/envelope.h"
#include "base/fd.h"
#include "base/note.h"
#include "fuzz.h"
#include "ledger/attestation.h"
#include "ledger/host_log.h"

static const uint8_t seed[ED25519_SEED_SIZE] = {1};

static void verify(struct bytes text)
{
	char path[64];
	struct verification found;
	const struct verify_request request = {.key_count = 0};
	int fd CLEANUP_FD = memfd_create("attestation", MFD_CLOEXEC);

	if (fd < 0 || !fd_write_full(fd, text.data, text.size))
		return;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	(void)attestation_is(path);
	attestation_verify(path, &request, &found);
	/* Nobody is named, and no host log is asked: nothing may be believed. */
	need(found.verdict != VERDICT_INTACT && found.verdict != VERDICT_INCOMPLETE);
	/* It goes to screens as it is. */
	need(found.run[0] == '\0' || strspn(found.run, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == RUN_ID_SIZE - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP_BUF struct buf line = {.limit = DSSE_SIZE_LIMIT}, id = {.limit = 256};
	char name[HOST_NAME_SIZE];
	const struct bytes input = {(const char *)data, size};
	struct ed25519_secret *secret = ed25519_from_seed(seed, NULL);

	need(secret);
	struct note_key key = {.algorithm = NOTE_ED25519, .key = *ed25519_public(secret)};
	need(host_name_of(&key.key, name));
	key.name = bytes_of(name);
	note_key_format(&key, &id);
	verify(input);
	if (dsse_sign(BYTES("application/vnd.in-toto+json"), input, buf_bytes(&id), secret, &line, NULL)) {
		buf_append_char(&line, '\n');
		verify(buf_bytes(&line));
	}
	ed25519_free(secret);
	return 0;
}
