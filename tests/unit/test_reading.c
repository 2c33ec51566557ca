/*
 * What is read of exchanges with models: of each dialect, whole, cut at every place, and byte by byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/digest.h"
#include "witness/reading.h"
#include "witness/scan.h"

enum { WHOLE = SIZE_MAX };

static void show(struct buf *out, const char *name, struct bytes bytes)
{
	buf_append_format(out, " %s=", name);
	buf_append_bytes(out, bytes);
}

static void told(void *context, struct call_sighting *sighting, unsigned ordinal)
{
	struct buf *out = context;
	const struct call_bytes *bytes = sighting->event == CALL_begin ? &sighting->arguments : &sighting->output;
	struct digest digest;

	assert_int_equal(sighting->lane, CALL_LANE_wire);
	assert_true(bytes->present);
	assert_int_equal(bytes->kept.size, bytes->size);
	assert_true(digest_of(bytes->kept, &digest));
	assert_memory_equal(digest.bytes, bytes->sha256, sizeof(digest.bytes));
	buf_append_format(out, "%u %s", ordinal, sighting->event == CALL_begin ? "begin" : "end");
	if (sighting->id.data)
		show(out, "id", sighting->id);
	if (sighting->tool.data)
		show(out, "tool", sighting->tool);
	show(out, "bytes", bytes->kept);
	if (sighting->failed)
		buf_append_text(out, " failed");
	if (sighting->has_exit)
		buf_append_format(out, " exit=%d", sighting->exit_code);
	buf_append_text(out, "\n");
}

static void facts(const struct reading_facts *facts, struct buf *out)
{
	if (facts->model.present)
		show(out, "model", reading_text_bytes(&facts->model));
	if (facts->response_id.present)
		show(out, "response", reading_text_bytes(&facts->response_id));
	if (facts->stop.present)
		show(out, "stop", reading_text_bytes(&facts->stop));
	for (unsigned i = 0; i < facts->tool_count; i++)
		show(out, "knows", reading_text_bytes(&facts->tools[i]));
	for (unsigned i = 0; i < facts->usage_count; i++)
		buf_append_format(out, " %s=%u", facts->usage[i].name, (unsigned)facts->usage[i].value);
	buf_append_format(out, "%s%s%s%s%s\n", facts->stream ? " stream" : "", facts->complete ? " complete" : "",
			  facts->failed ? " failed" : "", facts->malformed ? " malformed" : "",
			  facts->lost ? " lost" : "");
}

/* Read in pieces of `step` bytes, the first of `first`. */
static char *reads(enum dialect dialect, enum reading_side side, struct bytes body, size_t first, size_t step)
{
	struct reading_budget budget = {0, 1 << 20};
	struct buf out = {.limit = 1 << 20};
	struct reading *reading = reading_new(dialect, side, &budget, told, &out);

	assert_non_null(reading);
	for (size_t size = first; body.size > 0; size = step) {
		if (size > body.size)
			size = body.size;
		/* A copy of its own: a byte read beyond it is found. */
		char *piece = malloc(size ? size : 1);
		memcpy(piece, body.data, size);
		reading_feed(reading, (struct bytes){piece, size});
		free(piece);
		body.data += size;
		body.size -= size;
	}
	reading_finish(reading, true);
	facts(reading_facts(reading), &out);
	reading_free(reading);
	assert_int_equal(budget.used, 0);
	assert_false(out.failed);
	return out.data;
}

static void check(enum dialect dialect, enum reading_side side, struct bytes body, const char *expected)
{
	char *whole = reads(dialect, side, body, WHOLE, WHOLE);
	assert_string_equal(whole, expected);
	for (size_t cut = 0; cut <= body.size; cut++) {
		char *pieces = reads(dialect, side, body, cut, WHOLE);
		assert_string_equal(pieces, expected);
		free(pieces);
	}
	char *bytes = reads(dialect, side, body, 1, 1);
	assert_string_equal(bytes, expected);
	free(bytes);
	free(whole);
}

struct row {
	enum dialect dialect;
	enum reading_side side;
	const char *body, *expected;
};
#define REQUEST(dialect, body, expected)                           \
	{                                                          \
		DIALECT_##dialect, READING_REQUEST, body, expected \
	}
#define RESPONSE(dialect, body, expected)                           \
	{                                                           \
		DIALECT_##dialect, READING_RESPONSE, body, expected \
	}
#define EVENT(data) "data: " data "\n\n"

