#include "witness/receipt.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/json.h"
#include "base/text.h"

enum { MODEL_LIMIT = 256, TOOL_LIMIT = 128 };

/* The paths that the form knows, whatever stands before them here. */
static const char *path_of(enum dialect dialect)
{
	static const char *const paths[DIALECT_COUNT] = {
	    [DIALECT_anthropic_messages] = "/v1/messages",
	    [DIALECT_openai_responses] = "/v1/responses",
	    [DIALECT_openai_chat] = "/v1/chat/completions",
	};

	return paths[dialect];
}

bool receipt_knows(const struct exchange *exchange)
{
	return path_of(exchange->dialect) != NULL;
}

static void put_text(struct json *json, const char *key, struct bytes text)
{
	if (text.data)
		json_at_text(json, bytes_of(key), text);
	else
		json_at_null(json, bytes_of(key));
}

/* Seconds: "2026-06-12T00:00:00Z". */
static void put_time(struct json *json, const char *key, int64_t realtime_ns)
{
	char text[31];

	clock_rfc3339(realtime_ns, text);
	text[19] = 'Z';
	text[20] = '\0';
	json_text(json, key, text);
}

static void put_digest(struct json *json, const char *key, const uint8_t sha256[CALL_DIGEST_SIZE])
{
	struct digest digest;
	char text[DIGEST_TEXT_SIZE];

	memcpy(digest.bytes, sha256, sizeof(digest.bytes));
	digest_text(&digest, text);
	json_text(json, key, text);
}

static void put_nonce(struct json *json, const struct receipt_stamp *stamp)
{
	CLEANUP_BUF struct buf text = {.limit = 64};

	text_hex(&text, (struct bytes){(const char *)stamp->nonce, sizeof(stamp->nonce)});
	json_at_text(json, BYTES("nonce"), buf_bytes(&text));
}

static const char *provider_of(const struct exchange *exchange)
{
	return dialect_provider(exchange->dialect) == PROVIDER_anthropic ? "anthropic" : "openai";
}

static void put_tools(struct json *json, const struct reading_facts *facts)
{
	json_begin_array(json, "tool_names");
	for (unsigned i = 0; facts && i < facts->tool_count && i < TOOL_LIMIT; i++)
		if (facts->tools[i].size > 0 && !facts->tools[i].cut)
			json_at_text(json, BYTES_NONE, reading_text_bytes(&facts->tools[i]));
	json_end_array(json);
}

bool receipt_request(const struct exchange *exchange, const struct receipt_stamp *stamp, struct buf *out)
{
	const struct reading_facts *facts = exchange->request.facts;
	struct json json;

	if (!receipt_knows(exchange))
		return false;
	json_start(&json, out);
	json_begin_object(&json, NULL);
	put_time(&json, "created_at", stamp->created_ns);
	json_text(&json, "kind", "cloud_request_witnessed");
	put_text(&json, "model", exchange->model_asked.data ? exchange->model_asked : BYTES(""));
	put_nonce(&json, stamp);
	json_text(&json, "path", path_of(exchange->dialect));
	json_text(&json, "provider", provider_of(exchange));
	json_text(&json, "receipt_id", stamp->receipt_id);
	put_digest(&json, "request_digest", exchange->request.sha256);
	json_text(&json, "schema", RECEIPT_SCHEMA);
	json_at_null(&json, BYTES("session_hint")); /* a header's word; which run it is says the connection */
	json_bool(&json, "stream", facts && facts->stream);
	json_bool(&json, "test_upstream", exchange->test_upstream);
	put_tools(&json, facts);
	json_end_object(&json);
	return !out->failed;
}

static const char *end_state_of(enum exchange_state state)
{
	if (state == EXCHANGE_upstream_failed)
		return "upstream_error";
	return state == EXCHANGE_aborted ? "aborted" : "completed";
}

static int by_name(const void *left, const void *right)
{
	const struct reading_usage *one = left, *other = right;

	return strcmp(one->name, other->name);
}

static void put_usage(struct json *json, const struct reading_facts *facts)
{
	struct reading_usage usage[READING_USAGE_LIMIT];
	unsigned count = facts ? facts->usage_count : 0;

	if (count > 0) {
		memcpy(usage, facts->usage, count * sizeof(usage[0]));
		qsort(usage, count, sizeof(usage[0]), by_name);
	}
	json_begin_object(json, "usage");
	for (unsigned i = 0; i < count; i++)
		json_uint(json, usage[i].name, usage[i].value);
	json_end_object(json);
}

