/*
 * Witness envelopes against the published answers, and the records of exchanges.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/jcs.h"
#include "base/text.h"
#include "witness/receipt.h"

#define PUBLISHED                                                                                                      \
	"{\"kind\":\"cloud_request_witnessed\",\"request_digest\":\"sha256:001122\",\"schema\":\"" RECEIPT_SCHEMA "\"" \
	"}"
#define PUBLISHED_KEY "IyobU7IDlPFFiJfmWZt800liOhrFlj0T7ouF1JujPiQ="
#define PUBLISHED_SIGNATURE "5N935umxJWlRxcoTg7dq1PRPKmAiOwonIhjGjqYdxojTadeEZIR/3lnNHknDvYNZK5tF8O122IfA6LDk9VHyBA=="
#define PUBLISHED_KID "wit_7db89400a2058592"
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define NONCE "000102030405060708090a0b0c0d0e0f"

static void from_base64(const char *text, uint8_t *to, size_t size)
{
	CLEANUP_BUF struct buf out = {.limit = 128};

	assert_true(text_base64_parse(&out, bytes_of(text)));
	assert_int_equal(out.size, size);
	memcpy(to, out.data, size);
}

static void test_published(void **state)
{
	CLEANUP_BUF struct buf out = {.limit = 4096};
	struct ed25519_key key;
	struct ed25519_signature signature;
	char kid[RECEIPT_KID_SIZE];

	(void)state;
	from_base64(PUBLISHED_KEY, key.bytes, sizeof(key.bytes));
	from_base64(PUBLISHED_SIGNATURE, signature.bytes, sizeof(signature.bytes));
	assert_true(receipt_kid(&key, kid));
	assert_string_equal(kid, PUBLISHED_KID);
	assert_true(ed25519_verify(&key, BYTES(PUBLISHED), &signature));
	assert_true(receipt_envelope(BYTES(PUBLISHED), &key, &signature, &out));
	assert_string_equal(out.data,
			    "{\"record\":" PUBLISHED ",\"witness\":{\"alg\":\"ed25519\",\"kid\":\"" PUBLISHED_KID
			    "\",\"public_key_b64\":\"" PUBLISHED_KEY "\",\"sig_b64\":\"" PUBLISHED_SIGNATURE "\"}}");
}

/* A throw-away key of a seed of 32 times 0x42. */
static void test_kid(void **state)
{
	uint8_t seed[ED25519_SEED_SIZE];
	char kid[RECEIPT_KID_SIZE];

	(void)state;
	memset(seed, 0x42, sizeof(seed));
	struct ed25519_secret *secret = ed25519_from_seed(seed, NULL);
	assert_non_null(secret);
	assert_true(receipt_kid(ed25519_public(secret), kid));
	assert_string_equal(kid, "wit_9a82517f9af19416");
	ed25519_free(secret);
}

static struct reading_text text_of(const char *text)
{
	struct reading_text made = {.present = true, .size = (uint16_t)strlen(text)};

	memcpy(made.data, text, made.size);
	return made;
}

static struct receipt_stamp stamp(int64_t seconds)
{
	struct receipt_stamp made = {.receipt_id = "wit-1", .created_ns = seconds * 1000000000};

	for (size_t i = 0; i < sizeof(made.nonce); i++)
		made.nonce[i] = (uint8_t)i;
	return made;
}

static void check(const struct buf *out, const char *expected)
{
	CLEANUP_BUF struct buf again = {.limit = 1 << 16};

	assert_string_equal(out->data, expected);
	assert_true(jcs_write(buf_bytes(out), &again, NULL));
	assert_true(bytes_equal(buf_bytes(out), buf_bytes(&again)));
}

