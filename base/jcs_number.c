/*
 * Numbers as ECMAScript prints them: the shortest digits that mean this double, and of those the closest (ECMA-262,
 * Number::toString). glibc prints and reads decimals exactly, so candidates can be tried.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/jcs.h"

enum { DIGITS_MOST = 17 };

/* 0.DIGITS times ten to the power `exponent`. */
struct decimal {
	char digits[DIGITS_MOST + 1];
	int count, exponent;
};

/* The closest decimal of that many digits. */
static void round_to(double value, int count, struct decimal *out)
{
	char text[48];

	(void)snprintf(text, sizeof(text), "%.*e", count - 1, value);
	out->digits[0] = text[0];
	for (int i = 1; i < count; i++)
		out->digits[i] = text[i + 1]; /* behind the point */
	out->count = count;
	out->exponent = (int)strtol(text + (count > 1 ? count + 2 : 2), NULL, 10) + 1;
}

static bool means(const struct decimal *decimal, double value)
{
	char text[48];

	(void)snprintf(text, sizeof(text), "0.%.*se%d", decimal->count, decimal->digits, decimal->exponent);
	return strtod(text, NULL) == value;
}

/* The next one up (+1) or down (-1), of as many digits; false where that would change their number. */
static bool step(struct decimal *decimal, int direction)
{
	for (int i = decimal->count - 1; i >= 0; i--) {
		char digit = (char)(decimal->digits[i] + direction);
		if (digit >= '0' && digit <= '9') {
			decimal->digits[i] = digit;
			return decimal->digits[0] != '0';
		}
		decimal->digits[i] = direction > 0 ? '0' : '9';
	}
	return false;
}

/*
 * Is there one of that many digits? The closest is tried first. Next to a power of two the doubles above are farther apart
 * than those below, so a neighbour may mean the double when the closest does not.
 */
static bool try_count(double value, int count, struct decimal *out)
{
	struct decimal up, down;

	round_to(value, count, out);
	if (means(out, value))
		return true;
	up = down = *out;
	if (step(&up, 1) && means(&up, value)) {
		*out = up;
		return true;
	}
	if (step(&down, -1) && means(&down, value)) {
		*out = down;
		return true;
	}
	return false;
}

static void shortest(double value, struct decimal *out)
{
	/* Of a normal double every decimal of up to 15 digits survives: one with zeros at its end is a shorter one. */
	int count = value >= DBL_MIN ? DBL_DIG : 1;

	while (count < DIGITS_MOST && !try_count(value, count, out))
		count++;
	if (count == DIGITS_MOST)
		round_to(value, count, out);
	while (out->count > 1 && out->digits[out->count - 1] == '0')
		out->count--;
}

static char *put(char *to, const char *digits, int count)
{
	memcpy(to, digits, (size_t)count);
	return to + count;
}

static char *put_zeros(char *to, int count)
{
	memset(to, '0', (size_t)count);
	return to + count;
}

bool jcs_number(double value, char out[JCS_NUMBER_SIZE])
{
	enum { PLAIN_MOST = 21, PLAIN_LEAST = -6 };
	struct decimal decimal;
	char *to = out;

	if (!isfinite(value))
		return false;
	if (value == 0) {
		memcpy(out, "0", 2);
		return true;
	}
	if (value < 0)
		*to++ = '-';
	shortest(fabs(value), &decimal);
	int point = decimal.exponent, count = decimal.count;
	if (count <= point && point <= PLAIN_MOST) {
		to = put_zeros(put(to, decimal.digits, count), point - count);
	} else if (point > 0 && point <= PLAIN_MOST) {
		to = put(to, decimal.digits, point);
		*to++ = '.';
		to = put(to, decimal.digits + point, count - point);
	} else if (point > PLAIN_LEAST && point <= 0) {
		to = put_zeros(put(to, "0.", 2), -point);
		to = put(to, decimal.digits, count);
	} else {
		*to++ = decimal.digits[0];
		if (count > 1) {
			*to++ = '.';
			to = put(to, decimal.digits + 1, count - 1);
		}
		to += snprintf(to, 8, "e%+d", point - 1);
	}
	*to = '\0';
	return true;
}
