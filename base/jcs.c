/*
 * Bringing a foreign document into canonical form: read into a tree, keys sorted, written again.
 */
#include "base/jcs.h"

#include <stdlib.h>

#include "base/text.h"

enum node_kind { NODE_WORD, NODE_NUMBER, NODE_STRING, NODE_ARRAY, NODE_OBJECT };

struct node {
	enum node_kind kind;
	struct bytes key;  /* unescaped; of a member */
	struct bytes text; /* words; strings unescaped */
	double number;
	struct node *first, *next; /* children in order, siblings */
	size_t count;
};

struct parser {
	const char *at, *end;
	unsigned depth;
	enum jcs_order order;
	struct arena arena;
	const char *why; /* static */
};

static struct node *parse_value(struct parser *parser);

static void *refuse(struct parser *parser, const char *why)
{
	if (!parser->why)
		parser->why = why;
	return NULL;
}

static void skip_blanks(struct parser *parser)
{
	while (parser->at < parser->end &&
	       (*parser->at == ' ' || *parser->at == '\t' || *parser->at == '\n' || *parser->at == '\r'))
		parser->at++;
}

static bool take(struct parser *parser, char c)
{
	skip_blanks(parser);
	if (parser->at == parser->end || *parser->at != c)
		return false;
	parser->at++;
	return true;
}

static struct node *new_node(struct parser *parser, enum node_kind kind)
{
	struct node *node = arena_alloc(&parser->arena, sizeof(*node));

	if (!node)
		return refuse(parser, "too large");
	*node = (struct node){.kind = kind};
	return node;
}

static bool take_hex(struct parser *parser, uint32_t *out)
{
	*out = 0;
	if (parser->end - parser->at < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		char c = *parser->at++;
		unsigned value = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
				 : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
							: 16;
		if (value > 15)
			return false;
		*out = *out << 4 | value;
	}
	return true;
}

static char *put_utf8(char *to, uint32_t code)
{
	if (code < 0x80) {
		*to++ = (char)code;
		return to;
	}
	int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
	static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
	*to++ = (char)(lead[more] | code >> (6 * more));
	while (more-- > 0)
		*to++ = (char)(0x80 | (code >> (6 * more) & 0x3f));
	return to;
}

