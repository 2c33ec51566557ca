#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/message.h"

/* A store_failed packet: errno 5, "no". */
static const char store_failed[] = "\x01\0?\0\x05\0\0\0\0\0\0\0\x02\0\0\0no";
enum { STORE_FAILED_SIZE = sizeof(store_failed) - 1 };

static void make_store_failed(char packet[STORE_FAILED_SIZE])
{
	memcpy(packet, store_failed, STORE_FAILED_SIZE);
	packet[2] = (char)MESSAGE_store_failed;
}

static bool decode(const char *packet, size_t size, enum message_role sender, int number)
{
	/* An exact heap copy, so that a sanitizer sees a read past the end. */
	struct buf copy CLEANUP_BUF = {0};
	buf_append(&copy, packet, size);
	struct message message;
	struct err err = {0};
	bool decoded = message_decode(&message, buf_bytes(&copy), sender, &err);
	assert_int_equal(err.number, number);
	assert_int_equal(decoded, number == 0);
	return decoded;
}

static void test_known_bytes(void **state)
{
	(void)state;
	char packet[STORE_FAILED_SIZE];
	make_store_failed(packet);
	struct message message = {.type = MESSAGE_store_failed, .fields = {{.number = 5}, {.bytes = BYTES("no")}}};
	struct buf out CLEANUP_BUF = {0};
	assert_true(message_encode(&message, &out, NULL));
	assert_int_equal(out.size, sizeof(packet));
	assert_memory_equal(out.data, packet, sizeof(packet));

	struct message got;
	assert_true(message_decode(&got, buf_bytes(&out), MESSAGE_ROLE_scribe, NULL));
	assert_int_equal(got.type, MESSAGE_store_failed);
	assert_int_equal(got.fields[0].number, 5);
	assert_true(bytes_equal(got.fields[1].bytes, BYTES("no")));
}

static void test_malformed(void **state)
{
	(void)state;
	char packet[STORE_FAILED_SIZE + 1] = {0};
	make_store_failed(packet);
	assert_true(decode(packet, STORE_FAILED_SIZE, MESSAGE_ROLE_scribe, 0));
	for (size_t size = 0; size < STORE_FAILED_SIZE; size++)
		decode(packet, size, MESSAGE_ROLE_scribe, EBADMSG);
	decode(packet, STORE_FAILED_SIZE + 1, MESSAGE_ROLE_scribe, EBADMSG);
	decode(packet, STORE_FAILED_SIZE, MESSAGE_ROLE_monitor, EPERM);
	decode(packet, STORE_FAILED_SIZE, MESSAGE_ROLE_guardian, EPERM);
	decode(packet, STORE_FAILED_SIZE, MESSAGE_ROLE_gateway, EPERM);

	static const struct {
		size_t at;
		char value;
	} rows[] = {{0, 0}, {0, 2}, {1, 1}, {2, MESSAGE_TYPE_COUNT}, {3, 1}, {12, 1}, {12, 3}, {15, '\xff'}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		make_store_failed(packet);
		packet[rows[i].at] = rows[i].value;
		decode(packet, STORE_FAILED_SIZE, MESSAGE_ROLE_scribe, EBADMSG);
	}
}

/* A length past the end must stop the reader there, not let the next field be read from beyond. */
static void test_length_past_end(void **state)
{
	(void)state;
	char packet[4 + 8 + 8 + 4 + 4] = {MESSAGE_VERSION, 0, (char)MESSAGE_start_failed};
	assert_true(decode(packet, sizeof(packet), MESSAGE_ROLE_monitor, 0));
	packet[20] = 4;
	decode(packet, sizeof(packet), MESSAGE_ROLE_monitor, EBADMSG);
	packet[22] = 0x7f;
	decode(packet, sizeof(packet), MESSAGE_ROLE_monitor, EBADMSG);
	packet[23] = '\xff';
	decode(packet, sizeof(packet), MESSAGE_ROLE_monitor, EBADMSG);
}

