/* Mounts that are made and moved by descriptors: none of it is mount(2). */
#include "ev2.h"

#include <linux/mount.h>

static int made_file_system(void)
{
	int context = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);

	if (context < 0)
		skip("fsopen");
	MUST(syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, "size", "1m", 0) == 0);
	MUST(syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0);
	int tree = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV);
	MUST(tree >= 0);
	close(context);
	return tree;
}

int main(void)
{
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_NOSUID};
	struct stat made;

	MUST(mkdir("secret", 0755) == 0 && mkdir("alias", 0755) == 0 && mkdir("d", 0755) == 0);
	private_mounts();
	int fresh = made_file_system();
	MUST(syscall(SYS_move_mount, fresh, "", AT_FDCWD, "d", MOVE_MOUNT_F_EMPTY_PATH) == 0);
	make_file("d/g", "text\n");
	MUST(stat("d/g", &made) == 0);
	did("create d/g d_dev~%u:%u d_ino~%lu", major(made.st_dev), minor(made.st_dev), (unsigned long)made.st_ino);
	int copy = (int)syscall(SYS_open_tree, AT_FDCWD, "secret", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	MUST(copy >= 0);
	MUST(syscall(SYS_mount_setattr, copy, "", AT_EMPTY_PATH, &attributes, sizeof(attributes)) == 0);
	MUST(syscall(SYS_move_mount, copy, "", AT_FDCWD, "alias", MOVE_MOUNT_F_EMPTY_PATH) == 0);
	make_file("alias/f", "text\n");
	MUST(stat("secret/f", &made) == 0);
	did("create secret/f ino~%lu", (unsigned long)made.st_ino);
	return 0;
}
