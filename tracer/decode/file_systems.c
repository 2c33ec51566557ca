#include "file_systems.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "location.h"

enum { CACHE_ENTRIES = 64 };

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif
#ifndef PID_FS_MAGIC
#define PID_FS_MAGIC 0x50494446
#endif
#ifndef MQUEUE_MAGIC
#define MQUEUE_MAGIC 0x19800202
#endif
#ifndef ZFS_SUPER_MAGIC
#define ZFS_SUPER_MAGIC 0x2fc12fc1
#endif
#ifndef BCACHEFS_SUPER_MAGIC
#define BCACHEFS_SUPER_MAGIC 0xca451a4e
#endif

struct entry {
	bool used;
	uint64_t generation;
	uint64_t device;
	struct file_system about;
};

struct path_cache {
	struct entry entries[CACHE_ENTRIES];
	struct location_near near;
};

struct location_near *location_near(struct path_cache *cache)
{
	return &cache->near;
}

struct path_cache *path_cache_new(void)
{
	return calloc(1, sizeof(struct path_cache));
}

void path_cache_free(struct path_cache *cache)
{
	free(cache);
}

/* A closed list: whatever is not on it may be served by another process, which may be one that waits for us. */
static const struct {
	unsigned long magic;
	struct file_system about;
} known[] = {
    {EXT4_SUPER_MAGIC, {.local = true}},
    {XFS_SUPER_MAGIC, {.local = true}},
    {BTRFS_SUPER_MAGIC, {.local = true}},
    {F2FS_SUPER_MAGIC, {.local = true}},
    {ZFS_SUPER_MAGIC, {.local = true}},
    {BCACHEFS_SUPER_MAGIC, {.local = true}},
    {TMPFS_MAGIC, {.local = true}},
    {RAMFS_MAGIC, {.local = true}},
    {HUGETLBFS_MAGIC, {.local = true}},
    {OVERLAYFS_SUPER_MAGIC, {.local = true}},
    {SQUASHFS_MAGIC, {.local = true}},
    {EROFS_SUPER_MAGIC_V1, {.local = true}},
    {MSDOS_SUPER_MAGIC, {.local = true}},
    {ISOFS_SUPER_MAGIC, {.local = true}},
    {NSFS_MAGIC, {.local = true, .kernel = true}},
    {PID_FS_MAGIC, {.local = true, .kernel = true}},
    {MQUEUE_MAGIC, {.local = true}},
    {BPF_FS_MAGIC, {.local = true, .kernel = true}},
    {SECURITYFS_MAGIC, {.local = true, .kernel = true}},
    {BINFMTFS_MAGIC, {.local = true, .kernel = true}},
    {ANON_INODE_FS_MAGIC, {.local = true, .kernel = true}},
    {DEVPTS_SUPER_MAGIC, {.local = true, .kernel = true}},
    {PROC_SUPER_MAGIC, {.local = true, .kernel = true, .procfs = true}},
    {SYSFS_MAGIC, {.local = true, .kernel = true}},
    {CGROUP_SUPER_MAGIC, {.local = true, .kernel = true}},
    {CGROUP2_SUPER_MAGIC, {.local = true, .kernel = true}},
};

static struct file_system look_up_descriptor(int descriptor)
{
	struct statfs about;

	if (fstatfs(descriptor, &about) != 0)
		return (struct file_system){0};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if ((unsigned long)about.f_type == known[i].magic)
			return known[i].about;
	return (struct file_system){0};
}

static struct file_system look_up(int directory, const char *name)
{
	/* The object may be a mount point: its file system is not its directory's. */
	int object CLEANUP_FD = *name ? openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC) : -1;

	return look_up_descriptor(*name ? object : directory);
}

bool path_is_ordinary(int descriptor)
{
	struct file_system about = look_up_descriptor(descriptor);

	return about.local && !about.kernel;
}

struct file_system file_system_of(struct path_cache *cache, const struct target *target, int directory,
				  const char *name, const struct statx *status)
{
	uint64_t device = makedev(status->stx_dev_major, status->stx_dev_minor);
	struct entry *entry = &cache->entries[device % CACHE_ENTRIES];

	/* Device numbers of unmounted file systems are given out again, so a change of mounts voids the entry. */
	if (!entry->used || entry->device != device || entry->generation != target->generation)
		*entry = (struct entry){true, target->generation, device, look_up(directory, name)};
	return entry->about;
}
