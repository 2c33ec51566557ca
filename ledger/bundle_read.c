/*
 * Unpacking a bundle. Its header says what is in it, and must be in canonical form: there is one bundle of a run.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/jcs.h"
#include "base/text.h"
#include "bundle_state.h"

enum { PIECE = 1 << 18 };

static const char what[] = "bundle";

struct header {
	struct part parts[BUNDLE_PARTS];
	size_t count, size; /* `size`: with its line end */
	char run[RUN_ID_SIZE];
};

bool bundle_is(const char *path)
{
	static const char start[] = "{\"parts\":[{\"name\":\"run.sqlite\",";
	char text[sizeof(start)];
	int fd CLEANUP_FD = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat status;

	return fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	       fd_read_full(fd, text, sizeof(start) - 1) == (ssize_t)sizeof(start) - 1 &&
	       memcmp(text, start, sizeof(start) - 1) == 0;
}

static bool malformed(const char *why, struct err *err)
{
	return err_set(err, 0, "%s: %s", what, why);
}

static struct bytes unquoted(struct bytes value)
{
	return value.size < 2 ? BYTES_NONE : (struct bytes){value.data + 1, value.size - 2};
}

static bool is_part(struct bytes object, enum bundle_part which)
{
	return bytes_equal(unquoted(jcs_member(object, "name")), bytes_of(bundle_part_name(which)));
}

/* {"name":…,"sha256":…,"size":N} */
static bool take_part(struct bytes object, enum bundle_part which, struct part *out)
{
	out->which = which;
	return digest_parse(unquoted(jcs_member(object, "sha256")), &out->digest) &&
	       text_decimal_parse(jcs_member(object, "size"), &out->size);
}

static bool parse_header(struct bytes text, struct header *out)
{
	struct bytes parts = jcs_member(text, "parts"), run = unquoted(jcs_member(text, "run"));

	if (!jcs_is_canonical(text) || parts.size < 2 || parts.data[0] != '[' || run.size != RUN_ID_SIZE - 1 ||
	    !bytes_equal(unquoted(jcs_member(text, "schema")), BYTES("assure.bundle/1")))
		return false;
	memcpy(out->run, run.data, run.size);
	out->run[run.size] = '\0';
	struct bytes rest = parts, one;
	unsigned which = 0;
	while (jcs_element(&rest, &one)) {
		/* In their order; the first two are always there. */
		while (which < BUNDLE_PARTS && !is_part(one, (enum bundle_part)which))
			which++;
		if (which == BUNDLE_PARTS || !take_part(one, (enum bundle_part)which++, &out->parts[out->count++]))
			return false;
	}
	CLEANUP_BUF struct buf again = {.limit = BUNDLE_HEADER_LIMIT};
	bundle_header(&again, out->run, out->parts, out->count);
	return out->count >= 2 && out->parts[1].which == BUNDLE_SEAL && bytes_equal(buf_bytes(&again), text) &&
	       store_is_run_id(out->run);
}

static bool read_header(int fd, struct header *out, struct err *err)
{
	char text[BUNDLE_HEADER_LIMIT];
	ssize_t size = pread(fd, text, sizeof(text), 0);
	const char *end = size > 0 ? memchr(text, '\n', (size_t)size) : NULL;

	*out = (struct header){.count = 0};
	if (size < 0)
		return err_set(err, errno, "%s", what);
	if (!end || !parse_header((struct bytes){text, (size_t)(end - text)}, out))
		return malformed("its first line is not that of a bundle", err);
	out->size = (size_t)(end - text) + 1;
	return lseek(fd, (off_t)out->size, SEEK_SET) >= 0 || err_set(err, errno, "%s", what);
}

/* Copy so many bytes, and hash them on the way. `out` may be -1. */
static bool copy_part(int from, int to, char *kept, const struct part *part, struct hasher *hasher, struct err *err)
{
	char *piece = malloc(PIECE);
	struct digest found;
	uint64_t left = part->size;
	bool good = piece != NULL;

	hasher_begin(hasher);
	while (good && left > 0) {
		size_t wanted = left < PIECE ? (size_t)left : PIECE;
		ssize_t got = fd_read_full(from, piece, wanted);
		good = got == (ssize_t)wanted;
		if (!good) {
			got < 0 ? err_set(err, errno, "%s", what) : malformed("it ends early", err);
			break;
		}
		hasher_add(hasher, (struct bytes){piece, wanted});
		if (kept)
			memcpy(kept + (part->size - left), piece, wanted);
		else if (!fd_write_full(to, piece, wanted))
			good = err_set(err, errno, "%s: unpacking", what);
		left -= wanted;
	}
	free(piece);
	if (!good)
		return err_set(err, ENOMEM, "%s", what);
	return (hasher_end(hasher, &found) && digest_equal(&found, &part->digest)) ||
	       malformed("a part is not what its first line says", err);
}

static bool unpack_file(int from, const char *folder, const char *name, const struct part *part, struct hasher *hasher,
			struct err *err)
{
	char path[STORE_PATH_SIZE];

	if (!store_path(path, err, folder, name, NULL))
		return false;
	int fd CLEANUP_FD = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(err, errno, "%s: cannot make %s", what, path);
	return copy_part(from, fd, NULL, part, hasher, err);
}

