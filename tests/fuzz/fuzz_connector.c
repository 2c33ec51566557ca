/*
 * connector_parse() over any packet: nothing is read past its end, and an event says only what its type has.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "os/connector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct connector_event event;
	/* A copy that ends where the packet ends, at an address that is aligned for nothing. */
	uint8_t *packet = malloc(size + 1);

	if (!packet)
		return 0;
	if (size > 0)
		memcpy(packet + 1, data, size);
	bool accepted = connector_parse(packet + 1, size, &event);
	if (accepted && event.type != CONNECTOR_FORK && event.type != CONNECTOR_EXEC && event.type != CONNECTOR_EXIT)
		abort();
	/* Only a fork has a parent, only an exit a status. */
	if (accepted && event.type != CONNECTOR_FORK && event.parent_tgid != 0)
		abort();
	if (accepted && event.type != CONNECTOR_EXIT && event.status != 0)
		abort();
	free(packet);
	return 0;
}
