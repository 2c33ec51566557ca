/*
 * The files that a run made or wrote, as they are now. Whether one is still as the run left it is shown by what the
 * kernel says of it, never by its name: a name can be given to another file in the meantime.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "attestation_state.h"
#include "base/fd.h"
#include "base/text.h"

enum {
	TRACKED = 1 << 14,
	SLOTS = 2 * TRACKED,
	HASHED = 1024,
	FILE_SIZE = 256 << 20,
	PIECE = 1 << 18,
	PATH_SIZE = 4096,
	NS_PER_SECOND = 1000000000,
};
static const uint64_t whole_size = 1 << 30;

struct file {
	uint64_t device, ino, seq;
	enum record_class class;
	char *path; /* owned, by length: bytes of the agent */
	size_t path_size;
};

struct produced {
	struct file *files; /* owned */
	uint32_t *slots;    /* owned: index + 1, by device and inode */
	size_t count;
	uint64_t dropped, replaced; /* beyond TRACKED; gone, because another file was made with its inode */
};

struct produced *produced_new(struct err *err)
{
	struct produced *produced = calloc(1, sizeof(*produced));

	if (produced) {
		produced->files = calloc(TRACKED, sizeof(*produced->files));
		produced->slots = calloc(SLOTS, sizeof(*produced->slots));
	}
	if (produced && produced->files && produced->slots)
		return produced;
	err_set(err, ENOMEM, "files of the run");
	produced_free(produced);
	return NULL;
}

void produced_free(struct produced *produced)
{
	if (!produced)
		return;
	for (size_t i = 0; i < produced->count; i++)
		free(produced->files[i].path);
	free(produced->files);
	free(produced->slots);
	free(produced);
}

/* ---- through the run ---- */

/* A string member that this house wrote; absent when it is none. */
static struct bytes word(struct bytes object, const char *key)
{
	struct bytes value = jcs_member(object, key);

	return value.size < 2 || value.data[0] != '"' ? BYTES_NONE : (struct bytes){value.data + 1, value.size - 2};
}

static bool take_identity(struct bytes object, uint64_t *device, uint64_t *ino)
{
	struct bytes text = word(object, "dev");
	const char *colon = text.data ? memchr(text.data, ':', text.size) : NULL;
	uint64_t major, minor;

	if (!colon || !text_decimal_parse((struct bytes){text.data, (size_t)(colon - text.data)}, &major) ||
	    !text_decimal_parse((struct bytes){colon + 1, text.size - (size_t)(colon + 1 - text.data)}, &minor) ||
	    major > UINT32_MAX || minor > UINT32_MAX)
		return false;
	*device = makedev((uint32_t)major, (uint32_t)minor);
	return text_decimal_parse(word(object, "ino"), ino);
}

/* The slot of a file, or the free one where it would be. */
static uint32_t *find(const struct produced *produced, uint64_t device, uint64_t ino)
{
	uint64_t hash = (ino ^ device << 32) * 0x9e3779b97f4a7c15;

	for (size_t at = hash >> 40;; at++) {
		uint32_t *slot = &produced->slots[at % SLOTS];
		const struct file *file = *slot ? &produced->files[*slot - 1] : NULL;
		if (!file || (file->device == device && file->ino == ino))
			return slot;
	}
}

static bool set_path(struct file *file, struct bytes path)
{
	char *copy = malloc(path.size + 1);

	if (!copy)
		return false;
	memcpy(copy, path.data, path.size);
	free(file->path);
	file->path = copy;
	file->path_size = path.size;
	return true;
}

/* Where the host sees it, else where the agent does. */
static bool take_path(struct bytes object, struct buf *out)
{
	buf_reset(out);
	return trace_path(object, "host_path", out) || trace_path(object, "path", out);
}

static bool note_written(struct produced *produced, uint64_t seq, const struct record_head *head, struct bytes json)
{
	CLEANUP_BUF struct buf path = {.limit = PATH_SIZE};
	uint64_t device, ino;

	if (!bytes_equal(word(json, "type"), BYTES("file")) || !take_identity(json, &device, &ino) ||
	    !take_path(json, &path))
		return true;
	uint32_t *slot = find(produced, device, ino);
	if (!*slot && produced->count == TRACKED) {
		produced->dropped++;
		return true;
	}
	if (*slot && head->kind == EFFECT_file_create && head->state == RESULT_OK)
		produced->replaced++;
	if (!*slot) {
		produced->files[produced->count++] = (struct file){.device = device, .ino = ino};
		*slot = (uint32_t)produced->count;
	}
	struct file *file = &produced->files[*slot - 1];
	file->seq = seq;
	file->class = claim_effect_class(claim_class_recorded(json), head->how);
	return set_path(file, buf_bytes(&path));
}

