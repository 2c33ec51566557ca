#include "render.h"

#include <errno.h>
#include <inttypes.h>
#include <langinfo.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "command.h"
#include "ledger/record.h"

bool render_utf8(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

const char *render_style(FILE *out, enum style style)
{
	static const char *const sequences[] = {
	    [STYLE_PLAIN] = "\033[0m", [STYLE_BOLD] = "\033[1m",    [STYLE_DIM] = "\033[2m",
	    [STYLE_RED] = "\033[31m",  [STYLE_YELLOW] = "\033[33m", [STYLE_GREEN] = "\033[32m",
	};
	const char *off = getenv("NO_COLOR"), *term = getenv("TERM");
	if ((off && *off) || (term && strcmp(term, "dumb") == 0) || !isatty(fileno(out)))
		return "";
	return sequences[style];
}

size_t render_width(FILE *out)
{
	struct winsize size;
	if (!isatty(fileno(out)))
		return 0;
	return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col >= 20 ? size.ws_col : 80;
}

void render_class(struct buf *text, FILE *out, enum record_class class, const char *exposed)
{
	buf_append_format(text, " %s[%s", render_style(out, STYLE_DIM), record_class_name(class));
	if (exposed && *exposed) {
		buf_append_text(text, ", key exposed: ");
		text_for_terminal(text, bytes_of(exposed));
	}
	buf_append_format(text, "]%s", render_style(out, STYLE_PLAIN));
}

const char *render_dot(void)
{
	return render_utf8() ? " \u00b7 " : " - ";
}

const char *render_more(void)
{
	return render_utf8() ? "\u2026" : "...";
}

const char *render_times(void)
{
	return render_utf8() ? "\u00d7" : "x";
}

void render_duration(struct buf *out, uint64_t ns)
{
	uint64_t ms = ns / 1000000, seconds = ms / 1000, minutes = seconds / 60, hours = minutes / 60;
	if (ms < 1000)
		buf_append_format(out, "%" PRIu64 "ms", ms);
	else if (seconds < 10)
		buf_append_format(out, "%" PRIu64 ".%" PRIu64 "s", seconds, ms % 1000 / 100);
	else if (minutes == 0)
		buf_append_format(out, "%" PRIu64 "s", seconds);
	else if (hours == 0)
		buf_append_format(out, "%" PRIu64 "m%02" PRIu64 "s", minutes, seconds % 60);
	else
		buf_append_format(out, "%" PRIu64 "h%02" PRIu64 "m", hours, minutes % 60);
}

void render_time(struct buf *out, int64_t ns)
{
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm local;
	char text[64];
	if (localtime_r(&seconds, &local) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &local) > 0)
		buf_append_text(out, text);
}

void render_clock(struct buf *out, int64_t ns)
{
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm local;
	if (localtime_r(&seconds, &local))
		buf_append_format(out, "%02d:%02d:%02d.%03d", local.tm_hour, local.tm_min, local.tm_sec,
				  (int)(ns % 1000000000 / 1000000));
}

void render_count(struct buf *out, uint64_t count)
{
	char digits[24];
	int size = snprintf(digits, sizeof(digits), "%" PRIu64, count);
	for (int i = 0; i < size; i++) {
		if (i > 0 && (size - i) % 3 == 0 && render_utf8())
			buf_append_text(out, "\u2009");
		buf_append_char(out, digits[i]);
	}
}

void render_counted(struct buf *out, uint64_t count, const char *singular, const char *plural)
{
	render_count(out, count);
	buf_append_char(out, ' ');
	buf_append_text(out, count == 1 ? singular : plural);
}

void render_size(struct buf *out, uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	size_t unit = 0;
	uint64_t tenths = bytes * 10;
	while (tenths >= 10240 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		tenths /= 1024;
		unit++;
	}
	if (unit == 0 || tenths >= 1000)
		buf_append_format(out, "%" PRIu64 " %s", tenths / 10, units[unit]);
	else
		buf_append_format(out, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10, units[unit]);
}

/* Bytes of the character at `at` of well-formed UTF-8. */
static size_t character_size(struct bytes text, size_t at)
{
	size_t size = 1;
	while (at + size < text.size && ((unsigned char)text.data[at + size] & 0xc0) == 0x80)
		size++;
	return size;
}

void render_cut(struct buf *out, struct bytes escaped, size_t columns)
{
	if (columns == 0 || text_width(escaped) <= columns) {
		buf_append_bytes(out, escaped);
		return;
	}
	size_t mark = render_utf8() ? 1 : 3, used = 0, at = 0;
	while (at < escaped.size) {
		size_t size = character_size(escaped, at);
		size_t width = text_width((struct bytes){escaped.data + at, size});
		if (used + width + mark > columns)
			break;
		used += width;
		at += size;
	}
	buf_append(out, escaped.data, at);
	buf_append_text(out, render_more());
}

void render_padded(struct buf *out, struct bytes escaped, size_t columns)
{
	size_t width = text_width(escaped);
	buf_append_bytes(out, escaped);
	for (; width < columns; width++)
		buf_append_char(out, ' ');
}

void render_to_stderr(struct bytes text, int patience_ms)
{
	int fd = fileno(stderr);

	(void)fflush(stderr);
	while (text.size > 0) {
		struct pollfd room = {.fd = fd, .events = POLLOUT};
		/* A pipe with room has it for this much: the write will not wait either. */
		size_t some = text.size < PIPE_BUF ? text.size : PIPE_BUF;
		if (poll(&room, 1, patience_ms) <= 0 || !(room.revents & POLLOUT))
			return;
		ssize_t written = write(fd, text.data, some);
		if (written < 0 && errno != EINTR && errno != EAGAIN)
			return;
		if (written > 0)
			text = (struct bytes){text.data + written, text.size - (size_t)written};
	}
}

/* Who stopped a terminal (Ctrl-S) goes on with it; a pipe that is full may be nobody's any more. */
static int patience(void)
{
	enum { PIPE_MS = 3000 };

	return isatty(fileno(stderr)) ? -1 : PIPE_MS;
}

int render_out(FILE *out, const struct buf *text)
{
	if (text->failed) {
		struct err err = {.number = 0};
		err_set(&err, 0, "write: the answer is too long");
		return render_error(&err);
	}
	if (out == stderr)
		render_to_stderr(buf_bytes(text), patience());
	else
		fwrite(text->data ? text->data : "", 1, text->size, out);
	return EXIT_OK;
}

int render_error(const struct err *err)
{
	CLEANUP_BUF struct buf out = {.limit = 1 << 16};
	buf_append_format(&out, "%sassure:%s ", render_style(stderr, STYLE_RED), render_style(stderr, STYLE_PLAIN));
	text_for_terminal(&out, bytes_of(err->text));
	if (err->hint[0]) {
		buf_append_text(&out, "; ");
		text_for_terminal(&out, bytes_of(err->hint));
	}
	buf_append_char(&out, '\n');
	fflush(stdout);
	render_to_stderr(buf_bytes(&out), patience());
	return err->exit_status ? err->exit_status : EXIT_FAILED;
}
