#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "base/json.h"
#include "base/note.h"
#include "command.h"
#include "ledger/host_key.h"
#include "ledger/host_log.h"
#include "options.h"
#include "render.h"

/* The one that goes vouches for the one that comes. */
static bool announce(const char *home, const struct ed25519_secret *next, const struct ed25519_secret *before,
		     struct err *err)
{
	char fingerprint[ED25519_FINGERPRINT_SIZE], old[ED25519_FINGERPRINT_SIZE];

	if (!ed25519_fingerprint(ed25519_public(next), fingerprint) ||
	    !ed25519_fingerprint(ed25519_public(before), old))
		return err_set(err, 0, "host key: cannot hash");
	struct host_entry entry = {
	    .event = HOST_EVENT_key, .fingerprint = fingerprint, .replaces = old, .key = ed25519_public(next)};
	return host_log_append(home, &entry, before, err);
}

static int show(const struct ed25519_secret *secret, bool as_json)
{
	CLEANUP_BUF struct buf out = {.limit = 4096}, key = {.limit = 1024};
	char fingerprint[ED25519_FINGERPRINT_SIZE], name[HOST_NAME_SIZE];
	struct json json;

	if (!ed25519_fingerprint(ed25519_public(secret), fingerprint) || !host_name_of(ed25519_public(secret), name))
		return EXIT_FAILED;
	const struct note_key named = {bytes_of(name), NOTE_ED25519, *ed25519_public(secret)};
	note_key_format(&named, &key);
	if (as_json) {
		json_start(&json, &out);
		json_begin_object(&json, NULL);
		json_text(&json, "fingerprint", fingerprint);
		json_word(&json, "key", buf_bytes(&key));
		json_text(&json, "schema", "assure.key/1");
		json_text(&json, "use", "host");
		json_end_object(&json);
	} else {
		buf_append_format(&out, "host key     %s\nas in notes  %.*s", fingerprint, (int)key.size, key.data);
	}
	buf_append_char(&out, '\n');
	return render_out(stdout, &out);
}

/* What a verifier elsewhere needs, and nothing that it could sign with. */
static int export_key(const struct ed25519_secret *secret)
{
	CLEANUP_BUF struct buf out = {.limit = 1024};
	char name[HOST_NAME_SIZE];

	if (!host_name_of(ed25519_public(secret), name))
		return EXIT_FAILED;
	const struct note_key named = {bytes_of(name), NOTE_ED25519, *ed25519_public(secret)};
	note_key_format(&named, &out);
	buf_append_char(&out, '\n');
	return render_out(stdout, &out);
}

static int init(const char *home, bool as_json)
{
	struct err err = {.number = 0};
	bool made;
	struct ed25519_secret *secret = host_key_ensure(home, &made, &err);

	int status =
	    secret && (!made || host_log_append(home, NULL, secret, &err)) ? show(secret, as_json) : render_error(&err);
	ed25519_free(secret);
	return status;
}

/* Ended between telling the log and putting the key in place: the log knows the next one already. */
static bool finish_rotation(const char *home, struct ed25519_secret **next)
{
	*next = host_key_staged(home);
	if (*next && host_log_append(home, NULL, *next, NULL) && host_key_promote(home, NULL))
		return true;
	ed25519_free(*next);
	*next = NULL;
	return false;
}

static int rotate(const char *home, bool as_json)
{
	struct err err = {.number = 0};
	struct ed25519_secret *before = host_key_load(home, &err), *next = NULL;

	bool good = before && finish_rotation(home, &next);
	if (before && !good) {
		/* The log is told before the key is used: one that it does not know must never sign. */
		next = ed25519_generate(&err);
		good = next && host_key_stage(home, next, &err) && announce(home, next, before, &err) &&
		       host_key_promote(home, &err);
	}
	int status = good ? show(next, as_json) : render_error(&err);
	ed25519_free(before);
	ed25519_free(next);
	return status;
}

static int run(int argc, char **argv)
{
	char home[PATH_MAX];
	bool json = false;
	struct arguments rest = {.least = 1, .most = 1};
	struct err err = {.number = 0};
	int status;
	const struct option_row rows[] = {{.name = "json", .flag = &json}};

	if (!options_parse(&command_keys, argc, argv, rows, 1, &rest, &status))
		return status;
	const char *what = rest.items[0];
	bool is_init = strcmp(what, "init") == 0, is_rotate = strcmp(what, "rotate") == 0;
	bool is_show = strcmp(what, "show") == 0, is_export = strcmp(what, "export") == 0;
	if (!is_init && !is_rotate && !is_show && !is_export)
		return options_mistake(&command_keys, "init, show, export or rotate is needed, not", what);
	if (!store_home(home, sizeof(home), is_init, &err))
		return render_error(&err);
	if (is_init)
		return init(home, json);
	if (is_rotate)
		return rotate(home, json);
	struct ed25519_secret *secret = host_key_load(home, &err);
	if (!secret) {
		if (err.number == ENOENT)
			err_hint(&err, "the first run makes it, or: assure keys init");
		return render_error(&err);
	}
	status = is_export ? export_key(secret) : show(secret, json);
	ed25519_free(secret);
	return status;
}

const struct command command_keys = {
    .name = "keys",
    .usage = "keys init | show | export | rotate [--json]",
    .help = "The key of this host, which vouches for the keys of its runs.\n\n"
	    "  init      make it, when there is none; the first run does the same\n"
	    "  show      its fingerprint, and as notes have it (--json: assure.key/1)\n"
	    "  export    what a verifier elsewhere needs: assure verify --key FILE\n"
	    "  rotate    make another, which the present one vouches for in the host log; the\n"
	    "            old one is kept as keys/<fingerprint>.old\n\n"
	    "It lies in the state folder, and is refused when others could use it.\n",
    .run = run,
};