static void check_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check(rows[i].dialect, rows[i].side, bytes_of(rows[i].body), rows[i].expected);
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof((rows)[0]))

/* A formatter would tear the messages apart. */
/* clang-format off */
static void test_anthropic(void **state)
{
	static const struct row rows[] = {
	    RESPONSE(
		anthropic_messages,
		"event: message_start\r\n" EVENT("{\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":"
						 "\"m\","
						 "\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":3,"
						 "\"output_tokens\":1}}}") ": a comment\n\n" EVENT("{\"type\":"
												   "\"ping\"}")
		    EVENT("{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":"
			  "\"\"}}") EVENT("{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_"
					  "delta\",\"text\":\"partial_json\"}}")
			EVENT("{\"type\":\"content_block_stop\",\"index\":0}") EVENT(
			    "{\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\","
			    "\"id\":\"toolu_1\","
			    "\"name\":\"Bash\",\"input\":{}}}")
			    EVENT("{\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"tool_"
				  "use\",\"id\":\"toolu_2\","
				  "\"name\":\"List\",\"input\":{ }}}")
				EVENT("{\"type\":\"content_block_start\",\"index\":3,\"content_block\":{\"type\":"
				      "\"server_tool_use\",\"id\":\"s\","
				      "\"name\":\"web_search\",\"input\":{}}}")
				    EVENT("{\"type\":\"content_block_delta\",\"index\":3,\"delta\":{\"partial_json\":"
					  "\"{}\"}}") EVENT("{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{"
							    "\"type\":\"input_json_delta\",\"partial_json\":\"\"}}")
					EVENT("{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":"
					      "\"input_json_delta\",\"partial_json\":\"{\\\"a\\\"\"}}")
					    EVENT("{\"delta\":{\"partial_json\":\":\\\"\\ud83d\\ude00\\u00e9\"},"
						  "\"index\":1,\"type\":\"content_block_delta\"}")
						EVENT("{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{"
						      "\"partial_json\":\"\\\\n\\\"}\"}}")
						    EVENT("{\"type\":\"content_block_stop\",\"index\":1}") EVENT(
							"{\"type\":\"content_block_stop\",\"index\":2}")
							EVENT("{\"type\":\"content_block_stop\",\"index\":3}") EVENT(
							    "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
							    "\"tool_use\"},\"usage\":{\"output_tokens\":9}}")
							    EVENT("{\"type\":\"message_stop\"}"),
		"0 begin id=toolu_1 tool=Bash bytes={\"a\":\"\xf0\x9f\x98\x80\xc3\xa9\\n\"}\n"
		"1 begin id=toolu_2 tool=List bytes={ }\n"
		" model=m response=msg_1 stop=tool_use input_tokens=3 output_tokens=9 complete\n"),
	    RESPONSE(
		anthropic_messages,
		"{\"type\":\"message\",\"id\":\"msg_2\",\"model\":\"m\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}"
		","
		"{\"input\": {\"p\" : [1, -2.5e3,\"]}\"]} ,\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"Write\"}],"
		"\"stop_reason\":\"tool_use\",\"usage\":{\"input_tokens\":1,\"service_tier\":\"x\"}}",
		"0 begin id=t tool=Write bytes={\"p\" : [1, -2.5e3,\"]}\"]}\n"
		" model=m response=msg_2 stop=tool_use input_tokens=1 complete\n"),
	    RESPONSE(anthropic_messages, EVENT("{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}"),
		     " failed\n"),
	    RESPONSE(anthropic_messages, EVENT("{\"type\":\"message_start\",\"message\":{\"id\":\"i\"}}"),
		     " response=i malformed\n"),
	    RESPONSE(anthropic_messages, EVENT("{\"type\":\"message_stop\"") EVENT("{\"type\":\"message_stop\"}"),
		     " complete malformed\n"),
	    REQUEST(anthropic_messages,
		    "{\"model\":\"m\",\"stream\":true,\"tools\":[{\"name\":\"Bash\",\"input_schema\":{\"properties\":"
		    "{\"name\":{\"type\":\"x\"}}}},{\"name\":\"Edit\"}],\"messages\":[{\"role\":\"user\",\"content\":"
		    "\"hi\"},"
		    "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":"
		    "\"a\\nb\"},"
		    "{\"tool_use_id\":\"t2\",\"is_error\":true,\"type\":\"tool_result\",\"content\":[{\"type\":"
		    "\"text\",\"text\":\"Exit "
		    "code 3\\n\"},{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"no\"}]},"
		    "{\"type\":\"text\",\"text\":\"y\"},{\"type\":\"tool_result\",\"tool_use_id\":\"t3\"}]}]}",
		    "0 end id=t1 bytes=a\nb\n1 end id=t2 bytes=Exit code 3\nno failed exit=3\n2 end id=t3 bytes=\n"
		    " model=m knows=Bash knows=Edit stream complete\n"),
	};

	(void)state;
	CHECK_ROWS(rows);
}

