#include "sealer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "ledger/host_key.h"

enum { CHECKPOINT_RECORDS = 1000, CHECKPOINT_NS = 1000 * 1000 * 1000 };

static const char what[] = "sealing the run";

/* A host's first run makes its key. */
static bool take_host_key(struct sealer *sealer, struct bytes passphrase, struct err *err)
{
	struct ed25519_key public;
	bool made;

	sealer->host = host_key_ensure(sealer->home, passphrase, &made, err);
	if (!sealer->host || !host_key_public(sealer->home, &public, &sealer->host_is_sealed, err))
		return false;
	return ed25519_fingerprint(ed25519_public(sealer->host), sealer->host_fingerprint) ||
	       err_set(err, 0, "%s: cannot hash", what);
}

static bool certify(struct sealer *sealer, enum key_use use, struct store_writer *store, struct digest *digest,
		    struct err *err)
{
	CLEANUP_BUF struct buf envelope = {.limit = CERTIFICATE_SIZE_LIMIT};
	struct certificate certificate = {.use = use};
	char name[64];

	sealer->keys[use] = ed25519_generate(err);
	if (!sealer->keys[use])
		return false;
	certificate.key = *ed25519_public(sealer->keys[use]);
	clock_rfc3339(clock_realtime_ns(), certificate.started);
	memcpy(certificate.signed_at, certificate.started, sizeof(certificate.started));
	(void)snprintf(certificate.run, sizeof(certificate.run), "%s", sealer->run);
	if (gethostname(certificate.host, sizeof(certificate.host) - 1) != 0)
		certificate.host[0] = '\0';
	(void)snprintf(name, sizeof(name), "certificate/%s", key_use_name(use));
	if (!certificate_make(&certificate, sealer->host, &envelope) || !digest_of(buf_bytes(&envelope), digest) ||
	    !ed25519_fingerprint(&certificate.key, sealer->fingerprints[use]))
		return err_set(err, 0, "%s: cannot certify its keys", what);
	return store_put_document(store, name, buf_bytes(&envelope), err);
}

bool sealer_begin(struct sealer *sealer, const char *home, const char *run, struct bytes passphrase,
		  struct store_writer *store, struct err *err)
{
	struct digest certificates[USE_COUNT];

	*sealer = (struct sealer){.home = home, .run = run, .covered_ns = clock_monotonic_ns()};
	(void)snprintf(sealer->origin, sizeof(sealer->origin), "assure.run/%s", run);
	sealer->hasher = hasher_new(err);
	if (!sealer->hasher || !take_host_key(sealer, passphrase, err))
		return false;
	CLEANUP_BUF struct buf key = {.limit = 64};
	text_base64(&key, (struct bytes){(const char *)ed25519_public(sealer->host)->bytes, ED25519_KEY_SIZE});
	if (!store_put_document(store, "host-key", buf_bytes(&key), err))
		return false;
	for (unsigned use = 0; use < USE_COUNT; use++)
		if (!certify(sealer, (enum key_use)use, store, &certificates[use], err))
			return false;
	struct host_entry entry = {.event = HOST_EVENT_start,
				   .run = run,
				   .run_keys = (const char(*)[ED25519_FINGERPRINT_SIZE])sealer->fingerprints,
				   .certificates = certificates};
	return host_log_append(home, &entry, sealer->host, err);
}

bool sealer_leaf(struct sealer *sealer, struct bytes record)
{
	return merkle_leaf(sealer->hasher, record, &sealer->leaf);
}

bool sealer_add(struct sealer *sealer)
{
	return merkle_append(&sealer->tree, sealer->hasher, &sealer->leaf);
}

void sealer_follow(struct sealer *sealer, const struct store_writer *store)
{
	if (store_next_seq(store) == sealer->tree.size)
		sealer->committed = sealer->tree;
	else
		sealer->tree = sealer->committed;
	/* A checkpoint that went with its transaction was never made. */
	if (sealer->covered > sealer->tree.size)
		sealer->covered = 0;
}

bool sealer_is_due(const struct sealer *sealer, bool all)
{
	uint64_t behind = sealer->tree.size - sealer->covered;

	if (behind == 0)
		return false;
	return all || behind >= CHECKPOINT_RECORDS || clock_monotonic_ns() - sealer->covered_ns >= CHECKPOINT_NS;
}

static bool sign_tree(struct sealer *sealer, const struct bytes *lines, size_t count, struct buf *out, struct err *err)
{
	CLEANUP_BUF struct buf text = {.limit = NOTE_SIZE_LIMIT};
	struct checkpoint checkpoint = {
	    .origin = bytes_of(sealer->origin), .size = sealer->tree.size, .extension_count = count};

	for (size_t i = 0; i < count; i++)
		checkpoint.extensions[i] = lines[i];
	if (!merkle_root(&sealer->tree, sealer->hasher, &checkpoint.root))
		return err_set(err, 0, "%s: cannot hash", what);
	checkpoint_format(&checkpoint, &text);
	note_sign(buf_bytes(&text), checkpoint.origin, sealer->keys[USE_ledger], out);
	return (!text.failed && !out->failed) || err_set(err, ENOMEM, "%s", what);
}

bool sealer_checkpoint(struct sealer *sealer, struct store_writer *store, struct err *err)
{
	CLEANUP_BUF struct buf note = {.limit = NOTE_SIZE_LIMIT};

	if (!sign_tree(sealer, NULL, 0, &note, err) ||
	    !store_put_checkpoint(store, sealer->tree.size, buf_bytes(&note), err))
		return false;
	sealer->covered = sealer->tree.size;
	sealer->covered_ns = clock_monotonic_ns();
	return true;
}

bool sealer_seal(struct sealer *sealer, bool complete, const char *reason, bool at_rest, struct err *err)
{
	CLEANUP_BUF struct buf note = {.limit = NOTE_SIZE_LIMIT}, line = {.limit = 256};
	struct bytes lines[2] = {BYTES("seal")};
	char text[DIGEST_TEXT_SIZE];
	struct digest store, root;
	uint64_t size;

	if (!merkle_root(&sealer->tree, sealer->hasher, &root))
		return err_set(err, 0, "%s: cannot hash", what);
	if (at_rest) {
		if (!store_digest(sealer->home, sealer->run, &size, &store, err))
			return false;
		digest_text(&store, text);
		buf_append_format(&line, "store %" PRIu64 " %s", size, text);
		lines[1] = buf_bytes(&line);
	}
	if (!sign_tree(sealer, lines, at_rest ? 2 : 1, &note, err) ||
	    !store_write_seal(sealer->home, sealer->run, buf_bytes(&note), err))
		return false;
	struct host_entry entry = {.event = HOST_EVENT_seal,
				   .run = sealer->run,
				   .size = sealer->tree.size,
				   .root = &root,
				   .store = at_rest ? &store : NULL,
				   .complete = complete,
				   .reason = complete ? NULL : reason};
	return host_log_append(sealer->home, &entry, sealer->host, err);
}

void sealer_discard(struct sealer *sealer)
{
	struct host_entry entry = {.event = HOST_EVENT_discard, .run = sealer->run};

	if (sealer->host)
		(void)host_log_append(sealer->home, &entry, sealer->host, NULL);
}

void sealer_end(struct sealer *sealer)
{
	for (unsigned use = 0; use < USE_COUNT; use++)
		ed25519_free(sealer->keys[use]);
	ed25519_free(sealer->host);
	hasher_free(sealer->hasher);
	*sealer = (struct sealer){.host = NULL};
}
