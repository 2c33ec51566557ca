/*
 * Closing a run whose scribe could not (specs/LEDGER.md section 7).
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/fd.h"
#include "ledger/host_key.h"
#include "ledger/host_log.h"
#include "verify_state.h"

static const char what[] = "recover";

struct recovery {
	const char *home, *run;
	struct bytes passphrase; /* of the host key */
	struct verification found;
	struct ed25519_secret *host;   /* owned: of the run */
	struct ed25519_secret *logger; /* owned: of the host log, now */
	struct hasher *hasher;         /* owned */
	struct merkle tree;
	struct digest leaf;
	char reason[256];
};

static bool take_leaf(void *context, uint64_t seq, const struct record_head *head, struct bytes json)
{
	struct recovery *recovery = context;

	(void)head;
	return seq == recovery->tree.size && merkle_leaf(recovery->hasher, json, &recovery->leaf) &&
	       merkle_append(&recovery->tree, recovery->hasher, &recovery->leaf);
}

/* What is there is what the last checkpoint says, and more; nothing of it was changed. */
static bool examine(struct recovery *recovery, struct err *err)
{
	char folder[STORE_PATH_SIZE];

	if (!run_folder(recovery->home, recovery->run, folder, sizeof(folder)))
		return err_set(err, 0, "%s: the path is too long", what);
	const struct verify_request request = {.folder = folder, .run = recovery->run, .home = recovery->home};
	verify_run(&request, &recovery->found);
	const struct verification *found = &recovery->found;
	if (found->sealed)
		return err_set(err, 0, "%s: %s is sealed%s", what, recovery->run,
			       found->recovered ? ": it was recovered before" : "");
	if (store_is_locked(folder))
		return err_set(err, 0, "%s: %s is still running", what, recovery->run);
	return found->verdict == VERDICT_INCOMPLETE || found->verdict == VERDICT_UNKNOWN_KEY ||
	       err_set(err, 0, "%s: %s: %s", what, recovery->run, found->why);
}

static bool read_tree(struct recovery *recovery, struct err *err)
{
	const struct run_filter all = {.from_seq = 0};
	struct run *run = run_open(recovery->home, recovery->run, err);

	if (!run)
		return false;
	(void)snprintf(recovery->reason, sizeof(recovery->reason), "%s", run_get_summary(run)->reason);
	bool good = run_visit(run, &all, take_leaf, recovery, err);
	run_close(run);
	return good && (recovery->tree.size == recovery->found.records ||
			err_set(err, 0, "%s: %s was changed meanwhile", what, recovery->run));
}

static bool append_record(struct recovery *recovery, struct store_writer *store, struct err *err)
{
	CLEANUP_BUF struct buf body = {.limit = RECORD_SIZE_LIMIT}, sealed = {.limit = 2 * RECORD_SIZE_LIMIT};
	struct record_head head;
	const struct record_recovery record = {
	    .stamp = {0, clock_realtime_ns(), LANE_scribe, CLASS_verifiable},
	    .covered = recovery->found.covered,
	    .reason = bytes_of(recovery->reason),
	};

	if (store_next_seq(store) != recovery->tree.size)
		return err_set(err, 0, "%s: %s was changed meanwhile", what, recovery->run);
	if (!record_recovery(&body, &head, &record) ||
	    !record_seal(&sealed, &head, buf_bytes(&body), store_next_seq(store)) ||
	    !merkle_leaf(recovery->hasher, buf_bytes(&sealed), &recovery->leaf))
		return err_set(err, 0, "%s: cannot make its record", what);
	return store_append(store, store_next_seq(store), &head, buf_bytes(&sealed), &recovery->leaf, NULL, err) &&
	       store_flush(store, err) &&
	       (merkle_append(&recovery->tree, recovery->hasher, &recovery->leaf) ||
		err_set(err, 0, "%s: cannot hash", what));
}

static bool seal(struct recovery *recovery, bool at_rest, struct err *err)
{
	CLEANUP_BUF struct buf text = {.limit = NOTE_SIZE_LIMIT}, note = {.limit = NOTE_SIZE_LIMIT};
	char origin[sizeof("assure.run/") + RUN_ID_SIZE], host[HOST_NAME_SIZE], digest[DIGEST_TEXT_SIZE];
	char first[64], second[128];
	struct digest store;
	uint64_t size;
	struct checkpoint checkpoint = {.size = recovery->tree.size, .extension_count = at_rest ? 2 : 1};

	(void)snprintf(origin, sizeof(origin), "assure.run/%s", recovery->run);
	checkpoint.origin = bytes_of(origin);
	(void)snprintf(first, sizeof(first), "recovered %" PRIu64, recovery->found.covered);
	checkpoint.extensions[0] = bytes_of(first);
	if (at_rest) {
		if (!store_digest(recovery->home, recovery->run, &size, &store, err))
			return false;
		digest_text(&store, digest);
		(void)snprintf(second, sizeof(second), "store %" PRIu64 " %s", size, digest);
		checkpoint.extensions[1] = bytes_of(second);
	}
	if (!merkle_root(&recovery->tree, recovery->hasher, &checkpoint.root) ||
	    !host_name_of(ed25519_public(recovery->host), host))
		return err_set(err, 0, "%s: cannot hash", what);
	checkpoint_format(&checkpoint, &text);
	note_sign(buf_bytes(&text), bytes_of(host), recovery->host, &note);
	if (text.failed || note.failed)
		return err_set(err, 0, "%s: cannot sign", what);
	const struct host_entry entry = {.event = HOST_EVENT_recovery,
					 .run = recovery->run,
					 .size = checkpoint.size,
					 .root = &checkpoint.root,
					 .store = at_rest ? &store : NULL,
					 .reason = recovery->reason};
	return store_write_seal(recovery->home, recovery->run, buf_bytes(&note), err) &&
	       host_log_append(recovery->home, &entry, recovery->logger, err);
}

static bool recover(struct recovery *recovery, struct err *err)
{
	struct store_end end = {.lock = -1};

	recovery->hasher = hasher_new(err);
	if (!recovery->hasher || !examine(recovery, err) || !read_tree(recovery, err))
		return false;
	/* Who certified the run's keys closes it, also when the host has another key by now. */
	recovery->host = host_key_load_named(recovery->home, recovery->found.host_key, recovery->passphrase, err);
	struct ed25519_secret *present =
	    recovery->host ? host_key_load(recovery->home, recovery->passphrase, err) : NULL;
	recovery->logger = present;
	if (!present)
		return false;
	struct store_writer *store = store_reopen(recovery->home, recovery->run, err);
	if (!store)
		return false;
	bool good = append_record(recovery, store, err);
	/* Closed in any case: nothing else knows how. */
	good = store_close(store, false, recovery->reason, &end, err) && good;
	good = good && seal(recovery, end.at_rest, err);
	if (end.lock >= 0)
		fd_close(&end.lock);
	return good;
}

bool verify_recover(const char *home, const char *run, struct bytes passphrase, uint64_t *covered, struct err *err)
{
	struct recovery recovery = {.home = home, .run = run, .passphrase = passphrase};
	bool good = recover(&recovery, err);

	*covered = recovery.found.covered;
	ed25519_free(recovery.host);
	ed25519_free(recovery.logger);
	hasher_free(recovery.hasher);
	return good;
}
