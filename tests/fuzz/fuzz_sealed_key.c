/*
 * The file of a sealed key: what is taken demands no more than we would give.
 */
#include <stdint.h>
#include <stdlib.h>

#include "../../ledger/sealed_key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sealed_key sealed;

	if (sealed_key_parse((struct bytes){(const char *)data, size}, &sealed) &&
	    (sealed.passes > 16 || sealed.passes < 1 || sealed.memory > 1U << 30 || size >= SEALED_KEY_TEXT_SIZE))
		abort();
	return 0;
}