static void test_responses(void **state)
{
#define CALL "\"type\":\"function_call\",\"id\":\"fc\",\"call_id\":\"call_1\",\"name\":\"shell\""
	static const struct row rows[] = {
	    RESPONSE(
		openai_responses,
		EVENT(
		    "{\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"model\":\"g\",\"status\":\"in_"
		    "progress\"}}") EVENT("{\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{" CALL
					  ",\"arguments\":\"\"}}")
		    EVENT("{\"type\":\"response.function_call_arguments.delta\",\"output_index\":0,\"delta\":\"{}\"}")
			EVENT("{\"type\":\"response.function_call_arguments.done\",\"output_index\":0,\"arguments\":\"{"
			      "}\"}") EVENT("{\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{" CALL
					    ",\"arguments\":\"{}\"}}")
			    EVENT("{\"type\":\"response.output_item.done\",\"output_index\":1,\"item\":{\"type\":"
				  "\"custom_tool_call\","
				  "\"call_id\":\"call_2\",\"name\":\"apply_patch\",\"input\":\"***\\n\"}}")
				EVENT("{\"type\":\"response.output_item.done\",\"output_index\":2,\"item\":{\"type\":"
				      "\"web_search_call\",\"id\":\"w\"}}")
				    EVENT("{\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\",\"status\":"
					  "\"completed\",\"error\":null,\"output\":[{" CALL
					  ",\"arguments\":\"{}\"},{" CALL
					  ",\"arguments\":\"{ }\"}],\"usage\":{\"input_tokens\":2,"
					  "\"input_tokens_details\":{\"cached_tokens\":1},\"total_tokens\":7}}}"),
		"0 begin id=call_1 tool=shell bytes={}\n1 begin id=call_2 tool=apply_patch bytes=***\n\n"
		"2 begin id=call_1 tool=shell bytes={ }\n"
		" model=g response=resp_1 stop=completed input_tokens=2 total_tokens=7 complete\n"),
	    RESPONSE(
		openai_responses,
		"{\"id\":\"r\",\"status\":\"completed\",\"error\":null,\"output\":[{\"type\":\"local_shell_call\","
		"\"call_id\":\"c\","
		"\"action\":{\"command\":[\"ls\"]}}]}",
		"0 begin id=c tool=local_shell bytes={\"command\":[\"ls\"]}\n response=r stop=completed complete\n"),
	    RESPONSE(openai_responses,
		     EVENT("{\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"x\"}}}"), " failed\n"),
	    REQUEST(
		openai_responses,
		"{\"model\":\"g\",\"input\":[{\"type\":\"message\",\"content\":[{\"text\":\"q\"}]},{\"type\":"
		"\"function_call_output\","
		"\"call_id\":\"call_1\",\"output\":\"Exit code: 1\\nWall time: 0 seconds\\nOutput:\\nExit code: 0\"},"
		"{\"type\":\"custom_tool_call_output\",\"call_id\":\"call_2\",\"output\":[{\"type\":\"input_text\","
		"\"text\":\"ok\"}]}]}",
		"0 end id=call_1 bytes=Exit code: 1\nWall time: 0 seconds\nOutput:\nExit code: 0 failed exit=1\n"
		"1 end id=call_2 bytes=ok\n model=g complete\n"),
	    REQUEST(openai_responses, "{\"model\":\"g\",\"input\":\"text\"}", " model=g complete\n"),
	};

	(void)state;
	CHECK_ROWS(rows);
}

