#include "base/err.h"

#include <stdio.h>
#include <string.h>

bool err_is_set(const struct err *err)
{
	return err && (err->text[0] != '\0' || err->number != 0);
}

bool err_set(struct err *err, int number, const char *format, ...)
{
	if (!err || err_is_set(err))
		return false;

	/* The reason is reserved first: a long path must not push out why it failed. strerror() is thread-safe here
	   (glibc 2.32, musl). */
	char reason[96] = "";
	if (number != 0)
		snprintf(reason, sizeof(reason), ": %s", strerror(number));

	va_list args;
	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text) - strlen(reason), format, args);
	va_end(args);
	memcpy(err->text + strlen(err->text), reason, strlen(reason) + 1);
	err->number = number;
	return false;
}

bool err_context(struct err *err, const char *format, ...)
{
	if (!err_is_set(err))
		return false;

	char context[sizeof(err->text)];
	va_list args;
	va_start(args, format);
	vsnprintf(context, sizeof(context), format, args);
	va_end(args);

	/* When both do not fit, the cause is worth more than the context. */
	static const char separator[] = ": ";
	size_t text = strlen(err->text) + 1;
	size_t room = sizeof(err->text) - text;
	if (room <= sizeof(separator) - 1)
		return false;
	size_t prefix = strnlen(context, room - (sizeof(separator) - 1));
	memmove(err->text + prefix + sizeof(separator) - 1, err->text, text);
	memcpy(err->text, context, prefix);
	memcpy(err->text + prefix, separator, sizeof(separator) - 1);
	return false;
}

bool err_hint(struct err *err, const char *format, ...)
{
	if (!err || err->hint[0] != '\0')
		return false;
	va_list args;
	va_start(args, format);
	vsnprintf(err->hint, sizeof(err->hint), format, args);
	va_end(args);
	return false;
}

bool err_exit_status(struct err *err, int exit_status)
{
	if (err)
		err->exit_status = exit_status;
	return false;
}

void err_clear(struct err *err)
{
	if (err)
		*err = (struct err){0};
}
