#include "effect_text.h"

#include <inttypes.h>

#include "base/text.h"

static void append_escaped(struct buf *out, struct bytes text)
{
	text_for_terminal(out, text);
}

void effect_argv_text(struct buf *out, const struct document *argv, struct arena *arena)
{
	size_t count = document_size(argv);
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			buf_append_char(out, ' ');
		text_shell_word(out, document_element(document_at(argv, i), arena));
	}
}

void effect_status_text(struct buf *out, const struct document *status)
{
	const char *signal = document_text(status, "signal");
	int64_t code = document_int(status, "code", -1);
	if (signal)
		append_escaped(out, bytes_of(signal));
	else if (code >= 0)
		buf_append_format(out, "exit %" PRId64, code);
	else
		buf_append_text(out, "ended");
	if (document_bool(status, "core", false))
		buf_append_text(out, " (core)");
}

void effect_peer_text(struct buf *out, const struct document *peer, struct arena *arena)
{
	struct bytes path = document_bytes(peer, "path", arena), address = document_bytes(peer, "address", arena);
	struct bytes protocol = document_bytes(peer, "protocol", arena), family = document_bytes(peer, "family", arena);
	int64_t port = document_int(peer, "port", -1);
	if (path.data) {
		append_escaped(out, path);
		return;
	}
	append_escaped(out, protocol.data ? protocol : family);
	if (!address.data)
		return;
	bool brackets = port >= 0 && memchr(address.data, ':', address.size);
	buf_append_text(out, brackets ? " [" : " ");
	append_escaped(out, address);
	if (brackets)
		buf_append_char(out, ']');
	if (port >= 0)
		buf_append_format(out, ":%" PRId64, port);
}

struct args_context {
	struct buf *out;
	bool any;
};

static void append_arg(void *context, const char *key, const struct document *value)
{
	struct args_context *args = context;
	CLEANUP_BUF struct buf json = {.limit = 1 << 18};
	if (args->any)
		buf_append_char(args->out, ' ');
	args->any = true;
	append_escaped(args->out, bytes_of(key));
	buf_append_char(args->out, '=');
	document_dump(value, &json);
	append_escaped(args->out, buf_bytes(&json));
}

static void append_args(struct buf *out, const struct document *effect)
{
	struct args_context context = {.out = out};
	const struct document *args = document_get(effect, "args");
	if (args)
		document_each(args, append_arg, &context);
	if (!context.any) {
		const char *syscall = document_text(effect, "syscall");
		append_escaped(out, bytes_of(syscall ? syscall : "-"));
	}
}

static void append_target(struct buf *out, const struct document *effect, const struct document *target,
			  struct arena *arena)
{
	struct bytes exe = document_bytes(target, "exe", arena);
	const char *signal = document_text(document_get(effect, "args"), "sig");
	if (signal) {
		append_escaped(out, bytes_of(signal));
		buf_append_char(out, ' ');
	}
	buf_append_format(out, "pid %" PRId64, document_int(target, "pid", 0));
	if (exe.data) {
		buf_append_char(out, ' ');
		append_escaped(out, exe);
	}
}

static bool append_path(struct buf *out, const struct document *object, struct arena *arena)
{
	static const char *const keys[] = {"path", "host_path", "as_given"};
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct bytes path = document_bytes(object, keys[i], arena);
		if (!path.data)
			continue;
		append_escaped(out, path);
		return true;
	}
	return false;
}

static void append_to(struct buf *out, const struct document *to, struct arena *arena)
{
	struct bytes text = document_bytes(to, "text", arena);
	if (!to)
		return;
	buf_append_text(out, " -> ");
	if (text.data)
		append_escaped(out, text);
	else
		append_path(out, to, arena);
}

/* That there is more, and where. */
static void append_rest(struct buf *out, const struct document *effect)
{
	enum { SHOWN = sizeof("sha256:") - 1 + 12 };
	const struct document *blobs = document_get(effect, "blobs");
	const char *digest = blobs ? document_text(document_get(blobs, "argv"), "digest") : NULL;

	buf_append_text(out, " ...");
	if (digest && strlen(digest) > SHOWN)
		buf_append_format(out, " (whole: --blob %.*s)", SHOWN - (int)strlen("sha256:"),
				  digest + strlen("sha256:"));
}

void effect_object_text(struct buf *out, const struct document *effect, struct arena *arena)
{
	const struct document *argv = document_get(effect, "argv"), *to = document_get(effect, "to");
	const struct document *peer = document_get(effect, "peer"), *local = document_get(effect, "local");
	const struct document *target = document_get(effect, "target"), *status = document_get(effect, "status");
	struct bytes delegated = document_bytes(effect, "delegated", arena);
	const char *mode = document_text(effect, "mode"), *kind = document_text(effect, "kind");

	if (document_size(argv) > 0) {
		effect_argv_text(out, argv, arena);
		if (document_get(effect, "argv_total"))
			append_rest(out, effect);
	} else if (status) {
		effect_status_text(out, status);
	} else if (peer) {
		effect_peer_text(out, peer, arena);
	} else if (target) {
		append_target(out, effect, target, arena);
	} else if (append_path(out, effect, arena) || to) {
		append_to(out, to, arena);
	} else if (local) {
		effect_peer_text(out, local, arena);
	} else {
		append_args(out, effect);
	}
	if (mode && kind && strcmp(kind, "file.mode") == 0) {
		buf_append_char(out, ' ');
		append_escaped(out, bytes_of(mode));
	}
	if (delegated.data) {
		buf_append_text(out, " (delegated to ");
		append_escaped(out, delegated);
		buf_append_char(out, ')');
	}
}

void effect_result_text(struct buf *out, const struct document *effect)
{
	const struct document *result = document_get(effect, "result");
	const char *state = document_text(result, "state"), *error = document_text(result, "errno");
	if (!state || strcmp(state, "unknown") == 0) {
		buf_append_char(out, '?');
		return;
	}
	if (strcmp(state, "failed") != 0 || !error) {
		append_escaped(out, bytes_of(state));
		if (error)
			buf_append_char(out, ' ');
	}
	if (error)
		append_escaped(out, bytes_of(error));
}

void effect_process_text(struct buf *out, const struct document *effect, struct arena *arena)
{
	const struct document *process = document_get(effect, "process");
	struct bytes exe = document_bytes(process, "exe", arena);
	buf_append_format(out, "%" PRId64, document_int(process, "pid", 0));
	const char *slash = exe.data ? memrchr(exe.data, '/', exe.size) : NULL;
	if (slash && slash + 1 < exe.data + exe.size)
		exe = (struct bytes){slash + 1, exe.size - (size_t)(slash + 1 - exe.data)};
	if (exe.data) {
		buf_append_char(out, ' ');
		append_escaped(out, exe);
	}
}

const char *effect_label(const struct document *effect)
{
	enum effect_kind kind;
	const char *name = document_text(effect, "kind");
	return name && effect_kind_find(name, &kind) ? effect_kind_label(kind) : "unknown";
}
