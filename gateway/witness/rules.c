#include "rules.h"

#include "witness/scan.h"

/* RULE_X, and the steps that lead there: A_STEP is a member, EACH any element. */
#define EACH SCAN_ELEMENT
#define ROW(action, ...)                                               \
	{                                                              \
		RULE_##action, sizeof((const uint8_t[]){__VA_ARGS__}), \
		{                                                      \
			__VA_ARGS__                                    \
		}                                                      \
	}
#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define W(word) WORD_##word

/* --- Anthropic Messages ----------------------------------------------------------------------------------------- */

static const struct rule anthropic_request[] = {
    ROW(MODEL, W(model)),
    ROW(STREAM, W(stream)),
    ROW(TOOL, W(tools), EACH, W(name)),
    ROW(ITEM, W(messages), EACH, W(content), EACH),
    ROW(KIND, W(messages), EACH, W(content), EACH, W(type)),
    ROW(ID, W(messages), EACH, W(content), EACH, W(tool_use_id)),
    ROW(FAILED, W(messages), EACH, W(content), EACH, W(is_error)),
    ROW(OUTPUT, W(messages), EACH, W(content), EACH, W(content)),
    ROW(OUTPUT, W(messages), EACH, W(content), EACH, W(content), EACH, W(text)),
};

static const struct rule anthropic_event[] = {
    ROW(EVENT, W(type)),
    ROW(INDEX, W(index)),
    ROW(DELTA, W(delta), W(partial_json)),
    ROW(STOP, W(delta), W(stop_reason)),
    ROW(USAGE, W(usage)),
    ROW(ITEM, W(content_block)),
    ROW(KIND, W(content_block), W(type)),
    ROW(ID, W(content_block), W(id)),
    ROW(NAME, W(content_block), W(name)),
    ROW(BODY, W(content_block), W(input)),
    ROW(RESPONSE_ID, W(message), W(id)),
    ROW(MODEL, W(message), W(model)),
    ROW(STOP, W(message), W(stop_reason)),
    ROW(USAGE, W(message), W(usage)),
    ROW(ERROR, W(error)),
};

static const struct rule anthropic_answer[] = {
    ROW(EVENT, W(type)),
    ROW(RESPONSE_ID, W(id)),
    ROW(MODEL, W(model)),
    ROW(STOP, W(stop_reason)),
    ROW(USAGE, W(usage)),
    ROW(ERROR, W(error)),
    ROW(ITEM, W(content), EACH),
    ROW(KIND, W(content), EACH, W(type)),
    ROW(ID, W(content), EACH, W(id)),
    ROW(NAME, W(content), EACH, W(name)),
    ROW(BODY, W(content), EACH, W(input)),
};

/* --- OpenAI Responses ------------------------------------------------------------------------------------------- */

static const struct rule responses_request[] = {
    ROW(MODEL, W(model)),
    ROW(STREAM, W(stream)),
    ROW(TOOL, W(tools), EACH, W(name)),
    ROW(ITEM, W(input), EACH),
    ROW(KIND, W(input), EACH, W(type)),
    ROW(ID, W(input), EACH, W(call_id)),
    ROW(OUTPUT, W(input), EACH, W(output)),
    ROW(OUTPUT, W(input), EACH, W(output), EACH, W(text)),
};

/* An item is the same wherever it stands. */
#define RESPONSES_ITEM(...)                                                                        \
	ROW(ITEM, __VA_ARGS__), ROW(KIND, __VA_ARGS__, W(type)), ROW(ID, __VA_ARGS__, W(call_id)), \
	    ROW(NAME, __VA_ARGS__, W(name)), ROW(ARGUMENTS, __VA_ARGS__, W(arguments)),            \
	    ROW(ARGUMENTS, __VA_ARGS__, W(input)), ROW(BODY, __VA_ARGS__, W(action))

static const struct rule responses_event[] = {
    ROW(EVENT, W(type)),
    ROW(INDEX, W(output_index)),
    ROW(ARGUMENTS, W(arguments)),
    ROW(ARGUMENTS, W(input)),
    RESPONSES_ITEM(W(item)),
    ROW(RESPONSE_ID, W(response), W(id)),
    ROW(MODEL, W(response), W(model)),
    ROW(STOP, W(response), W(status)),
    ROW(STOP, W(response), W(incomplete_details), W(reason)),
    ROW(USAGE, W(response), W(usage)),
    RESPONSES_ITEM(W(response), W(output), EACH),
    ROW(ERROR, W(response), W(error)),
};

static const struct rule responses_answer[] = {
    ROW(RESPONSE_ID, W(id)),
    ROW(MODEL, W(model)),
    ROW(STOP, W(status)),
    ROW(STOP, W(incomplete_details), W(reason)),
    ROW(USAGE, W(usage)),
    ROW(ERROR, W(error)),
    RESPONSES_ITEM(W(output), EACH),
};

