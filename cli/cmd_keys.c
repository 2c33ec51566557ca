#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "base/json.h"
#include "base/note.h"
#include "command.h"
#include "ledger/host_key.h"
#include "ledger/host_log.h"
#include "options.h"
#include "passphrase.h"
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

static int show(const struct ed25519_key *public, bool sealed, bool as_json)
{
	CLEANUP_BUF struct buf out = {.limit = 4096}, key = {.limit = 1024};
	char fingerprint[ED25519_FINGERPRINT_SIZE], name[HOST_NAME_SIZE];
	struct json json;

	if (!ed25519_fingerprint(public, fingerprint) || !host_name_of(public, name))
		return EXIT_FAILED;
	const struct note_key named = {bytes_of(name), NOTE_ED25519, *public};
	note_key_format(&named, &key);
	if (as_json) {
		json_start(&json, &out);
		json_begin_object(&json, NULL);
		json_text(&json, "fingerprint", fingerprint);
		json_word(&json, "key", buf_bytes(&key));
		json_text(&json, "schema", "assure.key/1");
		json_bool(&json, "sealed", sealed);
		json_text(&json, "use", "host");
		json_end_object(&json);
	} else {
		buf_append_format(&out, "host key     %s\nas in notes  %.*s", fingerprint, (int)key.size, key.data);
		if (sealed)
			buf_append_text(&out, "\nsealed       with a passphrase");
	}
	buf_append_char(&out, '\n');
	return render_out(stdout, &out);
}

/* What a verifier elsewhere needs, and nothing that it could sign with. */
static int export_key(const struct ed25519_key *public)
{
	CLEANUP_BUF struct buf out = {.limit = 1024};
	char name[HOST_NAME_SIZE];

	if (!host_name_of(public, name))
		return EXIT_FAILED;
	const struct note_key named = {bytes_of(name), NOTE_ED25519, *public};
	note_key_format(&named, &out);
	buf_append_char(&out, '\n');
	return render_out(stdout, &out);
}

/* Of the key that is in place now. */
static int show_present(const char *home, bool as_json)
{
	struct err err = {.number = 0};
	struct ed25519_key public;
	bool sealed;

	if (host_key_public(home, &public, &sealed, &err))
		return show(&public, sealed, as_json);
	if (err.number == ENOENT)
		err_hint(&err, "the first run makes it, or: assure keys init");
	return render_error(&err);
}

static bool init(const char *home, struct bytes passphrase, struct err *err)
{
	bool made;
	struct ed25519_secret *secret = host_key_ensure(home, passphrase, &made, err);
	bool good = secret && (!made || host_log_append(home, NULL, secret, err));

	ed25519_free(secret);
	return good;
}

/* Ended between telling the log and putting the key in place: the log knows the next one already. */
static bool finish_rotation(const char *home, struct bytes passphrase)
{
	struct ed25519_secret *next = host_key_staged(home, passphrase);
	bool good = next && host_log_append(home, NULL, next, NULL) && host_key_promote(home, NULL);

	ed25519_free(next);
	return good;
}

static bool rotate(const char *home, struct bytes passphrase, struct err *err)
{
	struct ed25519_secret *before = host_key_load(home, passphrase, err), *next = NULL;

	bool good = before && finish_rotation(home, passphrase);
	if (before && !good) {
		/* The log is told before the key is used: one that it does not know must never sign. */
		next = ed25519_generate(err);
		good = next && host_key_stage(home, next, passphrase, err) && announce(home, next, before, err) &&
		       host_key_promote(home, err);
	}
	ed25519_free(before);
	ed25519_free(next);
	return good;
}

static bool seal(const char *home, const struct passphrase_source *source, struct err *err)
{
	struct passphrase next = {.present = false};
	struct ed25519_key public;
	bool sealed = false;

	if (!host_key_public(home, &public, &sealed, err))
		return false;
	if (sealed) {
		err_set(err, 0, "host key: it is sealed already");
		return err_hint(err, "for another passphrase: assure keys unseal, assure keys seal");
	}
	struct ed25519_secret *secret = host_key_load(home, BYTES_NONE, err);
	bool good = secret && passphrase_choose(source, &next, err) &&
		    host_key_reseal(home, secret, passphrase_bytes(&next), err);
	passphrase_wipe(&next);
	ed25519_free(secret);
	return good;
}

static bool unseal(const char *home, struct bytes passphrase, struct err *err)
{
	struct ed25519_secret *secret = host_key_load(home, passphrase, err);
	bool good = secret && host_key_reseal(home, secret, BYTES_NONE, err);

	ed25519_free(secret);
	return good;
}

enum verb { VERB_init, VERB_show, VERB_export, VERB_rotate, VERB_seal, VERB_unseal, VERB_COUNT };

static bool change(enum verb verb, const char *home, const struct passphrase_source *source, struct err *err)
{
	struct passphrase passphrase = {.present = false};

	if (verb == VERB_seal)
		return seal(home, source, err);
	bool good = passphrase_ask(home, source, &passphrase, err);
	if (good && verb == VERB_init)
		good = init(home, passphrase_bytes(&passphrase), err);
	else if (good && verb == VERB_rotate)
		good = rotate(home, passphrase_bytes(&passphrase), err);
	else if (good)
		good = unseal(home, passphrase_bytes(&passphrase), err);
	passphrase_wipe(&passphrase);
	return good;
}

static int run(int argc, char **argv)
{
	static const char *const verbs[VERB_COUNT] = {"init", "show", "export", "rotate", "seal", "unseal"};
	char home[PATH_MAX];
	bool json = false, sealed;
	struct passphrase_source source = {.given = false};
	struct arguments rest = {.least = 1, .most = 1};
	struct ed25519_key public;
	struct err err = {.number = 0};
	unsigned verb = 0;
	int status;
	const struct option_row rows[] = {{.name = "json", .flag = &json}, PASSPHRASE_OPTION(source)};

	if (!options_parse(&command_keys, argc, argv, rows, 2, &rest, &status))
		return status;
	while (verb < VERB_COUNT && strcmp(rest.items[0], verbs[verb]) != 0)
		verb++;
	if (verb == VERB_COUNT)
		return options_mistake(&command_keys, "init, show, export, rotate, seal or unseal is needed",
				       rest.items[0]);
	if (!store_home(home, sizeof(home), verb == VERB_init, &err))
		return render_error(&err);
	if (verb == VERB_export && host_key_public(home, &public, &sealed, &err))
		return export_key(&public);
	if (verb == VERB_export || (verb != VERB_show && !change((enum verb)verb, home, &source, &err)))
		return render_error(&err);
	return show_present(home, json);
}

const struct command command_keys = {
    .name = "keys",
    .usage = "keys init | show | export | rotate | seal | unseal [--passphrase-fd N] [--json]",
    .help = "The key of this host, which vouches for the keys of its runs.\n\n"
	    "  init      make it, when there is none; the first run does the same\n"
	    "  show      its fingerprint, and as notes have it (--json: assure.key/1)\n"
	    "  export    what a verifier elsewhere needs: assure verify --key FILE\n"
	    "  rotate    make another, which the present one vouches for in the host log; the\n"
	    "            old one is kept as keys/<fingerprint>.old\n"
	    "  seal      with a passphrase, which each run asks for before its command begins\n"
	    "  unseal    keep it as it is again\n\n"
	    "  --passphrase-fd N   read the passphrase there, instead of asking on the terminal\n\n"
	    "It lies in the state folder, and is refused when others could use it.\n",
    .run = run,
};