/* Every row of the table: only its sender may send it, and it survives the trip. */
static void test_every_message(void **state)
{
	(void)state;
	static const struct {
		enum message_type type;
		enum message_role sender;
		const char *name, *fields;
	} rows[] = {
#define ROLE(...)
#define MESSAGE(identifier, name, sender, fields, meaning) {MESSAGE_##identifier, MESSAGE_ROLE_##sender, name, fields},
#include "messages.def"
#undef ROLE
#undef MESSAGE
	};
	static const enum message_role roles[] = {
#define ROLE(identifier, name) MESSAGE_ROLE_##identifier,
#define MESSAGE(...)
#include "messages.def"
#undef ROLE
#undef MESSAGE
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_string_equal(message_name(rows[i].type), rows[i].name);
		struct message message = {.type = rows[i].type};
		for (size_t f = 0; rows[i].fields[f]; f++) {
			if (rows[i].fields[f] == 'n')
				message.fields[f].number = UINT64_MAX - f;
			else
				message.fields[f].bytes = (struct bytes){"a\0bcdef", 7 - f};
		}
		struct buf out CLEANUP_BUF = {0};
		assert_true(message_encode(&message, &out, NULL));
		for (size_t r = 0; r < sizeof(roles) / sizeof(roles[0]); r++) {
			struct message got;
			assert_int_equal(message_decode(&got, buf_bytes(&out), roles[r], NULL),
					 roles[r] == rows[i].sender);
			for (size_t f = 0; roles[r] == rows[i].sender && rows[i].fields[f]; f++) {
				if (rows[i].fields[f] == 'n')
					assert_int_equal(got.fields[f].number, message.fields[f].number);
				else
					assert_true(bytes_equal(got.fields[f].bytes, message.fields[f].bytes));
			}
		}
	}
	assert_string_equal(message_name(MESSAGE_TYPE_COUNT), "unknown");
}

static void test_size_limit(void **state)
{
	(void)state;
	char content[MESSAGE_SIZE_LIMIT + 1] = {0};
	struct message message = {.type = MESSAGE_store_failed};
	struct buf out CLEANUP_BUF = {0};
	struct err err = {0};
	message.fields[1].bytes = (struct bytes){content, MESSAGE_SIZE_LIMIT - 16};
	assert_true(message_encode(&message, &out, &err));
	assert_int_equal(out.size, MESSAGE_SIZE_LIMIT);
	message.fields[1].bytes.size++;
	assert_false(message_encode(&message, &out, &err));
	assert_int_equal(err.number, EMSGSIZE);
	assert_int_equal(out.size, MESSAGE_SIZE_LIMIT);
	message.fields[1].bytes.size = SIZE_MAX - 8;
	assert_false(message_encode(&message, &out, NULL));
	message.type = MESSAGE_TYPE_COUNT;
	assert_false(message_encode(&message, &out, NULL));
}

static void test_socket(void **state)
{
	(void)state;
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
	static struct message message, got;
	struct err err = {0};
	assert_false(message_receive(ends[1], &got, MESSAGE_ROLE_scribe, &err));
	assert_int_equal(err.number, EAGAIN);

	message.type = MESSAGE_store_failed;
	message.fields[0].number = 28;
	message.fields[1].bytes = BYTES("full");
	assert_true(message_send(ends[0], &message, NULL));
	message.type = MESSAGE_store_ready;
	assert_true(message_send(ends[0], &message, NULL));
	assert_true(message_receive(ends[1], &got, MESSAGE_ROLE_scribe, NULL));
	assert_int_equal(got.fields[0].number, 28);
	assert_true(bytes_equal(got.fields[1].bytes, BYTES("full")));
	assert_true(message_receive(ends[1], &got, MESSAGE_ROLE_scribe, NULL));
	assert_int_equal(got.type, MESSAGE_store_ready);

	/* A valid message with a tail beyond the receive buffer must not pass as the message. */
	static char large[MESSAGE_SIZE_LIMIT + 1] = {1};
	assert_int_equal(send(ends[0], large, sizeof(large), 0), sizeof(large));
	err_clear(&err);
	assert_false(message_receive(ends[1], &got, MESSAGE_ROLE_scribe, &err));
	assert_int_equal(err.number, EMSGSIZE);

	close(ends[0]);
	err_clear(&err);
	assert_false(message_receive(ends[1], &got, MESSAGE_ROLE_scribe, &err));
	assert_int_equal(err.number, 0);
	assert_string_equal(err.text, "closed");
	err_clear(&err);
	assert_false(message_send(ends[1], &message, &err)); /* and no SIGPIPE */
	assert_int_equal(err.number, EPIPE);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_known_bytes),     cmocka_unit_test(test_malformed),
	    cmocka_unit_test(test_length_past_end), cmocka_unit_test(test_every_message),
	    cmocka_unit_test(test_size_limit),      cmocka_unit_test(test_socket),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
