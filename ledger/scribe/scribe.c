#include "scribe/scribe.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/message.h"
#include "ledger/store.h"
#include "sealer.h"

enum {
	BATCH_RECORDS = 1000, /* no more may be without a checkpoint */
	BATCH_NS = 200 * 1000000,
	WAIT_MS = 20,             /* between looks at the guardian while the ring is empty */
	RETRY_NS = 500 * 1000000, /* between attempts to write on a full disk */
	/* A monitor that was killed never finishes the ring. One that lives has this long after its guardian is done. */
	FINISH_GRACE_NS = 1000 * 1000000,
};

struct scribe {
	const struct scribe_config *config;
	struct store_writer *store;
	struct sealer sealer;
	struct buf sealed;
	uint64_t origin_ns; /* monotonic time at our start: close enough to the run's for our own gaps */
	uint64_t batch, batch_started_ns;
	uint64_t lost; /* records that could not be stored and are not yet in a gap record */
	uint64_t lost_in_all;
	uint64_t retry_ns;         /* when to try again; 0 while writing works */
	uint64_t malformed;        /* ring entries that were no records */
	uint64_t ended_ns;         /* when closing was asked for, or the guardian vanished; 0 before */
	struct record_blobs blobs; /* of the next record */
	bool any, ring_over, guardian_gone, detached, producer_gone, closing, complete;
	char reason[256];
};

static void set_reason(struct scribe *scribe, const char *reason)
{
	scribe->complete = false;
	if (!scribe->reason[0])
		snprintf(scribe->reason, sizeof(scribe->reason), "%s", reason);
}

static void tell(struct scribe *scribe, const struct message *message)
{
	if (!scribe->guardian_gone)
		message_send(scribe->config->guardian_socket, message, NULL);
}

/* With what the first record says of the keys. */
static void tell_ready(struct scribe *scribe)
{
	struct message message = {.type = MESSAGE_store_ready};
	message.fields[0].bytes = bytes_of(scribe->sealer.host_fingerprint);
	message.fields[1].bytes =
	    (struct bytes){(const char *)scribe->sealer.fingerprints, sizeof(scribe->sealer.fingerprints)};
	/* Who runs as we do can read the host key; unless it is sealed, and root can do more than read files. */
	if (!scribe->sealer.host_is_sealed || geteuid() == 0)
		message.fields[2].bytes = BYTES("same-uid");
	tell(scribe, &message);
}

static void tell_failed(struct scribe *scribe, const struct err *err)
{
	CLEANUP_BUF struct buf text = {.limit = sizeof(err->text) + sizeof(err->hint) + 8};
	buf_append_text(&text, err->text);
	if (err->hint[0])
		buf_append_format(&text, " (%s)", err->hint);
	struct message message = {.type = MESSAGE_store_failed};
	message.fields[0].number = (uint64_t)err->number;
	message.fields[1].bytes = buf_bytes(&text);
	tell(scribe, &message);
}

/* Writing fails: count what is lost and go on draining, so that the monitor never waits for a full disk. */
static void fail(struct scribe *scribe, const struct err *err, uint64_t also)
{
	uint64_t lost = store_take_lost(scribe->store) + also;
	sealer_follow(&scribe->sealer, scribe->store);
	scribe->lost += lost;
	scribe->lost_in_all += lost;
	scribe->batch = 0;
	if (!scribe->retry_ns)
		tell_failed(scribe, err);
	scribe->retry_ns = clock_monotonic_ns() + RETRY_NS;
}

static bool append(struct scribe *scribe, const struct record_head *head, struct bytes body,
		   const struct record_blobs *blobs, struct err *err)
{
	uint64_t seq = store_next_seq(scribe->store);
	buf_reset(&scribe->sealed);
	if (!record_seal(&scribe->sealed, head, body, seq))
		return err_set(err, EINVAL, "store run: not a record");
	if (!sealer_leaf(&scribe->sealer, buf_bytes(&scribe->sealed)))
		return err_set(err, EIO, "store run: cannot hash");
	return store_append(scribe->store, seq, head, buf_bytes(&scribe->sealed), &scribe->sealer.leaf, blobs, err) &&
	       (sealer_add(&scribe->sealer) || err_set(err, EIO, "store run: cannot hash"));
}

