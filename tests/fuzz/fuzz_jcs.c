/*
 * Foreign JSON: the fast check and the slow writer agree on what is canonical, and writing again changes nothing.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/jcs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP_BUF struct buf out = {.limit = 1 << 20}, again = {.limit = 1 << 20};
	const struct bytes in = {(const char *)data, size};
	bool canonical = jcs_is_canonical(in);

	if (!jcs_write(in, &out, NULL)) {
		if (canonical)
			abort();
		return 0;
	}
	if (canonical != bytes_equal(in, buf_bytes(&out)) || !jcs_is_canonical(buf_bytes(&out)))
		abort();
	if (!jcs_write(buf_bytes(&out), &again, NULL) || !bytes_equal(buf_bytes(&out), buf_bytes(&again)))
		abort();
	(void)jcs_member(in, "a");
	return 0;
}
