/*
 * The scribe: the process that stores records. It has no agent and no network; it reads records from the ring and a few
 * messages from the guardian, and trusts neither.
 */
#pragma once

#include "base/ring.h"
#include "ledger/host_key.h"

struct scribe_config {
	const char *home;              /* state folder */
	const char *run;               /* run id */
	const char *name;              /* or NULL */
	struct passphrase *passphrase; /* of a sealed host key, wiped when it was used; or NULL */
	struct ring *ring;             /* from the monitor */
	int lifeline;                  /* read end of a pipe whose other end only the monitor holds; 0: none */
	int guardian_socket;           /* SOCK_SEQPACKET; messages store_ready, store_failed, close_run, run_closed */
};

/*
 * The scribe's whole life; call in its own process. Opens the run, says store_ready (or store_failed), stores what comes
 * until close_run arrives and the ring is drained, says run_closed. When the guardian vanishes, or asks to close without
 * completeness, what is in the ring is stored and the run is closed as incomplete with the reason. A run in which no
 * record came before it is closed as incomplete never started and is removed. Returns the exit status.
 */
int scribe_main(const struct scribe_config *config);