static void test_chat(void **state)
{
	static const struct row rows[] = {
	    RESPONSE(
		openai_chat,
		EVENT("{\"id\":\"c\",\"model\":\"g\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"},"
		      "\"finish_reason\":null}]}")
		    EVENT(
			"{\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\","
			"\"function\":{\"name\":\"f\","
			"\"arguments\":\"\"}},{\"index\":1,\"id\":\"b\",\"type\":\"custom\",\"custom\":{\"name\":\"g\","
			"\"input\":\"x\"}}]}}]}")
			EVENT("{\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":"
			      "[{\"index\":0,\"function\":{\"arguments\":\"{\\\"k\"}}]}}]}")
			    EVENT("{\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"function\":{"
				  "\"arguments\":\"\\\":1}\"},\"index\":0}]}}]}")
				EVENT("{\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_"
				      "calls\"}]}") EVENT(
				    "{\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":5}}") EVENT("[DONE]"),
		"0 begin id=a tool=f bytes={\"k\":1}\n1 begin id=b tool=g bytes=x\n"
		" model=g response=c stop=tool_calls prompt_tokens=5 complete\n"),
	    RESPONSE(openai_chat,
		     "{\"id\":\"c\",\"choices\":[{\"index\":0,\"finish_reason\":\"tool_calls\",\"message\":{"
		     "\"content\":null,\"tool_calls\":"
		     "[{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}}]}",
		     "0 begin id=a tool=f bytes={}\n response=c stop=tool_calls complete\n"),
	    REQUEST(openai_chat,
		    "{\"model\":\"g\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"},{\"role\":\"tool\",\"tool_"
		    "call_id\":\"a\","
		    "\"content\":\"out\"}],\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]}",
		    "0 end id=a bytes=out\n model=g knows=f complete\n"),
	};

	(void)state;
	CHECK_ROWS(rows);
}

static void test_gemini(void **state)
{
#define PARTS                                                                                                       \
	"{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"t\"},{\"functionCall\":{\"name\":\"run\",\"args\":{" \
	"\"c\": 1}}}]},"
#define GEMINI                                                                                              \
	PARTS "\"finishReason\":\"STOP\"}],\"modelVersion\":\"v\",\"responseId\":\"r\",\"usageMetadata\":{" \
	      "\"totalTokenCount\":4}}"
#define GEMINI_READ "0 begin tool=run bytes={\"c\": 1}\n model=v response=r stop=STOP totalTokenCount=4 complete\n"
	static const struct row rows[] = {
	    RESPONSE(gemini, GEMINI, GEMINI_READ),
	    RESPONSE(gemini_stream, EVENT(GEMINI), GEMINI_READ),
	    RESPONSE(gemini_stream, "[" GEMINI "\n]", GEMINI_READ),
	    RESPONSE(gemini_stream, "[{\"candidates\":[]}\n,\r\n" GEMINI "]", GEMINI_READ),
	    RESPONSE(gemini_stream, "[" GEMINI,
		     "0 begin tool=run bytes={\"c\": 1}\n model=v response=r stop=STOP totalTokenCount=4 malformed\n"),
	    RESPONSE(gemini, "{\"error\":{\"code\":503}}", " failed\n"),
	    REQUEST(gemini,
		    "{\"contents\":[{\"parts\":[{\"functionResponse\":{\"name\":\"run\",\"response\":{\"output\":"
		    "\"Output: x\\nExit Code: 2\"}}},"
		    "{\"functionResponse\":{\"id\":\"i\",\"name\":\"run\",\"response\":{\"error\":\"bad\"}}},"
		    "{\"functionResponse\":{\"name\":\"z\",\"response\":{\"k\": 1}}}]}],"
		    "\"tools\":[{\"functionDeclarations\":[{\"name\":\"run\"}]}]}",
		    "0 end tool=run bytes=Output: x\nExit Code: 2 failed exit=2\n1 end id=i tool=run bytes=bad failed\n"
		    "2 end tool=z bytes={\"k\": 1}\n knows=run complete\n"),
	};

	(void)state;
	CHECK_ROWS(rows);
}

/* clang-format on */
/* Bodies that are none: nothing is told, and nothing grows. */
static void test_refused(void **state)
{
	static const char *const bodies[] = {
	    "",           "{",   "[1,",         "{\"a\":}",          "{\"a\" 1}",           "{a:1}",
	    "[1 2]",      "[]]", "{\"a\":tru}", "{\"a\":\"\\x\"}",   "{\"a\":\"\\u12g4\"}", "{}{}",
	    "{\"a\":1,}", "[,]", "data: {\n\n", "data: {\"type\":1}"};
	struct buf deep = {.limit = 1 << 20};

	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
		check(DIALECT_anthropic_messages, READING_RESPONSE, bytes_of(bodies[i]), " malformed\n");
	for (int i = 0; i < 100000; i++)
		buf_append_text(&deep, i % 2 ? "[" : "{\"content\":");
	char *read = reads(DIALECT_anthropic_messages, READING_RESPONSE, buf_bytes(&deep), WHOLE, WHOLE);
	assert_string_equal(read, " malformed\n");
	free(read);
	buf_free(&deep);
}

