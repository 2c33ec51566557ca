#include "base/clock.h"

enum { NS_PER_SECOND = 1000000000 };

uint64_t clock_monotonic_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

int64_t clock_realtime_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

/* Write `value` with `digits` digits, then `after`. */
static char *put_digits(char *to, int64_t value, int digits, char after)
{
	for (int i = digits - 1; i >= 0; i--) {
		to[i] = (char)('0' + value % 10);
		value /= 10;
	}
	to[digits] = after;
	return to + digits + 1;
}

void clock_rfc3339(int64_t realtime_ns, char out[31])
{
	int64_t seconds = realtime_ns / NS_PER_SECOND;
	int64_t fraction = realtime_ns % NS_PER_SECOND;
	if (fraction < 0) {
		fraction += NS_PER_SECOND;
		seconds--;
	}
	/* 64 bits of nanoseconds reach from 1677 to 2262: the year always has four digits. */
	time_t time = (time_t)seconds;
	struct tm tm;
	gmtime_r(&time, &tm);

	out = put_digits(out, tm.tm_year + 1900, 4, '-');
	out = put_digits(out, tm.tm_mon + 1, 2, '-');
	out = put_digits(out, tm.tm_mday, 2, 'T');
	out = put_digits(out, tm.tm_hour, 2, ':');
	out = put_digits(out, tm.tm_min, 2, ':');
	out = put_digits(out, tm.tm_sec, 2, '.');
	out = put_digits(out, fraction, 9, 'Z');
	*out = '\0';
}
