/*
 * Certificates of a run's keys: one that is taken has one form, and holds under no key that did not sign it.
 */
#include <stdint.h>
#include <stdlib.h>

#include "ledger/certificate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct ed25519_key nobody = {{1}};
	struct certificate certificate;

	if (!certificate_read((struct bytes){(const char *)data, size}, &certificate, NULL))
		return 0;
	if (certificate.use >= USE_COUNT || certificate_verify(&certificate, &nobody) || size > CERTIFICATE_SIZE_LIMIT)
		abort();
	return 0;
}