static void told_size(void *context, struct call_sighting *sighting, unsigned ordinal)
{
	(void)ordinal;
	assert_true(sighting->arguments.kept.size <= READING_KEPT_LIMIT);
	*(struct call_bytes *)context = sighting->arguments;
	((struct call_bytes *)context)->kept = BYTES_NONE;
}

/* Arguments of 64 MB are hashed whole, and kept in part. */
static void test_large(void **state)
{
	enum { PIECE = 1 << 16, PIECES = 1024 };
	struct reading_budget budget = {0, 1 << 24};
	struct call_bytes bytes = {0};
	struct reading *reading = reading_new(DIALECT_openai_responses, READING_RESPONSE, &budget, told_size, &bytes);
	struct hasher *hasher = hasher_new(NULL);
	struct digest digest;
	char *piece = malloc(PIECE);

	(void)state;
	memset(piece, 'x', PIECE);
	hasher_begin(hasher);
	reading_feed(reading, BYTES("{\"id\":\"r\",\"output\":[{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":"
				    "\"w\",\"arguments\":\""));
	for (int i = 0; i < PIECES; i++) {
		reading_feed(reading, (struct bytes){piece, PIECE});
		hasher_add(hasher, (struct bytes){piece, PIECE});
		assert_true(budget.used <= READING_KEPT_LIMIT);
	}
	reading_feed(reading, BYTES("\"}]}"));
	reading_finish(reading, true);
	assert_true(hasher_end(hasher, &digest));
	assert_int_equal(bytes.size, (uint64_t)PIECE * PIECES);
	assert_memory_equal(bytes.sha256, digest.bytes, sizeof(digest.bytes));
	assert_true(reading_facts(reading)->complete);
	reading_free(reading);
	hasher_free(hasher);
	free(piece);
}

static void test_dialects(void **state)
{
	static const struct {
		const char *method, *path;
		enum dialect dialect;
		const char *model;
	} rows[] = {
	    {"POST", "/v1/messages", DIALECT_anthropic_messages, NULL},
	    {"POST", "/v1/messages/count_tokens", DIALECT_unwitnessed, NULL},
	    {"GET", "/v1/messages", DIALECT_unwitnessed, NULL},
	    {"POST", "/backend-api/codex/responses", DIALECT_openai_responses, NULL},
	    {"POST", "/v1/chat/completions", DIALECT_openai_chat, NULL},
	    {"POST", "/v1beta/models/gem:generateContent", DIALECT_gemini, "gem"},
	    {"POST", "/v1beta/models/gem:streamGenerateContent", DIALECT_gemini_stream, "gem"},
	    {"POST", ":generateContent", DIALECT_gemini, ""},
	    {"HEAD", "/api/hello", DIALECT_unwitnessed, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bytes path = bytes_of(rows[i].path);
		assert_int_equal(dialect_of(bytes_of(rows[i].method), path), rows[i].dialect);
		assert_true(bytes_equal(dialect_path_model(rows[i].dialect, path), bytes_of(rows[i].model)));
	}
}

static void test_exit_codes(void **state)
{
	static const struct {
		const char *output;
		int code;
		bool found;
	} rows[] = {
	    {"Exit code 127\nsh: x", 127, true},
	    {"Exit code 1", 1, true},
	    {"Exit code -1", -1, true},
	    {"Exit code 1.5", 0, false},
	    {"Exit code x", 0, false},
	    {"the\nExit code is", 0, false},
	    {"1\n2\n3\n4\n5\nExit code 3", 0, false},
	    {"Chunk ID: a\nWall time: 0.1 seconds\nProcess exited with code 2\nOutput:\n", 2, true},
	    {"Output:\nExit code: 4", 0, false},
	    {"Command: x\nOutput: Exit Code: 9\nExit Code: 5\nExit Code: 6\nSignal: (none)", 6, true},
	    {"", 0, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int code = 0;
		assert_int_equal(reading_exit_code(bytes_of(rows[i].output), &code), rows[i].found);
		if (rows[i].found)
			assert_int_equal(code, rows[i].code);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_anthropic), cmocka_unit_test(test_responses),  cmocka_unit_test(test_chat),
	    cmocka_unit_test(test_gemini),    cmocka_unit_test(test_refused),    cmocka_unit_test(test_large),
	    cmocka_unit_test(test_dialects),  cmocka_unit_test(test_exit_codes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