static bool move_one(struct produced *produced, struct bytes object, struct bytes path)
{
	uint64_t device, ino;

	if (!take_identity(object, &device, &ino))
		return true;
	uint32_t slot = *find(produced, device, ino);
	return slot == 0 || set_path(&produced->files[slot - 1], path);
}

/* What lies in a folder goes with it. */
static bool move_below(struct produced *produced, struct bytes from, struct bytes to)
{
	for (size_t i = 0; i < produced->count; i++) {
		struct file *file = &produced->files[i];
		struct bytes path = {file->path, file->path_size};
		CLEANUP_BUF struct buf moved = {.limit = 2 * PATH_SIZE};
		if (!bytes_path_below(path, from) || path.size == from.size)
			continue;
		buf_append_bytes(&moved, to);
		buf_append(&moved, path.data + from.size, path.size - from.size);
		if (moved.failed || !set_path(file, buf_bytes(&moved)))
			return false;
	}
	return true;
}

static bool note_renamed(struct produced *produced, struct bytes json)
{
	CLEANUP_BUF struct buf from = {.limit = PATH_SIZE}, to = {.limit = PATH_SIZE};
	struct bytes target = jcs_member(json, "to"), flags = jcs_member(json, "flags");
	static const char exchange[] = "\"RENAME_EXCHANGE\"";
	bool both = flags.data && memmem(flags.data, flags.size, exchange, sizeof(exchange) - 1);

	if (!take_path(json, &from) || !take_path(target, &to))
		return true;
	if (bytes_equal(word(json, "type"), BYTES("dir")))
		return move_below(produced, buf_bytes(&from), buf_bytes(&to));
	return move_one(produced, json, buf_bytes(&to)) && (!both || move_one(produced, target, buf_bytes(&from)));
}

bool produced_note(struct produced *produced, uint64_t seq, const struct record_head *head, struct bytes json)
{
	if (head->state == RESULT_FAILED || head->state == RESULT_REFUSED)
		return true;
	switch (head->kind) {
	case EFFECT_file_create:
	case EFFECT_file_write:
	case EFFECT_file_truncate:
		return note_written(produced, seq, head, json);
	case EFFECT_file_rename:
		return note_renamed(produced, json);
	default:
		return true;
	}
}

/* ---- now ---- */

enum look { LOOK_HASHED, LOOK_GONE, LOOK_CHANGED, LOOK_UNPROVABLE, LOOK_UNREADABLE, LOOK_OVER_LIMIT };

struct looking {
	struct hasher *hasher; /* owned */
	char *piece;           /* owned */
	int64_t latest_ns;     /* a ctime from here on may be one of after the run */
	uint64_t read;         /* bytes in all */
};

/* File systems whose inode times are the kernel's own: elsewhere a server, which may be the agent's, says them. */
static bool keeps_times(int fd)
{
	static const uint32_t known[] = {
	    0xef53 /* ext */,       0x58465342 /* xfs */,     0x9123683e /* btrfs */,    0xf2f52010 /* f2fs */,
	    0x01021994 /* tmpfs */, 0x794c7630 /* overlay */, 0xca451a4e /* bcachefs */, 0x2fc12fc1 /* zfs */,
	};
	struct statfs status;

	if (fstatfs(fd, &status) != 0)
		return false;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if ((uint32_t)status.f_type == known[i])
			return true;
	return false;
}

static bool is_unchanged(int fd, int64_t latest_ns, struct stat *status)
{
	return fstat(fd, status) == 0 &&
	       (int64_t)status->st_ctim.tv_sec * NS_PER_SECOND + status->st_ctim.tv_nsec < latest_ns;
}

/* No more than it had when it was looked at: it may grow for ever. */
static bool hash_content(struct looking *looking, int fd, uint64_t size, struct digest *out)
{
	hasher_begin(looking->hasher);
	for (uint64_t left = size; left > 0;) {
		size_t wanted = left < PIECE ? (size_t)left : PIECE;
		if (fd_read_full(fd, looking->piece, wanted) != (ssize_t)wanted)
			return false;
		hasher_add(looking->hasher, (struct bytes){looking->piece, wanted});
		left -= wanted;
	}
	return hasher_end(looking->hasher, out);
}

