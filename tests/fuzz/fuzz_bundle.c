/*
 * Bundles: the header of a foreign file, its parts, and a verification of what comes out.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "ledger/bundle.h"
#include "ledger/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	struct bundle bundle;
	struct verification found;
	bool malformed;
	int fd CLEANUP_FD = memfd_create("bundle", MFD_CLOEXEC);

	if (fd < 0 || !fd_write_full(fd, data, size))
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	(void)bundle_is(path);
	if (!bundle_open(path, &bundle, &malformed, NULL))
		return 0;
	const struct verify_request request = {.folder = bundle.folder,
					       .run = bundle.run,
					       .redaction = {bundle.redaction, bundle.redaction_size},
					       .log = {bundle.log, bundle.log_size}};
	verify_run(&request, &found);
	/* Nobody is named, and no host log is asked: nothing may be believed. */
	if (found.verdict == VERDICT_INTACT)
		abort();
	bundle_close(&bundle);
	return 0;
}
