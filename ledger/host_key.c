#include "ledger/host_key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "sealed_key.h"
#include "store_file.h"

enum { TEXT_SIZE = 2 * ED25519_SEED_SIZE + 1 };

#define KEY_FILE "host.key"
#define NEXT_FILE "next.key"

static const char what[] = "host key";

/* Only its owner may say what a key is: a path that others could change leads to their key. */
static bool is_private(const struct stat *status, mode_t type, const char *path, struct err *err)
{
	if ((status->st_mode & S_IFMT) != type)
		return err_set(err, 0, "%s: %s is not a %s", what, path, type == S_IFREG ? "regular file" : "folder");
	if (status->st_uid != geteuid())
		return err_set(err, 0, "%s: %s belongs to user %u", what, path, (unsigned)status->st_uid);
	if (status->st_mode & (S_IRWXG | S_IRWXO)) {
		err_set(err, 0, "%s: %s can be used by others (mode %04o)", what, path,
			(unsigned)status->st_mode & 07777);
		return err_hint(err, "if nobody did, chmod go= %s; else make a new key: assure keys rotate", path);
	}
	return true;
}

/* The folder, made when it is not there and `create`; -1 with the error. */
static int open_folder(const char *home, bool create, struct err *err)
{
	char path[STORE_PATH_SIZE];
	struct stat status;

	if (!store_path(path, err, home, "keys", NULL))
		return -1;
	if (create && mkdir(path, 0700) != 0 && errno != EEXIST) {
		err_set(err, errno, "%s: cannot make %s", what, path);
		return -1;
	}
	int folder CLEANUP_FD = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder < 0 || fstat(folder, &status) != 0) {
		err_set(err, errno, "%s: %s", what, path);
		return -1;
	}
	return is_private(&status, S_IFDIR, path, err) ? fd_steal(&folder) : -1;
}

/* The file of a key, checked; -1 with the error. */
static int open_key(int folder, const char *name, const char *home, char path[STORE_PATH_SIZE], struct err *err)
{
	struct stat status;
	int fd CLEANUP_FD = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (!store_path(path, err, home, "keys", name, NULL))
		return -1;
	if (fd < 0 || fstat(fd, &status) != 0) {
		err_set(err, errno, "%s: %s", what, path);
		return -1;
	}
	return is_private(&status, S_IFREG, path, err) ? fd_steal(&fd) : -1;
}

static struct ed25519_secret *no_key(const char *path, int number, struct err *err)
{
	err_set(err, number, "%s: %s does not hold a key", what, path);
	err_hint(err, "restore it from a copy, or make a new one: assure keys rotate");
	return NULL;
}

static struct ed25519_secret *open_seal(const struct sealed_key *sealed, struct bytes passphrase, const char *path,
					struct err *err)
{
	uint8_t seed[ED25519_SEED_SIZE];

	if (!passphrase.data) {
		err_set(err, EACCES, "%s: %s is sealed with a passphrase", what, path);
		err_hint(err, "give it on a terminal, or with --passphrase-fd N");
		return NULL;
	}
	if (!sealed_key_open(sealed, passphrase, seed, err))
		return NULL;
	struct ed25519_secret *secret = ed25519_from_seed(seed, err);
	secret_wipe(seed, sizeof(seed));
	if (!secret || memcmp(ed25519_public(secret)->bytes, sealed->public.bytes, ED25519_KEY_SIZE) == 0)
		return secret;
	ed25519_free(secret);
	return no_key(path, 0, err);
}

static struct ed25519_secret *read_key(int folder, const char *name, const char *home, struct bytes passphrase,
				       struct err *err)
{
	uint8_t seed[ED25519_SEED_SIZE];
	char text[SEALED_KEY_TEXT_SIZE + 1], path[STORE_PATH_SIZE];
	struct ed25519_secret *secret = NULL;
	struct sealed_key sealed;
	int fd CLEANUP_FD = open_key(folder, name, home, path, err);