static bool unpack_text(int from, const struct part *part, size_t limit, char **out, size_t *size,
			struct hasher *hasher, struct err *err)
{
	if (part->size > limit)
		return malformed("a part of it is too long", err);
	*out = malloc(part->size + 1);
	*size = part->size;
	return (*out || err_set(err, ENOMEM, "%s", what)) && copy_part(from, -1, *out, part, hasher, err);
}

static bool unpack(int fd, const struct header *header, struct bundle *out, struct err *err)
{
	struct hasher *hasher = hasher_new(err);
	char byte;
	bool good = hasher && unpack_file(fd, out->folder, STORE_FILE, &header->parts[0], hasher, err) &&
		    unpack_file(fd, out->folder, STORE_SEAL, &header->parts[1], hasher, err);

	for (size_t i = 2; good && i < header->count; i++)
		good =
		    header->parts[i].which == BUNDLE_LOG
			? unpack_text(fd, &header->parts[i], BUNDLE_LOG_LIMIT, &out->log, &out->log_size, hasher, err)
			: unpack_text(fd, &header->parts[i], BUNDLE_REDACTION_LIMIT, &out->redaction,
				      &out->redaction_size, hasher, err);
	if (good && read(fd, &byte, 1) != 0)
		good = malformed("something stands behind its last part", err);
	hasher_free(hasher);
	return good;
}

bool stage_make(char *out, size_t size, struct err *err)
{
	const char *place = getenv("TMPDIR");
	int used = snprintf(out, size, "%s/assure-bundle-XXXXXX", place && place[0] == '/' ? place : "/tmp");

	if (used > 0 && (size_t)used < size && mkdtemp(out))
		return true;
	err_set(err, errno, "%s: a place for its parts: %s", what, out);
	out[0] = '\0';
	return false;
}

static bool make_place(struct bundle *out, struct err *err)
{
	char runs[STORE_PATH_SIZE];

	if (!stage_make(out->home, sizeof(out->home), err))
		return false;
	if (!store_path(runs, err, out->home, "runs", NULL) ||
	    !run_folder(out->home, out->run, out->folder, sizeof(out->folder)))
		return false;
	return (mkdir(runs, 0700) == 0 && mkdir(out->folder, 0700) == 0) || err_set(err, errno, "%s: %s", what, runs);
}

bool bundle_open(const char *path, struct bundle *out, bool *is_malformed, struct err *err)
{
	struct header header;
	struct err cause = {.number = 0};
	int fd CLEANUP_FD = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	*out = (struct bundle){.log = NULL};
	*is_malformed = false;
	if (fd < 0)
		return err_set(err, errno, "%s: %s", what, path);
	bool good = read_header(fd, &header, &cause);
	if (good) {
		memcpy(out->run, header.run, sizeof(header.run));
		good = make_place(out, &cause) && unpack(fd, &header, out, &cause);
	}
	if (good)
		return true;
	*is_malformed = cause.number == 0;
	bundle_close(out);
	if (err && !err_is_set(err))
		*err = cause;
	return err_context(err, "%s", path);
}

void bundle_close(struct bundle *bundle)
{
	char runs[STORE_PATH_SIZE];

	free(bundle->log);
	free(bundle->redaction);
	bundle->log = bundle->redaction = NULL;
	if (!bundle->home[0])
		return;
	if (bundle->folder[0])
		(void)store_remove_folder(bundle->folder, NULL);
	if (store_path(runs, NULL, bundle->home, "runs", NULL))
		(void)rmdir(runs);
	(void)rmdir(bundle->home);
	bundle->home[0] = '\0';
}

bool bundle_import(const struct bundle *bundle, const char *home, struct err *err)
{
	static const char *const files[] = {STORE_FILE, STORE_SEAL};
	char to[STORE_PATH_SIZE], runs[STORE_PATH_SIZE], path[STORE_PATH_SIZE];

	if (bundle->redaction) {
		err_set(err, 0, "import: what was withheld from this bundle is vouched for in the bundle alone");
		return err_hint(err, "read it where it is: assure show FILE");
	}
	if (!store_path(runs, err, home, "runs", NULL) || !store_path(to, err, runs, bundle->run, NULL))
		return false;
	if (mkdir(runs, 0700) != 0 && errno != EEXIST)
		return err_set(err, errno, "import: %s", runs);
	if (mkdir(to, 0700) != 0) {
		int number = errno;
		err_set(err, number, "import: %s", to);
		return number == EEXIST && err_hint(err, "this run is here already: assure show %s", bundle->run);
	}
	bool good = true;
	for (size_t i = 0; good && i < 2; i++) {
		good = store_path(path, err, bundle->folder, files[i], NULL);
		int from CLEANUP_FD = good ? open(path, O_RDONLY | O_CLOEXEC) : -1;
		good = good && store_path(path, err, to, files[i], NULL);
		int out CLEANUP_FD = good ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
		good = good && from >= 0 && out >= 0 && fd_copy(from, out) && fsync(out) == 0;
		if (!good)
			err_set(err, errno, "import: %s", path);
	}
	int lock CLEANUP_FD = good && store_path(path, err, to, STORE_LOCK, NULL)
				  ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)
				  : -1;
	if (good && lock < 0)
		good = err_set(err, errno, "import: %s", path);
	if (!good)
		(void)store_remove_folder(to, NULL);
	return good;
}