/* --- OpenAI Chat Completions ------------------------------------------------------------------------------------ */

static const struct rule chat_request[] = {
    ROW(MODEL, W(model)),
    ROW(STREAM, W(stream)),
    ROW(TOOL, W(tools), EACH, W(function), W(name)),
    ROW(TOOL, W(tools), EACH, W(custom), W(name)),
    ROW(ITEM, W(messages), EACH),
    ROW(KIND, W(messages), EACH, W(role)),
    ROW(ID, W(messages), EACH, W(tool_call_id)),
    ROW(OUTPUT, W(messages), EACH, W(content)),
    ROW(OUTPUT, W(messages), EACH, W(content), EACH, W(text)),
};

#define CHAT_ANSWER                                                                                \
	ROW(RESPONSE_ID, W(id)), ROW(MODEL, W(model)), ROW(USAGE, W(usage)), ROW(ERROR, W(error)), \
	    ROW(CHOICE_ITEM, W(choices), EACH), ROW(CHOICE, W(choices), EACH, W(index)),           \
	    ROW(STOP, W(choices), EACH, W(finish_reason))
#define CHAT_CALL W(choices), EACH, W(delta), W(tool_calls), EACH
#define CHAT_WHOLE W(choices), EACH, W(message), W(tool_calls), EACH

static const struct rule chat_event[] = {
    CHAT_ANSWER,
    ROW(ITEM, CHAT_CALL),
    ROW(INDEX, CHAT_CALL, W(index)),
    ROW(ID, CHAT_CALL, W(id)),
    ROW(NAME, CHAT_CALL, W(function), W(name)),
    ROW(DELTA, CHAT_CALL, W(function), W(arguments)),
    ROW(NAME, CHAT_CALL, W(custom), W(name)),
    ROW(DELTA, CHAT_CALL, W(custom), W(input)),
};

static const struct rule chat_answer[] = {
    CHAT_ANSWER,
    ROW(ITEM, CHAT_WHOLE),
    ROW(ID, CHAT_WHOLE, W(id)),
    ROW(NAME, CHAT_WHOLE, W(function), W(name)),
    ROW(ARGUMENTS, CHAT_WHOLE, W(function), W(arguments)),
    ROW(NAME, CHAT_WHOLE, W(custom), W(name)),
    ROW(ARGUMENTS, CHAT_WHOLE, W(custom), W(input)),
};

/* --- Gemini ----------------------------------------------------------------------------------------------------- */

#define GEMINI_RESULT W(contents), EACH, W(parts), EACH, W(functionResponse)
#define GEMINI_CALL W(candidates), EACH, W(content), W(parts), EACH, W(functionCall)

static const struct rule gemini_request[] = {
    ROW(TOOL, W(tools), EACH, W(functionDeclarations), EACH, W(name)),
    ROW(ITEM, GEMINI_RESULT),
    ROW(ID, GEMINI_RESULT, W(id)),
    ROW(NAME, GEMINI_RESULT, W(name)),
    ROW(BODY, GEMINI_RESULT, W(response)),
    ROW(OUTPUT, GEMINI_RESULT, W(response), W(output)),
    ROW(OUTPUT_ERROR, GEMINI_RESULT, W(response), W(error)),
};

static const struct rule gemini_answer[] = {
    ROW(RESPONSE_ID, W(responseId)),
    ROW(MODEL, W(modelVersion)),
    ROW(STOP, W(candidates), EACH, W(finishReason)),
    ROW(USAGE, W(usageMetadata)),
    ROW(ERROR, W(error)),
    ROW(ITEM, GEMINI_CALL),
    ROW(ID, GEMINI_CALL, W(id)),
    ROW(NAME, GEMINI_CALL, W(name)),
    ROW(BODY, GEMINI_CALL, W(args)),
};

/* ---------------------------------------------------------------------------------------------------------------- */

#define TABLE(rows)               \
	{                         \
		rows, COUNT(rows) \
	}

static const struct {
	struct rules request, event, answer;
} tables[DIALECT_COUNT] = {
    [DIALECT_anthropic_messages] = {TABLE(anthropic_request), TABLE(anthropic_event), TABLE(anthropic_answer)},
    [DIALECT_openai_responses] = {TABLE(responses_request), TABLE(responses_event), TABLE(responses_answer)},
    [DIALECT_openai_chat] = {TABLE(chat_request), TABLE(chat_event), TABLE(chat_answer)},
    [DIALECT_gemini] = {TABLE(gemini_request), TABLE(gemini_answer), TABLE(gemini_answer)},
    [DIALECT_gemini_stream] = {TABLE(gemini_request), TABLE(gemini_answer), TABLE(gemini_answer)},
};

struct rules rules_request(enum dialect dialect)
{
	return tables[dialect].request;
}

struct rules rules_event(enum dialect dialect)
{
	return tables[dialect].event;
}

struct rules rules_answer(enum dialect dialect)
{
	return tables[dialect].answer;
}