bool receipt_response(const struct exchange *exchange, const struct receipt_stamp *stamp,
		      const char *request_receipt_id, struct buf *out)
{
	const struct reading_facts *facts = exchange->response.facts;
	bool anthropic = dialect_provider(exchange->dialect) == PROVIDER_anthropic;
	struct bytes stop = facts && facts->stop.present ? reading_text_bytes(&facts->stop) : BYTES_NONE;
	struct json json;

	if (!receipt_knows(exchange))
		return false;
	json_start(&json, out);
	json_begin_object(&json, NULL);
	put_time(&json, "created_at", stamp->created_ns);
	json_text(&json, "end_state", end_state_of(exchange->state));
	put_time(&json, "ended_at", exchange->ended_ns);
	put_text(&json, "finish_reason", anthropic ? BYTES_NONE : stop);
	if (exchange->first_byte_ns)
		put_time(&json, "first_byte_at", exchange->first_byte_ns);
	else
		json_at_null(&json, BYTES("first_byte_at"));
	json_text(&json, "kind", "cloud_response_witnessed");
	put_nonce(&json, stamp);
	put_digest(&json, "output_digest", exchange->response.sha256);
	json_text(&json, "path", path_of(exchange->dialect));
	json_text(&json, "provider", provider_of(exchange));
	json_text(&json, "receipt_id", stamp->receipt_id);
	json_text(&json, "request_receipt_id", request_receipt_id);
	json_text(&json, "schema", RECEIPT_SCHEMA);
	put_text(&json, "stop_reason", anthropic ? stop : BYTES_NONE);
	json_bool(&json, "test_upstream", exchange->test_upstream);
	json_uint(&json, "upstream_status", exchange->status);
	put_usage(&json, facts);
	json_end_object(&json);
	return !out->failed;
}

bool receipt_unwitnessed(const struct exchange *exchange, const struct receipt_stamp *stamp, struct buf *out)
{
	enum { PATH_LIMIT = 128 };
	struct bytes path = exchange->path;
	struct json json;

	if (path.size > PATH_LIMIT)
		path.size = PATH_LIMIT;
	json_start(&json, out);
	json_begin_object(&json, NULL);
	put_time(&json, "created_at", stamp->created_ns);
	json_text(&json, "kind", "passthrough_unwitnessed");
	json_at_text(&json, BYTES("path"), path);
	json_text(&json, "schema", RECEIPT_SCHEMA);
	json_bool(&json, "test_upstream", exchange->test_upstream);
	json_end_object(&json);
	return !out->failed;
}

bool receipt_kid(const struct ed25519_key *key, char out[RECEIPT_KID_SIZE])
{
	char fingerprint[ED25519_FINGERPRINT_SIZE];

	if (!ed25519_fingerprint(key, fingerprint))
		return false;
	memcpy(out, "wit_", 4);
	memcpy(out + 4, fingerprint, RECEIPT_KID_SIZE - 5);
	out[RECEIPT_KID_SIZE - 1] = '\0';
	return true;
}

static void put_base64(struct json *json, const char *key, const uint8_t *data, size_t size)
{
	CLEANUP_BUF struct buf text = {.limit = 128};

	text_base64(&text, (struct bytes){(const char *)data, size});
	json_at_text(json, bytes_of(key), buf_bytes(&text));
}

bool receipt_envelope(struct bytes record, const struct ed25519_key *key, const struct ed25519_signature *signature,
		      struct buf *out)
{
	char kid[RECEIPT_KID_SIZE];
	struct json json;

	if (!receipt_kid(key, kid))
		return false;
	/* The record stands as it was signed. */
	buf_append_text(out, "{\"record\":");
	buf_append_bytes(out, record);
	buf_append_text(out, ",\"witness\":");
	json_start(&json, out);
	json_begin_object(&json, NULL);
	json_text(&json, "alg", "ed25519");
	json_text(&json, "kid", kid);
	put_base64(&json, "public_key_b64", key->bytes, sizeof(key->bytes));
	put_base64(&json, "sig_b64", signature->bytes, sizeof(signature->bytes));
	json_end_object(&json);
	buf_append_char(out, '}');
	return !out->failed;
}
