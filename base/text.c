#include "base/text.h"

size_t text_utf8_decode(struct bytes bytes, uint32_t *code_point)
{
	if (bytes.size == 0)
		return 0;
	const unsigned char *data = (const unsigned char *)bytes.data;
	unsigned char lead = data[0];
	if (lead < 0x80) {
		*code_point = lead;
		return 1;
	}

	/* C0, C1 and F5 to FF never occur; the second byte's range rules out overlong forms, surrogates and more than
	   U+10FFFF (Unicode table 3-7). */
	size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
	if (lead < 0xc2 || lead > 0xf4 || bytes.size < size)
		return 0;
	unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
	unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
	if (data[1] < low || data[1] > high)
		return 0;

	uint32_t value = lead & (0x7fU >> size);
	for (size_t i = 1; i < size; i++) {
		if ((data[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (data[i] & 0x3fU);
	}
	*code_point = value;
	return size;
}

bool text_is_utf8(struct bytes bytes)
{
	while (bytes.size != 0) {
		uint32_t code_point;
		size_t size = text_utf8_decode(bytes, &code_point);
		if (size == 0)
			return false;
		bytes.data += size;
		bytes.size -= size;
	}
	return true;
}

void text_base64(struct buf *out, struct bytes bytes)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *data = (const unsigned char *)bytes.data;
	for (size_t i = 0; i < bytes.size; i += 3) {
		size_t left = bytes.size - i;
		uint32_t group = (uint32_t)data[i] << 16;
		if (left > 1)
			group |= (uint32_t)data[i + 1] << 8;
		if (left > 2)
			group |= data[i + 2];
		char text[4] = {alphabet[group >> 18], alphabet[group >> 12 & 63], '=', '='};
		if (left > 1)
			text[2] = alphabet[group >> 6 & 63];
		if (left > 2)
			text[3] = alphabet[group & 63];
		buf_append(out, text, sizeof(text));
	}
}

void text_hex(struct buf *out, struct bytes bytes)
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < bytes.size; i++) {
		unsigned char c = (unsigned char)bytes.data[i];
		char text[2] = {digits[c >> 4], digits[c & 15]};
		buf_append(out, text, sizeof(text));
	}
}

static const char text_crockford_alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

void text_crockford128(const uint8_t value[16], char out[27])
{
	/* 26 characters hold 130 bits: two zero bits come first. */
	uint32_t bits = 0;
	unsigned held = 2;
	size_t at = 0;
	for (size_t i = 0; i < 16; i++) {
		bits = (bits << 8 | value[i]) & 0xfff;
		for (held += 8; held >= 5; held -= 5)
			out[at++] = text_crockford_alphabet[bits >> (held - 5) & 31];
	}
	out[at] = '\0';
}

char text_crockford_canonical(char c)
{
	if (c >= 'a' && c <= 'z')
		c = (char)(c - 'a' + 'A');
	if (c == 'O')
		return '0';
	if (c == 'I' || c == 'L')
		return '1';
	return c != '\0' && strchr(text_crockford_alphabet, c) ? c : '\0';
}
