#!/bin/sh -eu
# A connection comes in as descriptor 3; nobody in the tree connects.
[ -S /proc/self/fd/3 ]
echo text >&3
echo 'did write 3'