static enum look hash_file(struct looking *looking, const struct file *file, struct digest *out)
{
	char path[PATH_SIZE + 1], again[32];
	struct stat status;

	if (file->path_size > PATH_SIZE || memchr(file->path, '\0', file->path_size))
		return LOOK_GONE;
	memcpy(path, file->path, file->path_size);
	path[file->path_size] = '\0';
	/* Looked at before it is opened: a device or a pipe is not touched. */
	int found CLEANUP_FD = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (found < 0)
		return errno == EACCES ? LOOK_UNREADABLE : LOOK_GONE;
	if (fstat(found, &status) != 0 || !S_ISREG(status.st_mode) || status.st_dev != file->device ||
	    status.st_ino != file->ino)
		return LOOK_GONE;
	if (!keeps_times(found))
		return LOOK_UNPROVABLE;
	if (!is_unchanged(found, looking->latest_ns, &status))
		return LOOK_CHANGED;
	uint64_t size = (uint64_t)status.st_size;
	if (size > FILE_SIZE || size > whole_size - looking->read)
		return LOOK_OVER_LIMIT;
	(void)snprintf(again, sizeof(again), "/proc/self/fd/%d", found);
	int fd CLEANUP_FD = open(again, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return LOOK_UNREADABLE;
	looking->read += size;
	if (!hash_content(looking, fd, size, out) || !is_unchanged(fd, looking->latest_ns, &status) ||
	    (uint64_t)status.st_size != size)
		return LOOK_CHANGED;
	return LOOK_HASHED;
}

static void write_subject(struct json *json, const struct file *file, enum record_class weakest,
			  const struct digest *digest)
{
	CLEANUP_BUF struct buf uri = {.limit = 4 * PATH_SIZE}, hex = {.limit = 2 * DIGEST_SIZE};
	struct bytes path = {file->path, file->path_size};

	text_hex(&hex, digest_bytes(digest));
	trace_uri(path, &uri);
	json_begin_object(json, NULL);
	json_begin_object(json, "annotations");
	json_text(json, "class", record_class_name(claim_class(CLAIM_file, claim_weaker(file->class, weakest))));
	json_uint(json, "seq", file->seq);
	json_end_object(json);
	json_begin_object(json, "digest");
	json_word(json, "sha256", buf_bytes(&hex));
	json_end_object(json);
	json_bytes(json, "name", path);
	json_word(json, "uri", buf_bytes(&uri));
	json_end_object(json);
}

static bool look_at_all(const struct produced *produced, struct looking *looking, enum record_class weakest,
			struct json *subjects, uint64_t found[])
{
	for (size_t i = 0; i < produced->count; i++) {
		struct digest digest;
		bool room = found[LOOK_HASHED] < HASHED && subjects->out->size < ATTESTATION_SUBJECTS_SIZE;
		enum look look = room ? hash_file(looking, &produced->files[i], &digest) : LOOK_OVER_LIMIT;
		if (look == LOOK_HASHED)
			write_subject(subjects, &produced->files[i], weakest, &digest);
		found[look]++;
	}
	return !subjects->out->failed;
}

bool produced_hash(struct produced *produced, int64_t end_ns, enum record_class weakest, struct json *subjects,
		   struct produced_counts *counts, struct err *err)
{
	struct looking looking = {.hasher = hasher_new(err), .piece = malloc(PIECE)};
	uint64_t found[LOOK_OVER_LIMIT + 1] = {0};
	struct timespec tick;

	/* A file's time is that of the last tick, so a change may be later than it says, by one. */
	bool good = looking.hasher && looking.piece && clock_getres(CLOCK_REALTIME_COARSE, &tick) == 0;
	if (good) {
		looking.latest_ns = end_ns - (int64_t)tick.tv_sec * NS_PER_SECOND - tick.tv_nsec;
		good = look_at_all(produced, &looking, weakest, subjects, found);
	}
	hasher_free(looking.hasher);
	free(looking.piece);
	*counts = (struct produced_counts){
	    .written = produced->count + produced->dropped + produced->replaced,
	    .hashed = found[LOOK_HASHED],
	    .gone = found[LOOK_GONE] + produced->replaced,
	    .changed = found[LOOK_CHANGED],
	    .unprovable = found[LOOK_UNPROVABLE],
	    .unreadable = found[LOOK_UNREADABLE],
	    .over_limit = found[LOOK_OVER_LIMIT] + produced->dropped,
	};
	return good || err_set(err, ENOMEM, "files of the run");
}
