#!/bin/sh -eu
# A file becomes a disk, and the disk a folder: what is written there is written to the file.
[ "$(id -u)" = 0 ] || { echo 'loop devices: only root has them' >&2; exit 77; }
for tool in mke2fs losetup unshare; do
	command -v $tool >/dev/null || { echo "$tool: not here" >&2; exit 77; }
done
losetup -f >/dev/null 2>&1 || { echo 'no loop device is free' >&2; exit 77; }
truncate -s 4M img
mke2fs -q -F -O ^has_journal img >/dev/null
mkdir mnt
# shellcheck disable=SC2016 # for the inner shell
unshare -m sh -euc '
	mount -o loop img mnt
	echo text >mnt/f
	device=$(findmnt -n -o SOURCE mnt)
	echo "did create mnt/f loop_device~$device loop_dev~$((0x$(stat -c %t "$device"))):$((0x$(stat -c %T "$device")))"
	umount mnt'
grep -q text img
echo 'did mount img'
