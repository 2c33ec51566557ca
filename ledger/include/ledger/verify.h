/*
 * Does a run say what was sealed? Everything is computed anew; nothing secret is needed (specs/LEDGER.md section 6).
 */
#pragma once

#include <stdbool.h>

#include "ledger/certificate.h"

/* The numbers are exit statuses. */
enum verdict {
	VERDICT_INTACT = 0, /* and complete */
	VERDICT_TAMPERED = 1,
	VERDICT_INCOMPLETE = 2, /* intact as far as it reaches, or recovered */
	VERDICT_UNREADABLE = 3,
	VERDICT_UNKNOWN_KEY = 4, /* intact, and signed by nobody who was named */
};

const char *verdict_name(enum verdict verdict);

struct verification {
	enum verdict verdict;
	char why[768]; /* the first fault, or why it is incomplete; may hold bytes of paths */
	bool has_seq;  /* `seq` is the first bad record */
	uint64_t seq;
	char run[RUN_ID_SIZE];
	char host[CERTIFICATE_HOST_SIZE];        /* as the certificate has it */
	char host_key[ED25519_FINGERPRINT_SIZE]; /* who vouches for the run's keys */
	char exposed[64], class[32];             /* of the first record; empty when it says none */
	uint64_t records, covered;               /* there are, and below the last checkpoint that holds */
	uint64_t effects;
	uint64_t checkpoints;
	bool sealed, recovered, complete;
	bool store_covered;  /* unused bytes of the file too */
	bool in_log;         /* the host log was there, and knows the run */
	bool is_attestation; /* what was asked about is a statement about the run: its records were not there */
	uint64_t files;      /* whose content it states */
	bool is_redacted;    /* values were withheld from it, in so many records: */
	uint64_t redacted;   /* what these show is vouched for by the host key alone */
	struct digest root;
};

/* Where to look, and whom to believe. */
struct verify_request {
	const char *folder;     /* of the run */
	const char *run;        /* its identity */
	const char *home;       /* whose host log is asked; NULL: none */
	struct bytes redaction; /* what a bundle says of what was withheld from it; absent when it says nothing */
	struct bytes log;       /* what another host's log says of the run, out of a bundle; absent when it is none */
	const char (*keys)[ED25519_FINGERPRINT_SIZE]; /* fingerprints of host keys that are believed */
	size_t key_count;                             /* none: those of the host log */
};

void verify_run(const struct verify_request *request, struct verification *out);

/*
 * Close a run that was never sealed: it is verified, a record says so, and the host key seals it as recovered. `covered`
 * receives how many of its records its own key had signed.
 */
bool verify_recover(const char *home, const char *run, struct bytes passphrase, uint64_t *covered, struct err *err);

/* The host log by itself. `since` (may be absent): a head that somebody kept, which must be its beginning. */
struct log_verification {
	enum verdict verdict;
	char why[768];
	uint64_t entries, runs, never_ended;
	char head[2 * DIGEST_SIZE + 1];
};

/* One run of the log that began and never ended. */
typedef void (*log_open_run)(void *context, const char *run);
void verify_log(const char *home, struct bytes since, log_open_run visit, void *context, struct log_verification *out);
