/*
 * SHA-256 of executed images (--hash images), remembered by what the file system says identifies the content.
 */
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "state.h"

/* Larger files are not hashed, and the effect says so: a sparse one costs its owner nothing, and us minutes. */
enum { REMEMBERED = 256, PIECE = 256 << 10, SIZE_LIMIT = 1 << 30 };

struct remembered {
	bool used;
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed; /* ctime: cannot be set back by its owner, unlike mtime */
	char hexadecimal[65];
};

struct image_hashes {
	pthread_mutex_t lock;
	struct remembered entries[REMEMBERED];
};

struct image_hashes *image_hashes_new(void)
{
	struct image_hashes *hashes = calloc(1, sizeof(*hashes));

	if (hashes)
		pthread_mutex_init(&hashes->lock, NULL);
	return hashes;
}

static bool digest_file(const struct monitor *monitor, int fd, char hexadecimal[65])
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned size = 0;
	char *piece = malloc(PIECE);
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	bool done = piece && context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;
	ssize_t got = 0;

	/* The program stands still meanwhile, but must not be able to make the end of a run stand still. */
	while (done && !atomic_load(&monitor->stopping) && (got = fd_read_full(fd, piece, PIECE)) > 0)
		done = EVP_DigestUpdate(context, piece, (size_t)got) == 1;
	done = done && got == 0 && EVP_DigestFinal_ex(context, digest, &size) == 1 && size == 32;
	EVP_MD_CTX_free(context);
	free(piece);
	if (!done || atomic_load(&monitor->stopping))
		return false;
	struct buf text CLEANUP_BUF = {.limit = 128};
	text_hex(&text, (struct bytes){(const char *)digest, size});
	memcpy(hexadecimal, text.data, 65);
	return true;
}

static bool same(const struct remembered *entry, const struct stat *status)
{
	return entry->used && entry->device == status->st_dev && entry->inode == status->st_ino &&
	       entry->size == status->st_size && entry->changed.tv_sec == status->st_ctim.tv_sec &&
	       entry->changed.tv_nsec == status->st_ctim.tv_nsec;
}

bool image_hash(struct monitor *monitor, struct decoder *decoder, int task, struct effect_image *image)
{
	struct image_hashes *hashes = monitor->hashes;
	struct stat status;
	/* Through the process's own link: these are the bytes that were mapped, whatever the name leads to now. */
	int fd CLEANUP_FD = openat(task, "exe", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &status) != 0 || status.st_size > SIZE_LIMIT)
		return false;
	struct remembered *entry = &hashes->entries[(status.st_ino ^ status.st_dev) % REMEMBERED];
	struct remembered found = {
	    .device = status.st_dev, .inode = status.st_ino, .size = status.st_size, .changed = status.st_ctim};
	pthread_mutex_lock(&hashes->lock);
	if (same(entry, &status))
		found = *entry;
	pthread_mutex_unlock(&hashes->lock);
	/* Outside the lock: other programs need not wait for this one. */
	if (!found.used) {
		found.used = digest_file(monitor, fd, found.hexadecimal);
		if (!found.used)
			return false;
		pthread_mutex_lock(&hashes->lock);
		*entry = found;
		pthread_mutex_unlock(&hashes->lock);
	}
	image->sha256 = arena_copy(&decoder->arena, bytes_of(found.hexadecimal));
	return true;
}
