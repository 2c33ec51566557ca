#include "witness/sse.h"

enum state {
	STATE_MARK, /* within the byte order mark that may stand at the start */
	STATE_LINE, /* at the start of a line */
	STATE_FIELD,
	STATE_SPACE, /* behind the colon: one space is no part of the value */
	STATE_DATA,
	STATE_PASS, /* a line that says nothing to us */
};

void sse_begin(struct sse *sse, const struct sse_handler *handler, void *context)
{
	*sse = (struct sse){.handler = handler, .context = context, .state = STATE_MARK};
}

bool sse_is_between(const struct sse *sse)
{
	return !sse->data && (sse->state == STATE_LINE || sse->state == STATE_MARK);
}

static bool is_data(const struct sse *sse)
{
	return bytes_equal((struct bytes){sse->field, sse->field_size}, BYTES("data"));
}

static void begin_data(struct sse *sse)
{
	if (sse->data)
		sse->handler->data(sse->context, BYTES("\n"));
	sse->data = true;
}

static void end_line(struct sse *sse)
{
	if (sse->state == STATE_LINE && sse->data) {
		sse->data = false;
		sse->handler->dispatch(sse->context);
	} else if (sse->state == STATE_FIELD && is_data(sse)) {
		begin_data(sse); /* a name without a colon has an empty value */
	}
	sse->state = STATE_LINE;
}

/* One character of a line that is not (yet) a value. */
static void head(struct sse *sse, char c)
{
	if (sse->state == STATE_LINE) {
		sse->field_size = 0;
		sse->state = STATE_FIELD;
	}
	if (c == ':') {
		sse->state = is_data(sse) ? STATE_SPACE : STATE_PASS;
		if (sse->state == STATE_SPACE)
			begin_data(sse);
	} else if (sse->field_size == sizeof(sse->field)) {
		sse->state = STATE_PASS;
	} else {
		sse->field[sse->field_size++] = c;
	}
}

/* The bytes up to the line's end, or to the end of what there is. */
static const char *run(struct sse *sse, const char *at, const char *end)
{
	const char *feed = memchr(at, '\n', (size_t)(end - at));
	const char *stop = feed ? feed : end, *cr = memchr(at, '\r', (size_t)(stop - at));

	if (cr)
		stop = cr;
	if (sse->state == STATE_DATA && stop > at)
		sse->handler->data(sse->context, (struct bytes){at, (size_t)(stop - at)});
	return stop;
}

/* The mark is EF BB BF: what starts like it and goes on otherwise is a field that nobody knows. */
static bool is_mark(struct sse *sse, char c)
{
	static const char mark[] = "\xef\xbb\xbf";

	if (c != mark[sse->field_size]) {
		sse->state = sse->field_size == 0 ? STATE_LINE : STATE_PASS;
		return false;
	}
	if (++sse->field_size == sizeof(mark) - 1)
		sse->state = STATE_LINE;
	return true;
}

void sse_feed(struct sse *sse, struct bytes bytes)
{
	const char *at = bytes.data, *end = bytes.data + bytes.size;

	while (at < end) {
		char c = *at;
		bool second = c == '\n' && sse->carriage_return;
		sse->carriage_return = false;
		if (second || (sse->state == STATE_MARK && is_mark(sse, c))) {
			at++;
		} else if (c == '\n' || c == '\r') {
			sse->carriage_return = c == '\r';
			end_line(sse);
			at++;
		} else if (sse->state == STATE_SPACE) {
			sse->state = STATE_DATA;
			at += c == ' ';
		} else if (sse->state == STATE_DATA || sse->state == STATE_PASS) {
			at = run(sse, at, end);
		} else {
			head(sse, c);
			at++;
		}
	}
}
