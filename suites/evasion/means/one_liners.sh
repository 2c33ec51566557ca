#!/bin/sh -eu
# Programs for other things that run what stands in one of their arguments.
awk 'BEGIN { system("echo text >by_awk") }'
echo 'did create by_awk'
find . -maxdepth 1 -name by_awk -exec sh -c 'echo text >by_find' ';'
echo 'did create by_find'
tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec='echo text >by_tar' by_awk
echo 'did create by_tar'
echo x | sed '1e echo text >by_sed' >/dev/null
echo 'did create by_sed'
echo x | xargs -I{} sh -c 'echo text >by_xargs'
echo 'did create by_xargs'
env -S 'sh -c "echo text >by_env"'
echo 'did create by_env'
[ -s by_awk ] && [ -s by_find ] && [ -s by_tar ] && [ -s by_sed ] && [ -s by_xargs ] && [ -s by_env ]
