/*
 * Questions of DNS messages (RFC 1035 section 4.1): who the agent wanted to reach, or what it carried out in a name.
 */
#include <stdio.h>
#include <string.h>

#include "reading.h"

enum { HEADER = 12, QUESTIONS_LIMIT = 8, NAME_LIMIT = 255, LABEL_LIMIT = 63, RESPONSE_BIT = 0x80, OPCODE_MASK = 0x78 };

static const struct {
	unsigned type;
	const char *name;
} types[] = {{1, "A"},    {2, "NS"},    {5, "CNAME"}, {6, "SOA"},   {12, "PTR"},   {15, "MX"},
	     {16, "TXT"}, {28, "AAAA"}, {33, "SRV"},  {64, "SVCB"}, {65, "HTTPS"}, {255, "ANY"}};

static unsigned number16(struct bytes message, size_t at)
{
	return (unsigned)(((uint8_t)message.data[at] << 8) | (uint8_t)message.data[at + 1]);
}

/* Text as in a zone file (RFC 1035 section 5.1): dots and backslashes inside labels escaped. */
static void append_label(char *text, size_t *used, const char *label, size_t length)
{
	if (*used > 0)
		text[(*used)++] = '.';
	for (size_t i = 0; i < length; i++) {
		if (label[i] == '.' || label[i] == '\\')
			text[(*used)++] = '\\';
		text[(*used)++] = label[i];
	}
}

/* The name at `*at` into `text` (room for 2 * NAME_LIMIT); false when it is malformed or compressed. */
static bool read_name_at(struct bytes message, size_t *at, char *text, size_t *used)
{
	size_t total = 0;

	*used = 0;
	while (*at < message.size) {
		size_t length = (uint8_t)message.data[(*at)++];
		if (length == 0)
			return true;
		total += length + 1;
		if (length > LABEL_LIMIT || total > NAME_LIMIT || message.size - *at < length)
			return false;
		append_label(text, used, message.data + *at, length);
		*at += length;
	}
	return false;
}

static const char *type_name(unsigned type)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].type == type)
			return types[i].name;
	return NULL;
}

bool reading_dns(struct reading *reading, struct bytes message)
{
	struct arena *arena = reading_arena(reading);

	if (message.size < HEADER || ((uint8_t)message.data[2] & (RESPONSE_BIT | OPCODE_MASK)) != 0)
		return false;
	unsigned count = number16(message, 4);
	if (count == 0 || count > QUESTIONS_LIMIT)
		return false;
	struct bytes *questions = arena_alloc(arena, count * sizeof(*questions));
	size_t at = HEADER, found = 0;
	while (questions && found < count) {
		char text[2 * NAME_LIMIT + 2];
		size_t used;
		if (!read_name_at(message, &at, text, &used) || message.size - at < 4)
			break;
		unsigned type = number16(message, at);
		at += 4;
		const char *name = type_name(type);
		char *line = arena_alloc(arena, used + 16);
		if (!line)
			break;
		memcpy(line, text, used);
		int tail = name ? snprintf(line + used, 16, " %s", name) : snprintf(line + used, 16, " TYPE%u", type);
		questions[found++] = (struct bytes){line, used + (size_t)tail};
	}
	if (found == 0)
		return false;
	struct effect_value *value = reading_value(reading, "dns_questions", VALUE_LIST);
	value->list.items = questions;
	value->list.count = found;
	reading->out->dns = true;
	return true;
}
