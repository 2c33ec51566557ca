/*
 * Messages between our processes: the closed set of specs/messages.def over SOCK_SEQPACKET.
 *
 * One packet is one message: a header (version byte, zero byte, 16-bit type), then the fields that its row lists, in
 * order. Integers are little-endian; bytes are a 32-bit length and the content (absent bytes travel as empty ones). A
 * reader checks every bound and demands the end. An unknown type, one that its sender may not send, one out of turn, or
 * a malformed one is fatal to the connection (OpenSSH's monitor is the model).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

enum { MESSAGE_VERSION = 1, MESSAGE_SIZE_LIMIT = 4096, MESSAGE_FIELD_LIMIT = 12 };

enum message_role {
#define ROLE(identifier, name) MESSAGE_ROLE_##identifier,
#define MESSAGE(...)
#include "messages.def"
#undef ROLE
#undef MESSAGE
};

enum message_type {
#define ROLE(...)
#define MESSAGE(identifier, ...) MESSAGE_##identifier,
#include "messages.def"
#undef ROLE
#undef MESSAGE
	MESSAGE_TYPE_COUNT
};

/* One field of a message: a number or bytes, as its row says. */
union message_field {
	uint64_t number;
	struct bytes bytes; /* when read, points into the receive buffer */
};

struct message {
	enum message_type type;
	union message_field fields[MESSAGE_FIELD_LIMIT];
	char storage[MESSAGE_SIZE_LIMIT]; /* received packet */
};

/* Append the packet for `message` to `out`. */
bool message_encode(const struct message *message, struct buf *out, struct err *err);
/* Parse one packet, which must stay valid as long as the fields are used. `sender` is checked against the row. */
bool message_decode(struct message *message, struct bytes packet, enum message_role sender, struct err *err);

/* Send one message on a connected SOCK_SEQPACKET socket. */
bool message_send(int socket, const struct message *message, struct err *err);
/*
 * Receive one message. Returns false with err->number 0 and text "closed" at an orderly end; with err->number EAGAIN when
 * the socket is non-blocking and empty.
 */
bool message_receive(int socket, struct message *message, enum message_role sender, struct err *err);
const char *message_name(enum message_type type);
