/*
 * Server-sent events: cut anywhere, the events are those that a reader of the whole finds, who goes by lines.
 */
#include "fuzz.h"

#include "witness/sse.h"

static void data(void *context, struct bytes piece)
{
	buf_append_bytes(context, piece);
}

static void dispatch(void *context)
{
	buf_append_text(context, "<END>");
}

/* The first line of the text, without its end, which is taken off too. False when it has none. */
static bool take_line(struct bytes *text, struct bytes *line)
{
	size_t size = 0;

	while (size < text->size && text->data[size] != '\n' && text->data[size] != '\r')
		size++;
	if (size == text->size)
		return false;
	*line = (struct bytes){text->data, size};
	size += text->data[size] == '\r' && size + 1 < text->size && text->data[size + 1] == '\n' ? 2 : 1;
	text->data += size;
	text->size -= size;
	return true;
}

static void read_lines(struct bytes text, struct buf *out)
{
	struct bytes line, name = BYTES("data");
	bool begun = false;

	if (bytes_start_with(text, BYTES("\xef\xbb\xbf"))) {
		text.data += 3;
		text.size -= 3;
	}
	while (take_line(&text, &line)) {
		if (line.size == 0) {
			if (begun)
				buf_append_text(out, "<END>");
			begun = false;
		} else if (bytes_equal(line, name) || bytes_start_with(line, BYTES("data:"))) {
			size_t skip = line.size == name.size ? name.size : name.size + 1;
			skip += line.size > skip && line.data[skip] == ' ';
			if (begun)
				buf_append_char(out, '\n');
			begun = true;
			buf_append(out, line.data + skip, line.size - skip);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const struct sse_handler handler = {.data = data, .dispatch = dispatch};
	struct input input = {bytes, size};
	size_t step = 1 + (size_t)take_number(&input, 1) % 64;
	struct bytes text = {(const char *)input.data, input.size};
	struct buf expected = {.limit = 1 << 24}, pieces = {.limit = 1 << 24};
	struct sse sse;

	/* An event that is not whole is no event: its beginning was handed on, and is dropped by who takes it. */
	read_lines(text, &expected);
	sse_begin(&sse, &handler, &pieces);
	for (struct bytes left = text; left.size > 0;) {
		struct bytes piece = {left.data, step < left.size ? step : left.size};
		sse_feed(&sse, piece);
		left.data += piece.size;
		left.size -= piece.size;
	}
	const char end[] = "<END>";
	size_t whole = 0;
	for (size_t i = 0; i + sizeof(end) - 1 <= expected.size; i++)
		if (memcmp(expected.data + i, end, sizeof(end) - 1) == 0)
			whole = i + sizeof(end) - 1;
	need(pieces.size >= whole && (whole == 0 || memcmp(pieces.data, expected.data, whole) == 0));
	if (sse_is_between(&sse))
		need(bytes_equal(buf_bytes(&expected), buf_bytes(&pieces)));
	buf_free(&expected);
	buf_free(&pieces);
	return 0;
}