/* Behind the backslash. NULL for what is no escape, or half a pair. */
static char *take_escape(struct parser *parser, char *to)
{
	static const char from[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
	uint32_t code, low;

	if (parser->at == parser->end)
		return NULL;
	char c = *parser->at++;
	const char *brief = c ? strchr(from, c) : NULL;
	if (brief) {
		*to++ = means[brief - from];
		return to;
	}
	if (c != 'u' || !take_hex(parser, &code))
		return NULL;
	if (code >= 0xd800 && code < 0xdc00) {
		if (parser->end - parser->at < 6 || parser->at[0] != '\\' || parser->at[1] != 'u')
			return NULL;
		parser->at += 2;
		if (!take_hex(parser, &low) || low < 0xdc00 || low > 0xdfff)
			return NULL;
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
	} else if (code >= 0xdc00 && code < 0xe000) {
		return NULL;
	}
	return put_utf8(to, code);
}

static bool parse_string(struct parser *parser, struct bytes *out)
{
	const char *quote = parser->at;
	/* No escape is shorter than what it stands for. */
	while (quote < parser->end && *quote != '"')
		quote += *quote == '\\' ? 2 : 1;
	if (quote >= parser->end)
		return refuse(parser, "a string without an end");
	char *text = arena_alloc(&parser->arena, (size_t)(quote - parser->at) + 1), *to = text;
	if (!text)
		return refuse(parser, "too large");
	while (parser->at < quote) {
		if ((unsigned char)*parser->at < 0x20)
			return refuse(parser, "a control character in a string");
		if (*parser->at != '\\') {
			*to++ = *parser->at++;
			continue;
		}
		parser->at++;
		to = take_escape(parser, to);
		if (!to)
			return refuse(parser, "an escape that is none, or a lone surrogate");
	}
	parser->at = quote + 1;
	*out = (struct bytes){text, (size_t)(to - text)};
	return text_is_utf8(*out) || refuse(parser, "not UTF-8");
}

static bool digits(struct parser *parser)
{
	const char *start = parser->at;

	while (parser->at < parser->end && *parser->at >= '0' && *parser->at <= '9')
		parser->at++;
	return parser->at > start;
}

/* RFC 8259 section 6; strtod(3) takes more than that. */
static bool scan_number(struct parser *parser)
{
	if (parser->at < parser->end && *parser->at == '-')
		parser->at++;
	if (parser->at < parser->end && *parser->at == '0')
		parser->at++;
	else if (!digits(parser))
		return false;
	if (parser->at < parser->end && *parser->at == '.') {
		parser->at++;
		if (!digits(parser))
			return false;
	}
	if (parser->at < parser->end && (*parser->at == 'e' || *parser->at == 'E')) {
		parser->at++;
		if (parser->at < parser->end && (*parser->at == '+' || *parser->at == '-'))
			parser->at++;
		return digits(parser);
	}
	return true;
}

static struct node *parse_number(struct parser *parser)
{
	enum { LONGEST = 1024 };
	char text[LONGEST], printed[JCS_NUMBER_SIZE];
	const char *start = parser->at;

	if (!scan_number(parser) || parser->at - start >= LONGEST)
		return refuse(parser, "neither a value nor a number");
	memcpy(text, start, (size_t)(parser->at - start));
	text[parser->at - start] = '\0';
	struct node *node = new_node(parser, NODE_NUMBER);
	if (!node)
		return NULL;
	node->number = strtod(text, NULL);
	return jcs_number(node->number, printed) ? node : refuse(parser, "a number that no double holds");
}

static struct node *parse_members(struct parser *parser, enum node_kind kind, char end)
{
	struct node *parent = new_node(parser, kind), **link = parent ? &parent->first : NULL;

	if (!parent || take(parser, end))
		return parent;
	do {
		struct bytes key = BYTES_NONE;
		if (kind == NODE_OBJECT && (!take(parser, '"') || !parse_string(parser, &key) || !take(parser, ':')))
			return refuse(parser, "a member without a name");
		struct node *child = parse_value(parser);
		if (!child)
			return NULL;
		child->key = key;
		*link = child;
		link = &child->next;
		parent->count++;
	} while (take(parser, ','));
	return take(parser, end) ? parent : refuse(parser, "a list without an end");
}

static struct node *parse_value(struct parser *parser)
{
	static const struct bytes words[] = {BYTES("true"), BYTES("false"), BYTES("null")};
	struct node *node = NULL;

	if (parser->depth == JCS_DEPTH_LIMIT)
		return refuse(parser, "nested too deeply");
	skip_blanks(parser);
	for (size_t i = 0; i < 3; i++)
		if ((size_t)(parser->end - parser->at) >= words[i].size &&
		    memcmp(parser->at, words[i].data, words[i].size) == 0) {
			parser->at += words[i].size;
			node = new_node(parser, NODE_WORD);
			if (node)
				node->text = words[i];
			return node;
		}
	parser->depth++;
	if (take(parser, '{'))
		node = parse_members(parser, NODE_OBJECT, '}');
	else if (take(parser, '['))
		node = parse_members(parser, NODE_ARRAY, ']');
	else if (take(parser, '"')) {
		node = new_node(parser, NODE_STRING);
		if (node && !parse_string(parser, &node->text))
			node = NULL;
	} else
		node = parse_number(parser);
	parser->depth--;
	return node;
}

/* By UTF-16 code units: what takes two of them stands below U+E000. */
static int compare_keys(const void *left, const void *right)
{
	struct bytes a = (*(struct node *const *)left)->key, b = (*(struct node *const *)right)->key;

	while (a.size > 0 && b.size > 0) {
		uint32_t one, other;
		size_t a_size = text_utf8_decode(a, &one), b_size = text_utf8_decode(b, &other);
		if (one != other) {
			bool one_pair = one >= 0x10000, other_pair = other >= 0x10000;
			uint32_t one_unit = one_pair ? 0xd800 + ((one - 0x10000) >> 10) : one;
			uint32_t other_unit = other_pair ? 0xd800 + ((other - 0x10000) >> 10) : other;
			if (one_unit != other_unit)
				return one_unit < other_unit ? -1 : 1;
			return one < other ? -1 : 1;
		}
		a = (struct bytes){a.data + a_size, a.size - a_size};
		b = (struct bytes){b.data + b_size, b.size - b_size};
	}
	return a.size == b.size ? 0 : a.size < b.size ? -1 : 1;
}

/* ECMA-262 section 6.1.7: a number below 2^32 - 1 in its one decimal form. */
static bool is_array_index(struct bytes key, uint64_t *value)
{
	return key.size <= 10 && text_decimal_parse(key, value) && *value < UINT32_MAX;
}

/* Less than zero where `left` is an index and `right` is none, or a larger one; `neither` when both are none. */
static int compare_indices(const struct node *left, const struct node *right, bool *neither)
{
	uint64_t one = 0, other = 0;
	bool one_index = is_array_index(left->key, &one), other_index = is_array_index(right->key, &other);

	*neither = !one_index && !other_index;
	if (one_index != other_index)
		return one_index ? -1 : 1;
	return one == other ? 0 : one < other ? -1 : 1;
}

static int compare_ecma_sorted(const void *left, const void *right)
{
	bool neither;
	int order = compare_indices(*(struct node *const *)left, *(struct node *const *)right, &neither);

	return neither ? compare_keys(left, right) : order;
}

static int compare_ecma_given(const void *left, const void *right)
{
	const struct node *one = *(struct node *const *)left, *other = *(struct node *const *)right;
	bool neither;
	int order = compare_indices(one, other, &neither);

	/* Nodes come from one arena, each behind the one that was read before it. */
	return !neither ? order : one < other ? -1 : one > other;
}

/* RFC 8785's order, in which equal names are neighbours; then, if it is another one that is wanted, that. */
static bool sort_members(struct parser *parser, struct node **members, size_t count)
{
	qsort(members, count, sizeof(struct node *), compare_keys);
	for (size_t i = 1; i < count; i++)
		if (bytes_equal(members[i - 1]->key, members[i]->key))
			return refuse(parser, "a name twice");
	if (parser->order == JCS_RFC8785)
		return true;
	for (size_t i = 0; i < count; i++)
		if (bytes_equal(members[i]->key, BYTES("__proto__")))
			return refuse(parser, "a name that ECMAScript would lose");
	qsort(members, count, sizeof(struct node *),
	      parser->order == JCS_ECMA_SORTED ? compare_ecma_sorted : compare_ecma_given);
	return true;
}

static void write_string(struct buf *out, struct bytes text)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";

	buf_append_char(out, '"');
	for (size_t i = 0; i < text.size; i++) {
		char c = text.data[i];
		const char *brief = c ? strchr(from, c) : NULL;
		if (brief) {
			char escape[2] = {'\\', to[brief - from]};
			buf_append(out, escape, sizeof(escape));
		} else if ((unsigned char)c < 0x20) {
			buf_append_format(out, "\\u%04x", (unsigned)c);
		} else {
			buf_append_char(out, c);
		}
	}
	buf_append_char(out, '"');
}

