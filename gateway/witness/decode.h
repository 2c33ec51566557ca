/*
 * A copy of a body without its Content-Encoding, as it arrives.
 */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"

struct decoder;
typedef void decoder_out(void *context, struct bytes piece);

/*
 * For the value of a Content-Encoding header (absent: none). The caller frees it. NULL when the encoding is not known, is a
 * list of several, or there is no memory.
 */
struct decoder *decoder_new(struct bytes encoding);
void decoder_free(struct decoder *decoder);
/* False, and nothing more comes, when the bytes are not of that encoding or stand for too much. */
bool decoder_feed(struct decoder *decoder, struct bytes bytes, decoder_out *out, void *context);
