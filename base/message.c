#include "base/message.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

enum { MESSAGE_HEADER_SIZE = 4, MESSAGE_NUMBER_SIZE = 8, MESSAGE_LENGTH_SIZE = 4 };

struct message_row {
	const char *name;
	enum message_role sender;
	const char *fields;
};

static const struct message_row message_rows[MESSAGE_TYPE_COUNT] = {
#define ROLE(...)
#define MESSAGE(identifier, name, sender, fields, meaning) \
	[MESSAGE_##identifier] = {name, MESSAGE_ROLE_##sender, fields},
#include "messages.def"
#undef ROLE
#undef MESSAGE
};

#define ROLE(...)
#define MESSAGE(identifier, name, sender, fields, meaning) \
	static_assert(sizeof(fields) - 1 <= MESSAGE_FIELD_LIMIT, name " has too many fields");
#include "messages.def"
#undef ROLE
#undef MESSAGE

static const char *role_name(enum message_role role)
{
	switch (role) {
#define ROLE(identifier, name)          \
	case MESSAGE_ROLE_##identifier: \
		return name;
#define MESSAGE(...)
#include "messages.def"
#undef ROLE
#undef MESSAGE
	}
	return "unknown";
}

const char *message_name(enum message_type type)
{
	return (unsigned)type < MESSAGE_TYPE_COUNT ? message_rows[type].name : "unknown";
}

static void put_number(struct buf *out, uint64_t number, size_t size)
{
	for (size_t i = 0; i < size; i++)
		buf_append_char(out, (char)(number >> (8 * i) & 0xff));
}

static uint64_t get_number(const char *data, size_t size)
{
	uint64_t number = 0;
	for (size_t i = 0; i < size; i++)
		number |= (uint64_t)(unsigned char)data[i] << (8 * i);
	return number;
}

/* The size of the packet, or 0 when it is over the limit. */
static size_t packet_size(const struct message *message, const struct message_row *row)
{
	size_t size = MESSAGE_HEADER_SIZE;
	for (size_t i = 0; row->fields[i]; i++) {
		if (row->fields[i] == 'n') {
			size += MESSAGE_NUMBER_SIZE;
		} else {
			size_t content = message->fields[i].bytes.size;
			if (content > MESSAGE_SIZE_LIMIT)
				return 0;
			size += MESSAGE_LENGTH_SIZE + content;
		}
	}
	return size <= MESSAGE_SIZE_LIMIT ? size : 0;
}

bool message_encode(const struct message *message, struct buf *out, struct err *err)
{
	if ((unsigned)message->type >= MESSAGE_TYPE_COUNT)
		return err_set(err, EINVAL, "message type %u", (unsigned)message->type);
	const struct message_row *row = &message_rows[message->type];
	size_t size = packet_size(message, row);
	if (size == 0)
		return err_set(err, EMSGSIZE, "message %s", row->name);
	if (!buf_reserve(out, size))
		return err_set(err, ENOMEM, "message %s", row->name);

	put_number(out, MESSAGE_VERSION, 1);
	put_number(out, 0, 1);
	put_number(out, (uint64_t)message->type, 2);
	for (size_t i = 0; row->fields[i]; i++) {
		if (row->fields[i] == 'n') {
			put_number(out, message->fields[i].number, MESSAGE_NUMBER_SIZE);
		} else {
			put_number(out, message->fields[i].bytes.size, MESSAGE_LENGTH_SIZE);
			buf_append_bytes(out, message->fields[i].bytes);
		}
	}
	return true;
}

/* Take one field off the packet. */
static bool take_field(struct bytes *packet, char kind, union message_field *field)
{
	size_t size = kind == 'n' ? MESSAGE_NUMBER_SIZE : MESSAGE_LENGTH_SIZE;
	if (packet->size < size)
		return false;
	uint64_t number = get_number(packet->data, size);
	packet->data += size;
	packet->size -= size;
	if (kind == 'n') {
		field->number = number;
		return true;
	}
	if (number > packet->size)
		return false;
	field->bytes = (struct bytes){packet->data, (size_t)number};
	packet->data += number;
	packet->size -= (size_t)number;
	return true;
}

bool message_decode(struct message *message, struct bytes packet, enum message_role sender, struct err *err)
{
	memset(message->fields, 0, sizeof(message->fields));
	message->type = MESSAGE_TYPE_COUNT;
	if (packet.size < MESSAGE_HEADER_SIZE || packet.size > MESSAGE_SIZE_LIMIT)
		return err_set(err, EBADMSG, "message of %zu bytes from the %s", packet.size, role_name(sender));
	if (packet.data[0] != MESSAGE_VERSION || packet.data[1] != 0)
		return err_set(err, EBADMSG, "message header from the %s", role_name(sender));
	uint64_t type = get_number(packet.data + 2, 2);
	if (type >= MESSAGE_TYPE_COUNT)
		return err_set(err, EBADMSG, "message type %u from the %s", (unsigned)type, role_name(sender));
	const struct message_row *row = &message_rows[type];
	if (row->sender != sender)
		return err_set(err, EPERM, "message %s from the %s", row->name, role_name(sender));

	packet.data += MESSAGE_HEADER_SIZE;
	packet.size -= MESSAGE_HEADER_SIZE;
	for (size_t i = 0; row->fields[i]; i++)
		if (!take_field(&packet, row->fields[i], &message->fields[i]))
			return err_set(err, EBADMSG, "message %s is cut short", row->name);
	if (packet.size != 0)
		return err_set(err, EBADMSG, "message %s has %zu bytes too many", row->name, packet.size);
	message->type = (enum message_type)type;
	return true;
}

bool message_send(int socket, const struct message *message, struct err *err)
{
	struct buf packet CLEANUP_BUF = {.limit = MESSAGE_SIZE_LIMIT};
	if (!message_encode(message, &packet, err))
		return false;
	ssize_t n;
	do
		n = send(socket, packet.data, packet.size, MSG_NOSIGNAL | MSG_EOR);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_set(err, errno, "send message %s", message_name(message->type));
	if ((size_t)n != packet.size)
		return err_set(err, EIO, "send message %s", message_name(message->type));
	return true;
}

bool message_receive(int socket, struct message *message, enum message_role sender, struct err *err)
{
	/* MSG_TRUNC tells the packet's true size. Descriptors that a peer attaches are dropped by the kernel, because no
	   room is offered for them. */
	ssize_t n;
	bool reset = false;
	for (;;) {
		n = recv(socket, message->storage, sizeof(message->storage), MSG_TRUNC);
		if (n >= 0 || (errno != EINTR && errno != ECONNRESET) || (errno == ECONNRESET && reset))
			break;
		/* The peer left without reading our last message; what it had said before that still waits behind the error. */
		reset = reset || errno == ECONNRESET;
	}
	if (n < 0)
		return err_set(err, errno, "receive a message from the %s", role_name(sender));
	if (n == 0)
		return err_set(err, 0, "closed");
	if ((size_t)n > sizeof(message->storage))
		return err_set(err, EMSGSIZE, "receive a message from the %s", role_name(sender));
	return message_decode(message, (struct bytes){message->storage, (size_t)n}, sender, err);
}
