#include "named.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/note.h"
#include "base/text.h"
#include "command.h"

void named_release(struct named_run *named)
{
	if (named->is_bundle)
		bundle_close(&named->bundle);
}

static bool take_bundle(const char *path, struct named_run *out, bool *malformed, struct err *err)
{
	bool wrong = false;

	out->is_bundle = bundle_open(path, &out->bundle, &wrong, err);
	if (malformed)
		*malformed = wrong;
	if (!out->is_bundle)
		return false;
	memcpy(out->id, out->bundle.run, sizeof(out->id));
	memcpy(out->folder, out->bundle.folder, sizeof(out->folder));
	memcpy(out->home, out->bundle.home, sizeof(out->home));
	return true;
}

bool named_run(const char *text, struct named_run *out, bool *malformed, struct err *err)
{
	static const char ending[] = ".assure";
	struct stat status;
	size_t size = strlen(text);

	*out = (struct named_run){.is_bundle = false};
	if (malformed)
		*malformed = false;
	bool ends = size >= sizeof(ending) && strcmp(text + size - sizeof(ending) + 1, ending) == 0;
	if ((ends || strchr(text, '/')) && stat(text, &status) == 0 && S_ISREG(status.st_mode))
		return take_bundle(text, out, malformed, err);
	if (!strchr(text, '/'))
		return store_home(out->home, sizeof(out->home), false, err) &&
		       run_find(out->home, text, out->id, err) &&
		       (run_folder(out->home, out->id, out->folder, sizeof(out->folder)) ||
			err_set(err, ENAMETOOLONG, "run: %s", text));
	if (!realpath(text, out->folder))
		return errno == ENOENT ? err_set(err, 0, "run: %s: no such run, and no such file", text)
				       : err_set(err, errno, "run: %s", text);
	const char *name = strrchr(out->folder, '/') + 1;
	if (strlen(name) != RUN_ID_SIZE - 1) {
		err_set(err, 0, "run: %s is no folder of a run", text);
		return err_hint(err, "a run's folder is called as the run is: <state>/runs/<RUN>");
	}
	strcpy(out->id, name);
	/* <home>/runs/<RUN> */
	memcpy(out->home, out->folder, (size_t)(name - 1 - out->folder));
	out->home[name - 1 - out->folder] = '\0';
	char *slash = strrchr(out->home, '/');
	if (slash)
		*slash = '\0';
	return true;
}

static bool is_fingerprint(struct bytes text)
{
	uint8_t bytes[DIGEST_SIZE];

	return text_hex_parse(text, bytes, sizeof(bytes));
}

static bool take_key(struct bytes text, char fingerprint[ED25519_FINGERPRINT_SIZE])
{
	struct note_key key;

	if (is_fingerprint(text)) {
		memcpy(fingerprint, text.data, text.size);
		fingerprint[text.size] = '\0';
		return true;
	}
	return note_key_parse(text, &key) && ed25519_fingerprint(&key.key, fingerprint);
}

bool named_key(const char *text, char fingerprint[ED25519_FINGERPRINT_SIZE], struct err *err)
{
	char content[1024];

	if (take_key(bytes_of(text), fingerprint))
		return true;
	ssize_t size = fd_read_file(AT_FDCWD, text, content, sizeof(content));
	if (size < 0)
		err_set(err, errno, "key: %s", text);
	else if (take_key((struct bytes){content, strcspn(content, "\n")}, fingerprint))
		return true;
	else
		err_set(err, 0, "key: %s holds none", text);
	err_exit_status(err, EXIT_USAGE);
	return err_hint(err, "a fingerprint of 64 digits, or a file with one or with what `assure keys export` prints");
}