static void test_records(void **state)
{
	CLEANUP_BUF struct buf out = {.limit = 1 << 16};
	struct reading_text tools[] = {text_of("Bash"), text_of("gr\xc3\xbc\xc3\x9f\"e")};
	struct reading_facts asked = {.stream = true, .tool_count = 2, .tools = tools};
	struct reading_facts answer = {
	    .stop = text_of("tool_use"), .usage_count = 2, .usage = {{"output_tokens", 7}, {"input_tokens", 3}}};
	struct exchange exchange = {.dialect = DIALECT_anthropic_messages,
				    .path = BYTES("/anthropic/v1/messages"),
				    .model_asked = BYTES("m"),
				    .status = 200,
				    .request = {.facts = &asked},
				    .response = {.facts = &answer},
				    .ended_ns = (int64_t)1709251199 * 1000000000 + 999999999};
	struct receipt_stamp when = stamp(1781222400);

	(void)state;
	assert_true(receipt_request(&exchange, &when, &out));
	check(&out,
	      "{\"created_at\":\"2026-06-12T00:00:00Z\",\"kind\":\"cloud_request_witnessed\",\"model\":\"m\",\"nonce\":"
	      "\"" NONCE "\",\"path\":\"/v1/"
	      "messages\",\"provider\":\"anthropic\",\"receipt_id\":\"wit-1\",\"request_digest\":\"sha256:" ZEROS
	      "\",\"schema\":\"" RECEIPT_SCHEMA "\",\"session_hint\":null,\"stream\":true,\"test_upstream\":false,"
	      "\"tool_names\":[\"Bash\",\"gr\xc3\xbc\xc3\x9f\\\"e\"]}");
	buf_reset(&out);
	assert_true(receipt_response(&exchange, &when, "wit-0", &out));
	check(&out,
	      "{\"created_at\":\"2026-06-12T00:00:00Z\",\"end_state\":\"completed\",\"ended_at\":\"2024-02-29T23:59:"
	      "59Z\","
	      "\"finish_reason\":null,\"first_byte_at\":null,\"kind\":\"cloud_response_witnessed\",\"nonce\":\"" NONCE
	      "\",\"output_digest\":\"sha256:" ZEROS "\",\"path\":\"/v1/messages\",\"provider\":\"anthropic\","
	      "\"receipt_id\":\"wit-1\",\"request_receipt_id\":\"wit-0\",\"schema\":\"" RECEIPT_SCHEMA
	      "\",\"stop_reason\":\"tool_use\",\"test_upstream\":false,\"upstream_status\":200,\"usage\":{"
	      "\"input_tokens\":3,\"output_tokens\":7}}");
	buf_reset(&out);
	exchange.dialect = DIALECT_openai_chat;
	exchange.state = EXCHANGE_upstream_failed;
	exchange.response.facts = NULL;
	assert_true(receipt_response(&exchange, &when, "wit-0", &out));
	assert_non_null(strstr(out.data, "\"end_state\":\"upstream_error\""));
	assert_non_null(strstr(out.data, "\"path\":\"/v1/chat/completions\",\"provider\":\"openai\""));
	buf_reset(&out);
	exchange.dialect = DIALECT_unwitnessed;
	assert_true(receipt_unwitnessed(&exchange, &when, &out));
	check(&out, "{\"created_at\":\"2026-06-12T00:00:00Z\",\"kind\":\"passthrough_unwitnessed\",\"path\":"
		    "\"/anthropic/v1/messages\",\"schema\":\"" RECEIPT_SCHEMA "\",\"test_upstream\":false}");
}

static void test_unknown(void **state)
{
	CLEANUP_BUF struct buf out = {.limit = 1 << 16};
	struct exchange exchange = {.dialect = DIALECT_gemini};
	struct receipt_stamp when = stamp(0);

	(void)state;
	assert_false(receipt_request(&exchange, &when, &out));
	assert_false(receipt_response(&exchange, &when, "x", &out));
	assert_int_equal(out.size, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_published),
	    cmocka_unit_test(test_kid),
	    cmocka_unit_test(test_records),
	    cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