static bool write_node(struct parser *parser, const struct node *node, struct buf *out);

static bool write_members(struct parser *parser, const struct node *node, struct buf *out)
{
	struct node **sorted = arena_alloc(&parser->arena, (node->count + 1) * sizeof(struct node *));
	size_t count = 0;
	bool object = node->kind == NODE_OBJECT;

	if (!sorted)
		return refuse(parser, "too large");
	for (struct node *child = node->first; child; child = child->next)
		sorted[count++] = child;
	if (object && !sort_members(parser, sorted, count))
		return false;
	buf_append_char(out, object ? '{' : '[');
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			buf_append_char(out, ',');
		if (object) {
			write_string(out, sorted[i]->key);
			buf_append_char(out, ':');
		}
		if (!write_node(parser, sorted[i], out))
			return false;
	}
	buf_append_char(out, object ? '}' : ']');
	return true;
}

static bool write_node(struct parser *parser, const struct node *node, struct buf *out)
{
	char number[JCS_NUMBER_SIZE];

	switch (node->kind) {
	case NODE_WORD:
		buf_append_bytes(out, node->text);
		return true;
	case NODE_NUMBER:
		if (jcs_number(node->number, number))
			buf_append_text(out, number);
		return true;
	case NODE_STRING:
		write_string(out, node->text);
		return true;
	default:
		return write_members(parser, node, out);
	}
}

bool jcs_write(struct bytes document, struct buf *out, struct err *err)
{
	return jcs_write_as(document, JCS_RFC8785, out, err);
}

/*
 * What reading and sorting can take at most. No value begins but at the start or behind one of these three; for each there
 * is a node, a name, a text and a place in a list, none of them longer than what they were read from, all but that aligned.
 */
static size_t arena_size(struct bytes document)
{
	enum { NODE_MOST = sizeof(struct node) + 5 * 16 };
	size_t nodes = 1;

	for (size_t i = 0; i < document.size; i++)
		nodes += document.data[i] == ',' || document.data[i] == '[' || document.data[i] == '{';
	return nodes * NODE_MOST + document.size + 4096;
}

bool jcs_write_as(struct bytes document, enum jcs_order order, struct buf *out, struct err *err)
{
	enum { DOCUMENT_MOST = 1 << 26 };
	struct parser parser = {.at = document.data, .end = document.data + document.size, .order = order};
	size_t before = out->size;

	if (document.size == 0 || document.size > DOCUMENT_MOST)
		return err_set(err, 0, "not canonical JSON: %s", document.size ? "too large" : "empty");
	if (!arena_init(&parser.arena, arena_size(document)))
		return err_set(err, 0, "not enough memory for JSON");
	const struct node *root = parse_value(&parser);
	skip_blanks(&parser);
	if (root && parser.at != parser.end)
		root = refuse(&parser, "something stands behind the value");
	bool good = root && write_node(&parser, root, out) && !out->failed;
	if (!good) {
		out->size = before;
		err_set(err, 0, "not canonical JSON: %s", parser.why ? parser.why : "out of memory");
	}
	arena_free(&parser.arena);
	return good;
}
