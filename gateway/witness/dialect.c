#include "witness/dialect.h"

#include "base/json.h"

static const struct {
	const char *name;
	enum provider provider;
	struct bytes suffix;
} dialects[DIALECT_COUNT] = {
#define DIALECT(identifier, name, provider, suffix, ...) \
	[DIALECT_##identifier] = {name, PROVIDER_##provider, {suffix, sizeof(suffix) - 1}},
#include "dialects.def"
#undef DIALECT
};

const char *dialect_name(enum dialect dialect)
{
	return dialects[dialect].name;
}

enum provider dialect_provider(enum dialect dialect)
{
	return dialects[dialect].provider;
}

static bool ends_with(struct bytes whole, struct bytes end)
{
	return whole.size >= end.size && memcmp(whole.data + whole.size - end.size, end.data, end.size) == 0;
}

enum dialect dialect_of(struct bytes method, struct bytes path)
{
	if (!bytes_equal(method, BYTES("POST")))
		return DIALECT_unwitnessed;
	for (unsigned i = 0; i < DIALECT_unwitnessed; i++)
		if (ends_with(path, dialects[i].suffix))
			return (enum dialect)i;
	return DIALECT_unwitnessed;
}

struct bytes dialect_path_model(enum dialect dialect, struct bytes path)
{
	if (dialect_provider(dialect) != PROVIDER_gemini)
		return BYTES_NONE;
	size_t end = path.size - dialects[dialect].suffix.size, start = end;
	while (start > 0 && path.data[start - 1] != '/')
		start--;
	return (struct bytes){path.data + start, end - start};
}

static void error_of_openai(struct json *json, const char *message)
{
	json_begin_object(json, "error");
	json_text(json, "code", "upstream_unreachable");
	json_text(json, "message", message);
	json_text(json, "type", "server_error");
	json_end_object(json);
}

static void error_of_gemini(struct json *json, unsigned status, const char *message)
{
	json_begin_object(json, "error");
	json_uint(json, "code", status);
	json_text(json, "message", message);
	json_text(json, "status", "UNAVAILABLE");
	json_end_object(json);
}

static void error_of_anthropic(struct json *json, const char *message)
{
	json_begin_object(json, "error");
	json_text(json, "message", message);
	json_text(json, "type", "api_error");
	json_end_object(json);
	json_text(json, "type", "error");
}

void dialect_error(enum provider provider, unsigned status, const char *message, struct buf *out)
{
	struct json json;

	json_start(&json, out);
	json_begin_object(&json, NULL);
	if (provider == PROVIDER_openai)
		error_of_openai(&json, message);
	else if (provider == PROVIDER_gemini)
		error_of_gemini(&json, status, message);
	else
		error_of_anthropic(&json, message);
	json_end_object(&json);
}