	if (fd < 0)
		return NULL;
	ssize_t size = fd_read_full(fd, text, sizeof(text));
	struct bytes read = {text, size > 0 ? (size_t)size : 0};
	if (size == TEXT_SIZE && text[TEXT_SIZE - 1] == '\n' &&
	    text_hex_parse((struct bytes){text, TEXT_SIZE - 1}, seed, sizeof(seed)))
		secret = ed25519_from_seed(seed, err);
	else if (sealed_key_parse(read, &sealed))
		secret = open_seal(&sealed, passphrase, path, err);
	else
		(void)no_key(path, size < 0 ? errno : 0, err);
	secret_wipe(text, sizeof(text));
	secret_wipe(seed, sizeof(seed));
	return secret;
}

/* Under a name of its own, whole and synced, before it gets the name that counts. */
static bool write_text(int folder, const char *name, struct bytes text, struct err *err)
{
	int fd CLEANUP_FD = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_set(err, errno, "%s: cannot make %s", what, name);
	if (fd_write_full(fd, text.data, text.size) && fsync(fd) == 0)
		return true;
	err_set(err, errno, "%s: cannot write it", what);
	unlinkat(folder, name, 0);
	return false;
}

/* Sealed when there is a passphrase. */
static bool write_key(int folder, const char *name, const struct ed25519_secret *secret, struct bytes passphrase,
		      struct err *err)
{
	uint8_t seed[ED25519_SEED_SIZE];
	CLEANUP_BUF struct buf text = {.limit = SEALED_KEY_TEXT_SIZE};
	bool good = buf_reserve(&text, SEALED_KEY_TEXT_SIZE - 1) != NULL; /* never moved: no copy is left behind */

	ed25519_seed(secret, seed);
	if (good && passphrase.data) {
		good = sealed_key_write(seed, ed25519_public(secret), passphrase, &text, err);
	} else if (good) {
		text_hex(&text, (struct bytes){(const char *)seed, sizeof(seed)});
		buf_append_char(&text, '\n');
	}
	secret_wipe(seed, sizeof(seed));
	good = good && !text.failed && write_text(folder, name, buf_bytes(&text), err);
	if (text.data)
		secret_wipe(text.data, text.size);
	return good || err_is_set(err) || err_set(err, ENOMEM, "%s", what);
}

struct ed25519_secret *host_key_load(const char *home, struct bytes passphrase, struct err *err)
{
	int folder CLEANUP_FD = open_folder(home, false, err);

	return folder < 0 ? NULL : read_key(folder, KEY_FILE, home, passphrase, err);
}

bool host_key_public(const char *home, struct ed25519_key *key, bool *sealed, struct err *err)
{
	char text[SEALED_KEY_TEXT_SIZE + 1], path[STORE_PATH_SIZE];
	struct sealed_key found;
	int folder CLEANUP_FD = open_folder(home, false, err);
	int fd CLEANUP_FD = folder < 0 ? -1 : open_key(folder, KEY_FILE, home, path, err);

	if (fd < 0)
		return false;
	ssize_t size = fd_read_full(fd, text, sizeof(text));
	*sealed = size > 0 && sealed_key_parse((struct bytes){text, (size_t)size}, &found);
	secret_wipe(text, sizeof(text));
	if (*sealed) {
		*key = found.public;
		return true;
	}
	struct ed25519_secret *secret = read_key(folder, KEY_FILE, home, BYTES_NONE, err);
	if (secret)
		*key = *ed25519_public(secret);
	ed25519_free(secret);
	return secret != NULL;
}

bool host_key_reseal(const char *home, const struct ed25519_secret *secret, struct bytes passphrase, struct err *err)
{
	char name[64];
	int folder CLEANUP_FD = open_folder(home, false, err);

	(void)snprintf(name, sizeof(name), "new.%d", (int)getpid());
	if (folder < 0)
		return false;
	(void)unlinkat(folder, name, 0);
	return write_key(folder, name, secret, passphrase, err) &&
	       ((renameat(folder, name, folder, KEY_FILE) == 0 && fsync(folder) == 0) ||
		err_set(err, errno, "%s: cannot replace it", what));
}

