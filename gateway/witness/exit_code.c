/*
 * How agents' shells say the exit code in what they give back to the model. What a program printed could look the same: the
 * code is looked for only where the agent writes it, before the output, or behind it.
 */
#include "witness/reading.h"

static const struct {
	struct bytes before; /* what stands before the number, at the start of a line */
	bool last;           /* behind the output, so the last such line counts; else among the first lines */
} forms[] = {
    {{"Exit code ", 10}, false},                /* Claude Code, of a command that failed */
    {{"Exit code: ", 11}, false},               /* Codex */
    {{"Process exited with code ", 25}, false}, /* Codex, of a session */
    {{"Exit Code: ", 11}, true},                /* Gemini CLI */
};
enum { HEAD_LINES = 5 };

static bool parse(struct bytes text, int *code)
{
	int sign = 1, value = 0;
	size_t i = 0;

	if (text.size > 0 && text.data[0] == '-') {
		sign = -1;
		i++;
	}
	size_t start = i;
	for (; i < text.size && i - start < 6 && text.data[i] >= '0' && text.data[i] <= '9'; i++)
		value = value * 10 + (text.data[i] - '0');
	bool ended = i == text.size || !((text.data[i] >= '0' && text.data[i] <= '9') || text.data[i] == '.');
	*code = sign * value;
	return i > start && ended;
}

bool reading_exit_code(struct bytes output, int *code)
{
	bool found = false, head = true;

	for (unsigned line = 0; output.size > 0; line++) {
		const char *end = memchr(output.data, '\n', output.size);
		struct bytes text = {output.data, end ? (size_t)(end - output.data) : output.size};

		for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
			if (!bytes_start_with(text, forms[i].before) ||
			    (!forms[i].last && (!head || line >= HEAD_LINES)))
				continue;
			text.data += forms[i].before.size;
			text.size -= forms[i].before.size;
			int value;
			if (!parse(text, &value))
				break;
			*code = value;
			if (!forms[i].last)
				return true;
			found = true;
			break;
		}
		head &= !bytes_start_with(text, BYTES("Output:"));
		size_t skip = end ? (size_t)(end - output.data) + 1 : output.size;
		output.data += skip;
		output.size -= skip;
	}
	return found;
}
