#!/bin/sh -eu
# Every namespace that unshare(1) can make, with an identity of root in it; /mnt is another one there.
unshare -Urmnpiuf true 2>/dev/null || { echo 'unshare -Urmnpiuf: not here' >&2; exit 77; }
# shellcheck disable=SC2016 # for the inner shell
unshare -Urmnpiuf sh -euc '
	mount -t tmpfs evasion /mnt
	echo text >/mnt/x
	echo text >f
	echo "did create /mnt/x mnt_ino=$(stat -c %i /mnt/x) mnt_dev~$(stat -c %Hd:%Ld /mnt/x)"'
[ ! -e /mnt/x ]
echo 'did create f'
