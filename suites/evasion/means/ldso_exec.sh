#!/bin/sh -eu
# The dynamic loader is run, with the program as its argument.
loader=/lib64/ld-linux-x86-64.so.2
[ -x $loader ] || { echo "no $loader" >&2; exit 77; }
$loader /bin/sh -c 'echo text >f'
echo "did exec program=$(readlink -f /bin/sh)"
echo 'did create f'