static bool append_gap(struct scribe *scribe, enum gap_code code, uint64_t count, struct bytes detail, struct err *err)
{
	CLEANUP_BUF struct buf body = {.limit = RECORD_SIZE_LIMIT};
	struct record_head head;
	struct record_gap gap = {
	    .stamp = {clock_monotonic_ns() - scribe->origin_ns, clock_realtime_ns(), LANE_scribe, CLASS_verifiable},
	    .code = code,
	    .count = count,
	    .detail = detail,
	};
	if (!record_gap(&body, &head, &gap))
		return err_set(err, ENOMEM, "store run: gap");
	return append(scribe, &head, buf_bytes(&body), NULL, err);
}

/* Commit what there is, with a checkpoint when one is due, or in any case. */
static void flush(struct scribe *scribe, bool checkpoint)
{
	struct err err = {.number = 0};
	bool good =
	    !sealer_is_due(&scribe->sealer, checkpoint) || sealer_checkpoint(&scribe->sealer, scribe->store, &err);
	if (good && store_flush(scribe->store, &err))
		sealer_follow(&scribe->sealer, scribe->store);
	else
		fail(scribe, &err, 0);
	scribe->batch = 0;
}

/* Is writing possible again? Then the first thing written says what is missing. */
static void try_again(struct scribe *scribe, bool now)
{
	struct err err = {.number = 0};
	if (!scribe->lost) {
		scribe->retry_ns = 0;
		return;
	}
	if (!now && clock_monotonic_ns() < scribe->retry_ns)
		return;
	if (append_gap(scribe, GAP_store, scribe->lost, BYTES("records were lost: they could not be written"), &err) &&
	    store_flush(scribe->store, &err)) {
		sealer_follow(&scribe->sealer, scribe->store);
		scribe->lost = 0;
		scribe->retry_ns = 0;
		return;
	}
	store_take_lost(scribe->store); /* the gap record itself */
	sealer_follow(&scribe->sealer, scribe->store);
	scribe->retry_ns = clock_monotonic_ns() + RETRY_NS;
}

/* A blob waits for its record, which is the next one: both are stored, or neither. */
static void keep_blob(struct scribe *scribe, struct bytes bytes)
{
	if (scribe->blobs.count == RECORD_BLOBS || bytes.size > RECORD_BLOB_LIMIT) {
		scribe->malformed++;
		return;
	}
	struct record_blob *blob = &scribe->blobs.items[scribe->blobs.count++];
	*blob = (struct record_blob){.bytes = {.limit = RECORD_BLOB_LIMIT}};
	buf_append_bytes(&blob->bytes, bytes);
	if (!blob->bytes.failed && digest_of(buf_bytes(&blob->bytes), &blob->digest))
		return;
	buf_free(&blob->bytes);
	scribe->blobs.count--;
	scribe->malformed++;
}

/* A blob that its record does not name would be nobody's. */
static void drop_unnamed(struct scribe *scribe, struct bytes body)
{
	size_t kept = 0;

	for (size_t i = 0; i < scribe->blobs.count; i++) {
		struct record_blob *blob = &scribe->blobs.items[i];
		char digest[DIGEST_TEXT_SIZE];
		digest_text(&blob->digest, digest);
		if (memmem(body.data, body.size, digest, strlen(digest))) {
			scribe->blobs.items[kept++] = *blob;
			continue;
		}
		buf_free(&blob->bytes);
		scribe->malformed++;
	}
	scribe->blobs.count = kept;
}

static void store_record(struct scribe *scribe, const struct record_head *head, struct bytes body)
{
	struct err err = {.number = 0};

	if (head->type >= RECORD_TYPE_COUNT ||
	    (head->type == RECORD_effect && (head->kind >= EFFECT_KIND_COUNT || head->how >= HOW_COUNT))) {
		scribe->malformed++;
		return;
	}
	if (scribe->retry_ns) {
		try_again(scribe, false);
		if (scribe->retry_ns) {
			scribe->lost++;
			scribe->lost_in_all++;
			return;
		}
	}
	if (append(scribe, head, body, &scribe->blobs, &err)) {
		if (scribe->batch++ == 0)
			scribe->batch_started_ns = clock_monotonic_ns();
	} else if (err.number == EINVAL) {
		scribe->malformed++;
	} else {
		fail(scribe, &err, 1);
	}
}

