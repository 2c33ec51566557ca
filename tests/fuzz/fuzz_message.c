/*
 * message_decode() over any bytes from any sender: no read out of bounds, and whatever is accepted has exactly one
 * encoding, sent by exactly one role.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const enum message_role roles[] = {
#define ROLE(identifier, name) MESSAGE_ROLE_##identifier,
#define MESSAGE(...)
#include "messages.def"
#undef ROLE
#undef MESSAGE
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct message message;
	struct bytes packet = {(const char *)data, size};
	int accepted = 0;
	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
		struct err err = {0};
		if (!message_decode(&message, packet, roles[i], &err)) {
			if (!err_is_set(&err) || message.type != MESSAGE_TYPE_COUNT)
				abort();
			continue;
		}
		accepted++;
		struct buf out CLEANUP_BUF = {0};
		if (!message_encode(&message, &out, NULL) || !bytes_equal(buf_bytes(&out), packet))
			abort();
	}
	if (accepted > 1)
		abort();
	return 0;
}
