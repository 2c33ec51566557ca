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
	static const uint64_t high_bits = UINT64_C(0x8080808080808080);
	while (bytes.size != 0) {
		/* Nearly every text is ASCII. */
		uint64_t word;
		if (bytes.size >= sizeof(word)) {
			memcpy(&word, bytes.data, sizeof(word));
			if ((word & high_bits) == 0) {
				bytes.data += sizeof(word);
				bytes.size -= sizeof(word);
				continue;
			}
		}
		uint32_t code_point;
		size_t size = text_utf8_decode(bytes, &code_point);
		if (size == 0)
			return false;
		bytes.data += size;
		bytes.size -= size;
	}
	return true;
}

unsigned text_decimal_size(uint64_t value)
{
	/* powers[n] is the least number of n + 1 digits, but for 0, which has one digit too. */
	static const uint64_t powers[] = {0,
					  10,
					  100,
					  1000,
					  10000,
					  100000,
					  1000000,
					  10000000,
					  100000000,
					  1000000000,
					  10000000000,
					  100000000000,
					  1000000000000,
					  10000000000000,
					  100000000000000,
					  1000000000000000,
					  10000000000000000,
					  100000000000000000,
					  1000000000000000000,
					  UINT64_C(10000000000000000000)};
	/* 1233 / 4096 is log10(2), a little rounded up: the bits leave open whether it is `least` digits or one more. */
	unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);
	unsigned least = bits * 1233 >> 12;
	return least + (value >= powers[least]);
}

char *text_put_decimal(char *to, uint64_t value, unsigned digits)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
				    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
				    "8081828384858687888990919293949596979899";
	unsigned left = digits;
	for (; left >= 2; left -= 2, value /= 100)
		memcpy(to + left - 2, pairs + value % 100 * 2, 2);
	if (left > 0)
		*to = (char)('0' + value % 10);
	return to + digits;
}

void text_decimal(struct buf *out, uint64_t value)
{
	unsigned digits = text_decimal_size(value);
	char *to = buf_reserve(out, digits);
	if (!to)
		return;
	text_put_decimal(to, value, digits);
	buf_commit(out, digits);
}

void text_base64(struct buf *out, struct bytes bytes)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *data = (const unsigned char *)bytes.data;
	size_t groups = bytes.size / 3 + (bytes.size % 3 != 0);
	if (groups > SIZE_MAX / 4) {
		out->failed = true;
		return;
	}
	char *to = buf_reserve(out, groups * 4);
	if (!to)
		return;
	for (size_t i = 0; i < bytes.size; i += 3, to += 4) {
		size_t left = bytes.size - i;
		uint32_t group = (uint32_t)data[i] << 16;
		if (left > 1)
			group |= (uint32_t)data[i + 1] << 8;
		if (left > 2)
			group |= data[i + 2];
		to[0] = alphabet[group >> 18];
		to[1] = alphabet[group >> 12 & 63];
		to[2] = left > 1 ? alphabet[group >> 6 & 63] : '=';
		to[3] = left > 2 ? alphabet[group & 63] : '=';
	}
	buf_commit(out, groups * 4);
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

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool text_hex_parse(struct bytes text, void *out, size_t size)
{
	uint8_t *to = out;
	if (text.size / 2 != size || text.size % 2 != 0)
		return false;
	for (size_t i = 0; i < size; i++) {
		int high = hex_value(text.data[2 * i]), low = hex_value(text.data[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		to[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

static int base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* One group of four; how many bytes it stands for, 0 when it is none. Only the last one may be padded. */
static size_t base64_group(const char *text, bool last, char out[3])
{
	size_t padding = !last || text[3] != '=' ? 0 : text[2] != '=' ? 1 : 2;
	uint32_t group = 0;
	for (size_t i = 0; i < 4; i++) {
		int value = i < 4 - padding ? base64_value(text[i]) : 0;
		if (value < 0)
			return 0;
		group = group << 6 | (uint32_t)value;
	}
	if ((padding == 1 && (group & 0xff) != 0) || (padding == 2 && (group & 0xffff) != 0))
		return 0;
	out[0] = (char)(group >> 16);
	out[1] = (char)(group >> 8);
	out[2] = (char)group;
	return 3 - padding;
}

bool text_base64_parse(struct buf *out, struct bytes text)
{
	size_t before = out->size;
	if (text.size % 4 != 0)
		return false;
	for (size_t i = 0; i < text.size; i += 4) {
		char group[3];
		size_t size = base64_group(text.data + i, i + 4 == text.size, group);
		if (size == 0) {
			out->size = before;
			return false;
		}
		buf_append(out, group, size);
	}
	return !out->failed;
}

bool text_decimal_parse(struct bytes text, uint64_t *value)
{
	uint64_t number = 0;
	if (text.size == 0 || (text.size > 1 && text.data[0] == '0'))
		return false;
	for (size_t i = 0; i < text.size; i++) {
		unsigned digit = (unsigned)(text.data[i] - '0');
		if (digit > 9 || number > (UINT64_MAX - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*value = number;
	return true;
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
