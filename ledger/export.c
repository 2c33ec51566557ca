/*
 * What exports that the host signs share.
 */
#include <errno.h>

#include "base/envelope.h"
#include "base/note.h"
#include "export_state.h"
#include "ledger/host_key.h"
#include "ledger/host_log.h"
#include "store_file.h"

bool export_check(const struct export_request *request, const char *what, struct verification *out, struct err *err)
{
	char folder[STORE_PATH_SIZE];

	if (!run_folder(request->home, request->run, folder, sizeof(folder)))
		return err_set(err, ENAMETOOLONG, "%s", what);
	const struct verify_request asked = {.folder = folder, .run = request->run, .home = request->home};
	verify_run(&asked, out);
	if (out->verdict == VERDICT_TAMPERED || out->verdict == VERDICT_UNREADABLE) {
		err_set(err, 0, "%s: the run cannot be vouched for: %s", what, out->why);
		return err_hint(err, "see what is wrong with it: assure verify %s", request->run);
	}
	if (!out->sealed) {
		err_set(err, 0, "%s: only a sealed run can be exported", what);
		return err_hint(err, "close it first: assure recover %s", request->run);
	}
	return true;
}

struct ed25519_secret *export_key(const struct export_request *request, const char *what,
				  const struct verification *found, struct err *err)
{
	struct ed25519_secret *host = host_key_load_named(request->key_home, found->host_key, request->passphrase, err);

	if (!host)
		err_context(err, "%s: it is signed by the key of the host that recorded the run", what);
	return host;
}

bool export_sign(const char *type, struct bytes payload, const struct ed25519_secret *host, struct buf *out,
		 struct err *err)
{
	CLEANUP_BUF struct buf id = {.limit = 256};
	char name[HOST_NAME_SIZE];
	struct note_key key = {.algorithm = NOTE_ED25519, .key = *ed25519_public(host)};

	if (!host_name_of(&key.key, name))
		return err_set(err, 0, "export: cannot hash");
	key.name = bytes_of(name);
	note_key_format(&key, &id);
	if (!dsse_sign(bytes_of(type), payload, buf_bytes(&id), host, out, err))
		return false;
	buf_append_char(out, '\n');
	return !out->failed || err_set(err, ENOMEM, "export");
}
