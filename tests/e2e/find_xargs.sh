#!/usr/bin/env bash
# timeout: 120
# Programs that start many others: find -exec, xargs, and both in parallel.
. "$(dirname "$0")/lib.sh"

same_outcome find 'mkdir -p a/b a/c; for i in 1 2 3 4 5 6 7 8 9 10; do echo $i >a/b/$i; done
	find a -type f -exec cp {} {}.copy \; ; find a -name "*.copy" -exec cat {} + | sort -n; find a -type d | sort'
assert_effect --count 10 kind=proc.exec argv.0=cp result.state=ok
assert_effect --count 10 kind=file.create 'path~\.copy$' result.state=ok

same_outcome xargs 'seq 60 | xargs -n 1 touch; ls | wc -l; ls | xargs -n 5 -P 4 rm; ls | wc -l'
assert_effect --count 60 kind=proc.exec argv.0=touch result.state=ok
assert_effect --count 60 kind=file.create 'path~/w/\d+$' result.state=ok
assert_effect --count 60 kind=file.delete 'path~/w/\d+$' result.state=ok

same_outcome odd 'printf "a b\\0c\nd\\0-e\\0" | xargs -0 -I@ touch ./@; ls -b'
assert_effect --count 1 kind=file.create "path=$PWD/odd/w/c
d" result.state=ok
