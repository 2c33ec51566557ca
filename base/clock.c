#include "base/clock.h"

#include "base/text.h"

enum { NS_PER_SECOND = 1000000000, SECONDS_PER_DAY = 86400 };

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

/* Quotient rounded down; the remainder, never negative, goes to `*rest`. */
static int64_t divide(int64_t value, int64_t by, int64_t *rest)
{
	int64_t quotient = value / by;
	*rest = value % by;
	if (*rest < 0) {
		*rest += by;
		quotient--;
	}
	return quotient;
}

static char *put_part(char *to, uint32_t value, unsigned digits, char after)
{
	to = text_put_decimal(to, value, digits);
	*to++ = after;
	return to;
}

/*
 * Not by gmtime_r(), which takes the C library's lock on time zones: records are made in many threads at once. Years are
 * counted from March, so that the leap day is the last one of its year.
 */
static char *put_date(char *to, int64_t days)
{
	enum { MARCH_0000 = 719468, ERA_DAYS = 146097, CENTURY_DAYS = 36524, LEAP_CYCLE_DAYS = 1461, YEAR_DAYS = 365 };
	/* 64 bits of nanoseconds reach from 1677 to 2262: never negative, and the year always has four digits. */
	uint32_t shifted = (uint32_t)(days + MARCH_0000);
	uint32_t era = shifted / ERA_DAYS, day = shifted % ERA_DAYS;
	/* Without the leap days before it, each year has 365. */
	uint32_t year = (day - day / (LEAP_CYCLE_DAYS - 1) + day / CENTURY_DAYS - day / (ERA_DAYS - 1)) / YEAR_DAYS;
	day -= YEAR_DAYS * year + year / 4 - year / 100;
	/* Five months from March or August on always have 153 days. */
	uint32_t month = (5 * day + 2) / 153;
	day -= (153 * month + 2) / 5;
	bool next_year = month >= 10;

	to = put_part(to, era * 400 + year + next_year, 4, '-');
	to = put_part(to, next_year ? month - 9 : month + 3, 2, '-');
	return put_part(to, day + 1, 2, 'T');
}

void clock_rfc3339(int64_t realtime_ns, char out[31])
{
	int64_t fraction, second;
	int64_t days = divide(divide(realtime_ns, NS_PER_SECOND, &fraction), SECONDS_PER_DAY, &second);

	out = put_date(out, days);
	out = put_part(out, (uint32_t)second / 3600, 2, ':');
	out = put_part(out, (uint32_t)second / 60 % 60, 2, ':');
	out = put_part(out, (uint32_t)second % 60, 2, '.');
	out = put_part(out, (uint32_t)fraction, 9, 'Z');
	*out = '\0';
}

int64_t clock_parse(const char *text)
{
	struct tm utc = {.tm_isdst = 0};
	const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &utc) : NULL;
	if (!rest)
		return 0;
	int64_t ns = 0, unit = 100000000;
	if (*rest == '.')
		for (rest++; *rest >= '0' && *rest <= '9'; rest++, unit /= 10)
			ns += (*rest - '0') * unit;
	int64_t time;
	if (__builtin_mul_overflow((int64_t)timegm(&utc), (int64_t)1000000000, &time) ||
	    __builtin_add_overflow(time, ns, &time))
		return 0;
	return time;
}