static void store_entry(struct scribe *scribe, struct bytes entry)
{
	struct record_head head;
	scribe->any = true;
	if (entry.size < sizeof(head)) {
		scribe->malformed++;
		return;
	}
	memcpy(&head, entry.data, sizeof(head));
	struct bytes body = {entry.data + sizeof(head), entry.size - sizeof(head)};
	if (head.type == RECORD_ENTRY_blob) {
		keep_blob(scribe, body);
		return;
	}
	drop_unnamed(scribe, body);
	store_record(scribe, &head, body);
	record_blobs_reset(&scribe->blobs);
}

/* Store what is there. True when the ring was found empty or over. */
static bool drain(struct scribe *scribe)
{
	struct bytes entry;
	for (unsigned i = 0; i < BATCH_RECORDS; i++) {
		switch (ring_peek(scribe->config->ring, &entry)) {
		case RING_ENTRY:
			store_entry(scribe, entry);
			ring_consume(scribe->config->ring);
			break;
		case RING_CORRUPT:
			set_reason(scribe, "the monitor's records became unreadable");
			scribe->ring_over = true;
			return true;
		case RING_FINISHED:
			scribe->ring_over = true;
			return true;
		case RING_EMPTY:
			return true;
		}
		if (scribe->batch >= BATCH_RECORDS ||
		    (scribe->batch && (i & 15) == 0 && clock_monotonic_ns() - scribe->batch_started_ns > BATCH_NS))
			flush(scribe, false);
	}
	return false;
}

static void take_message(struct scribe *scribe, int timeout_ms)
{
	struct pollfd wait = {.fd = scribe->config->guardian_socket, .events = POLLIN};
	struct message message;
	struct err err = {.number = 0};
	if (scribe->guardian_gone || scribe->closing || poll(&wait, 1, timeout_ms) <= 0)
		return;
	if (!message_receive(wait.fd, &message, MESSAGE_ROLE_guardian, &err)) {
		if (err.number == EAGAIN || err.number == EINTR)
			return;
		scribe->guardian_gone = true;
		set_reason(scribe, strcmp(err.text, "closed") == 0 ? "its guardian ended early"
								   : "the guardian sent what it must not");
	} else if (message.type == MESSAGE_close_run) {
		struct bytes reason = message.fields[1].bytes;
		char text[sizeof(scribe->reason)];
		scribe->closing = true;
		snprintf(text, sizeof(text), "%.*s", (int)(reason.size < sizeof(text) ? reason.size : sizeof(text) - 1),
			 reason.data ? reason.data : "");
		if (message.fields[0].number != 1)
			set_reason(scribe, text[0] ? text : "not said");
	} else if (message.type == MESSAGE_detach) {
		/* The command has ended and its status is told: the rest is between the monitor and us. */
		(void)drain(scribe);
		flush(scribe, true);
		tell_ready(scribe);
		scribe->guardian_gone = true;
		scribe->detached = true;
		return;
	} else {
		scribe->guardian_gone = true;
		set_reason(scribe, "the guardian sent what it must not");
	}
	scribe->ended_ns = clock_monotonic_ns();
}

/* Nothing is ever sent through the lifeline: it only ends with the monitor. */
static void look_for_producer(struct scribe *scribe)
{
	struct pollfd wait = {.fd = scribe->config->lifeline};
	if (scribe->config->lifeline > 0 && poll(&wait, 1, 0) > 0 && (wait.revents & POLLHUP))
		scribe->producer_gone = true;
}

/* May the run be closed, now that the ring was found empty? */
static bool is_over(struct scribe *scribe)
{
	if (!scribe->closing && !scribe->guardian_gone)
		return false;
	if (scribe->ring_over)
		return true;
	if (scribe->producer_gone) {
		set_reason(scribe, "the monitor ended early");
		return true;
	}
	if (scribe->detached)
		return false;
	/* When the guardian knows that the run is incomplete, it knows that the monitor is gone. */
	if (scribe->closing && !scribe->complete)
		return true;
	if (clock_monotonic_ns() - scribe->ended_ns < FINISH_GRACE_NS)
		return false;
	set_reason(scribe, "the monitor did not finish its records");
	return true;
}

static void serve(struct scribe *scribe)
{
	for (;;) {
		/* Before the drain: what was committed by then is read. */
		look_for_producer(scribe);
		bool empty = drain(scribe);
		if (empty && !scribe->retry_ns && (scribe->batch || sealer_is_due(&scribe->sealer, false)))
			flush(scribe, false);
		if (scribe->retry_ns)
			try_again(scribe, false);
		if (empty && is_over(scribe))
			return;
		if (!empty) {
			take_message(scribe, 0);
		} else if (scribe->ring_over) {
			take_message(scribe, scribe->retry_ns ? WAIT_MS : -1);
		} else {
			take_message(scribe, 0);
			if (!scribe->ended_ns)
				ring_wait(scribe->config->ring, WAIT_MS);
			else
				usleep(1000);
		}
	}
}

