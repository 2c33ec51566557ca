/*
 * Compressed bodies: cut anywhere, they stand for the same, or for nothing.
 */
#include "fuzz.h"

#include "decode.h"

static void out(void *context, struct bytes piece)
{
	need(piece.size > 0);
	buf_append_bytes(context, piece);
}

static bool decode(const char *encoding, struct bytes body, size_t step, struct buf *text)
{
	struct decoder *decoder = decoder_new(bytes_of(encoding));
	bool good = true;

	need(decoder);
	while (good && body.size > 0) {
		struct bytes piece = {body.data, step < body.size ? step : body.size};
		good = decoder_feed(decoder, piece, out, text);
		body.data += piece.size;
		body.size -= piece.size;
	}
	decoder_free(decoder);
	return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const encodings[] = {"gzip", "deflate", "br", "zstd"};
	struct input input = {data, size};
	const char *encoding = encodings[take_number(&input, 1) % 4];
	size_t step = 1 + (size_t)take_number(&input, 1);
	struct bytes body = {(const char *)input.data, input.size};
	struct buf whole = {.limit = 1 << 24}, pieces = {.limit = 1 << 24};
	bool good = decode(encoding, body, SIZE_MAX, &whole);

	need(decode(encoding, body, step, &pieces) == good);
	if (good)
		need(bytes_equal(buf_bytes(&whole), buf_bytes(&pieces)));
	buf_free(&whole);
	buf_free(&pieces);
	return 0;
}
