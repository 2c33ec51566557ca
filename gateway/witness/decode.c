#include "decode.h"

#include <brotli/decode.h>
#include <stdlib.h>
#include <strings.h>
#include <zlib.h>
#include <zstd.h>

enum coding { CODING_IDENTITY, CODING_ZLIB, CODING_BROTLI, CODING_ZSTD };
enum { PIECE_SIZE = 32 << 10, WINDOW_LOG_LIMIT = 23 /* 8 MiB: what RFC 8878 asks of those who decode */ };
/* What a body may stand for: a small one could stand for more than anybody can read. */
static const uint64_t output_limit = (uint64_t)512 << 20;

struct decoder {
	enum coding coding;
	bool broken, ended;
	uint64_t size;
	z_stream zlib;
	BrotliDecoderState *brotli; /* owned */
	ZSTD_DCtx *zstd;            /* owned */
};

static bool coding_of(struct bytes encoding, enum coding *coding)
{
	static const struct {
		const char *name;
		enum coding coding;
	} names[] = {{"", CODING_IDENTITY},   {"identity", CODING_IDENTITY}, {"gzip", CODING_ZLIB},
		     {"x-gzip", CODING_ZLIB}, {"deflate", CODING_ZLIB},      {"br", CODING_BROTLI},
		     {"zstd", CODING_ZSTD}};

	while (encoding.size > 0 && (encoding.data[0] == ' ' || encoding.data[0] == '\t')) {
		encoding.data++;
		encoding.size--;
	}
	while (encoding.size > 0 &&
	       (encoding.data[encoding.size - 1] == ' ' || encoding.data[encoding.size - 1] == '\t'))
		encoding.size--;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i].name) == encoding.size &&
		    (encoding.size == 0 || strncasecmp(names[i].name, encoding.data, encoding.size) == 0)) {
			*coding = names[i].coding;
			return true;
		}
	return false;
}

static bool begin(struct decoder *decoder)
{
	switch (decoder->coding) {
	case CODING_ZLIB: /* the largest window; gzip or zlib, as it begins */
		return inflateInit2(&decoder->zlib, MAX_WBITS + 32) == Z_OK;
	case CODING_BROTLI:
		decoder->brotli = BrotliDecoderCreateInstance(NULL, NULL, NULL);
		return decoder->brotli != NULL;
	case CODING_ZSTD:
		decoder->zstd = ZSTD_createDCtx();
		return decoder->zstd &&
		       !ZSTD_isError(ZSTD_DCtx_setParameter(decoder->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_LIMIT));
	default:
		return true;
	}
}

struct decoder *decoder_new(struct bytes encoding)
{
	enum coding coding;

	if (!coding_of(encoding, &coding))
		return NULL;
	struct decoder *decoder = calloc(1, sizeof(*decoder));
	if (!decoder)
		return NULL;
	decoder->coding = coding;
	if (!begin(decoder)) {
		decoder_free(decoder);
		return NULL;
	}
	return decoder;
}

void decoder_free(struct decoder *decoder)
{
	if (!decoder)
		return;
	if (decoder->coding == CODING_ZLIB)
		inflateEnd(&decoder->zlib);
	BrotliDecoderDestroyInstance(decoder->brotli);
	ZSTD_freeDCtx(decoder->zstd);
	free(decoder);
}

/*
 * One piece of output, as far as the input goes. Returns how many bytes of it there are, or -1. `*in` loses what was read;
 * `*more` says that the output had no room for all.
 */
static ssize_t zlib_piece(struct decoder *decoder, struct bytes *in, char *out, bool *more)
{
	/* zlib's input has no const; it does not write to it. */
	union {
		const char *from;
		Bytef *to;
	} data = {in->data};

	if (decoder->ended) { /* another member follows */
		inflateReset(&decoder->zlib);
		decoder->ended = false;
	}
	uInt size = in->size < (1u << 30) ? (uInt)in->size : 1u << 30;
	decoder->zlib.next_in = data.to;
	decoder->zlib.avail_in = size;
	decoder->zlib.next_out = (Bytef *)out;
	decoder->zlib.avail_out = PIECE_SIZE;
	int result = inflate(&decoder->zlib, Z_SYNC_FLUSH);
	if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
		return -1;
	decoder->ended = result == Z_STREAM_END;
	in->data += size - decoder->zlib.avail_in;
	in->size -= size - decoder->zlib.avail_in;
	*more = decoder->zlib.avail_out == 0;
	return PIECE_SIZE - (ssize_t)decoder->zlib.avail_out;
}

/* NOLINTBEGIN(readability-non-const-parameter): it takes what is cast for what is not written */
static ssize_t brotli_piece(struct decoder *decoder, struct bytes *in, char *out, bool *more)
{
	size_t room = PIECE_SIZE;
	const uint8_t *next_in = (const uint8_t *)in->data;
	uint8_t *next_out = (uint8_t *)out;
	BrotliDecoderResult result =
	    BrotliDecoderDecompressStream(decoder->brotli, &in->size, &next_in, &room, &next_out, NULL);

	in->data = (const char *)next_in;
	*more = result == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT;
	if (result == BROTLI_DECODER_RESULT_ERROR || (result == BROTLI_DECODER_RESULT_SUCCESS && in->size > 0))
		return -1;
	return PIECE_SIZE - (ssize_t)room;
}
static ssize_t zstd_piece(struct decoder *decoder, struct bytes *in, char *out, bool *more)
{
	ZSTD_inBuffer input = {in->data, in->size, 0};
	ZSTD_outBuffer output = {out, PIECE_SIZE, 0};
	size_t result = ZSTD_decompressStream(decoder->zstd, &output, &input);

	in->data += input.pos;
	in->size -= input.pos;
	*more = output.pos == PIECE_SIZE;
	return ZSTD_isError(result) ? -1 : (ssize_t)output.pos;
}
/* NOLINTEND(readability-non-const-parameter) */

static ssize_t piece_of(struct decoder *decoder, struct bytes *in, char *out, bool *more)
{
	if (decoder->coding == CODING_ZLIB)
		return zlib_piece(decoder, in, out, more);
	return decoder->coding == CODING_BROTLI ? brotli_piece(decoder, in, out, more)
						: zstd_piece(decoder, in, out, more);
}

bool decoder_feed(struct decoder *decoder, struct bytes bytes, decoder_out *out, void *context)
{
	char piece[PIECE_SIZE];
	bool more = false;

	if (decoder->coding == CODING_IDENTITY) {
		out(context, bytes);
		return true;
	}
	while (!decoder->broken && (bytes.size > 0 || more)) {
		size_t before = bytes.size;
		ssize_t size = piece_of(decoder, &bytes, piece, &more);
		if (size < 0 || (size == 0 && bytes.size == before && bytes.size > 0)) {
			decoder->broken = true;
			break;
		}
		decoder->size += (uint64_t)size;
		decoder->broken = decoder->size > output_limit;
		if (size > 0 && !decoder->broken)
			out(context, (struct bytes){piece, (size_t)size});
	}
	return !decoder->broken;
}