/* The last record, and the checkpoint over it. What comes after it would be no part of the run. */
static bool append_closing(struct scribe *scribe)
{
	CLEANUP_BUF struct buf body = {.limit = RECORD_SIZE_LIMIT};
	struct err err = {.number = 0};
	struct record_head head;
	struct record_closing closing = {
	    .stamp = {clock_monotonic_ns() - scribe->origin_ns, clock_realtime_ns(), LANE_scribe, CLASS_verifiable},
	    .complete = scribe->complete,
	    .reason = bytes_of(scribe->complete ? NULL : scribe->reason),
	    .records = store_next_seq(scribe->store) + 1,
	    .effects = store_effects(scribe->store),
	    .lost = scribe->lost_in_all,
	};
	if (!record_closing(&body, &head, &closing) || !append(scribe, &head, buf_bytes(&body), NULL, &err))
		return false;
	uint64_t lost = scribe->lost_in_all;
	flush(scribe, true);
	return scribe->lost_in_all == lost && store_next_seq(scribe->store) == closing.records;
}

/* Close the file, and seal it when its end is in it. */
static bool finish(struct scribe *scribe, bool whole, struct err *err)
{
	struct store_end end;
	bool good = store_close(scribe->store, scribe->complete && whole, scribe->reason, &end, err);
	good = good && whole && sealer_seal(&scribe->sealer, scribe->complete, scribe->reason, end.at_rest, err);
	fd_close(&end.lock);
	return good;
}

static int close_run(struct scribe *scribe)
{
	struct err err = {.number = 0};
	if (!scribe->any && !scribe->complete) {
		store_discard(scribe->store);
		sealer_discard(&scribe->sealer);
		tell(scribe, &(struct message){.type = MESSAGE_run_closed});
		return 0;
	}
	if (scribe->malformed) {
		set_reason(scribe, "the monitor sent what is no record");
		append_gap(scribe, GAP_store, scribe->malformed, BYTES("entries that are no records"), NULL);
	}
	if (scribe->lost)
		store_use_reserve(scribe->store);
	try_again(scribe, true);
	if (scribe->lost_in_all) {
		char reason[64];
		snprintf(reason, sizeof(reason), "%" PRIu64 " records could not be stored", scribe->lost_in_all);
		set_reason(scribe, reason);
	}
	/* What close would commit must be counted before the store is gone. */
	flush(scribe, true);
	bool whole = append_closing(scribe);
	if (!whole)
		set_reason(scribe, "its end could not be stored");
	struct message message = {.type = MESSAGE_run_closed};
	message.fields[0].number = store_next_seq(scribe->store);
	bool closed = finish(scribe, whole, &err);
	if (!closed && err_is_set(&err))
		tell_failed(scribe, &err);
	/* Also when that failed: nothing more will come, and it is no reason to take us for dead. */
	tell(scribe, &message);
	return closed ? 0 : 1;
}

/* The terminal's signals are for the agent, and a run must be closed whatever ends the others. */
static void settle(void)
{
	static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE, SIGXFSZ};
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	setsid();
	prctl(PR_SET_NAME, "assure-scribe");
	prctl(PR_SET_DUMPABLE, 0);
}

int scribe_main(const struct scribe_config *config)
{
	struct scribe scribe = {.config = config, .complete = true, .origin_ns = clock_monotonic_ns()};
	struct err err = {.number = 0};
	settle();
	scribe.store = store_create(config->home, config->run, config->name, &err);
	if (!scribe.store) {
		tell_failed(&scribe, &err);
		return 1;
	}
	bool begun = sealer_begin(&scribe.sealer, config->home, config->run, passphrase_bytes(config->passphrase),
				  scribe.store, &err);
	passphrase_wipe(config->passphrase);
	if (!begun) {
		store_discard(scribe.store);
		tell_failed(&scribe, &err);
		return 1;
	}
	buf_init(&scribe.sealed, 2 * RECORD_SIZE_LIMIT);
	tell_ready(&scribe);
	serve(&scribe);
	int status = close_run(&scribe);
	sealer_end(&scribe.sealer);
	buf_free(&scribe.sealed);
	return status;
}