struct ed25519_secret *host_key_ensure(const char *home, struct bytes passphrase, bool *made, struct err *err)
{
	char name[64];
	int folder CLEANUP_FD = open_folder(home, true, err);

	*made = false;
	if (folder < 0)
		return NULL;
	if (faccessat(folder, KEY_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return read_key(folder, KEY_FILE, home, passphrase, err);
	struct ed25519_secret *secret = ed25519_generate(err);
	if (!secret)
		return NULL;
	(void)snprintf(name, sizeof(name), "new.%d", (int)getpid());
	(void)unlinkat(folder, name, 0);
	if (!write_key(folder, name, secret, passphrase, err)) {
		ed25519_free(secret);
		return NULL;
	}
	/* Of two that begin at once one makes the key, and both use it. */
	bool linked = fd_place(folder, name, KEY_FILE);
	int number = errno;
	(void)unlinkat(folder, name, 0);
	if (linked && fsync(folder) == 0) {
		*made = true;
		return secret;
	}
	ed25519_free(secret);
	if (!linked && number == EEXIST)
		return read_key(folder, KEY_FILE, home, passphrase, err);
	err_set(err, linked ? errno : number, "%s: cannot make it", what);
	return NULL;
}

bool host_key_stage(const char *home, const struct ed25519_secret *next, struct bytes passphrase, struct err *err)
{
	int folder CLEANUP_FD = open_folder(home, true, err);

	if (folder < 0)
		return false;
	(void)unlinkat(folder, NEXT_FILE, 0);
	return write_key(folder, NEXT_FILE, next, passphrase, err) &&
	       (fsync(folder) == 0 || err_set(err, errno, "%s: cannot keep the next one", what));
}

struct ed25519_secret *host_key_staged(const char *home, struct bytes passphrase)
{
	int folder CLEANUP_FD = open_folder(home, false, NULL);

	return folder < 0 ? NULL : read_key(folder, NEXT_FILE, home, passphrase, NULL);
}

bool host_key_promote(const char *home, struct err *err)
{
	char fingerprint[ED25519_FINGERPRINT_SIZE], old[ED25519_FINGERPRINT_SIZE + 8];
	int folder CLEANUP_FD = open_folder(home, false, err);
	struct ed25519_key present;
	bool sealed, good = folder >= 0;

	/* One that cannot be read has no fingerprint, and is of no use to anybody. */
	if (good && host_key_public(home, &present, &sealed, NULL) && ed25519_fingerprint(&present, fingerprint)) {
		(void)snprintf(old, sizeof(old), "%s.old", fingerprint);
		(void)unlinkat(folder, old, 0);
		good = linkat(folder, KEY_FILE, folder, old, 0) == 0 ||
		       err_set(err, errno, "%s: cannot keep the old one", what);
	}
	return good && ((renameat(folder, NEXT_FILE, folder, KEY_FILE) == 0 && fsync(folder) == 0) ||
			err_set(err, errno, "%s: cannot replace it", what));
}

struct ed25519_secret *host_key_load_named(const char *home, const char *fingerprint, struct bytes passphrase,
					   struct err *err)
{
	char old[ED25519_FINGERPRINT_SIZE + 8], own[ED25519_FINGERPRINT_SIZE];
	int folder CLEANUP_FD = open_folder(home, false, err);
	struct ed25519_key present;
	bool sealed;

	if (folder < 0 || !host_key_public(home, &present, &sealed, err))
		return NULL;
	if (ed25519_fingerprint(&present, own) && strcmp(own, fingerprint) == 0)
		return read_key(folder, KEY_FILE, home, passphrase, err);
	(void)snprintf(old, sizeof(old), "%.64s.old", fingerprint);
	return read_key(folder, old, home, passphrase, err);
}
