#!/usr/bin/env bash
# timeout: 120
# Many short pipelines: each gives its output, none hangs, every program start is there.
. "$(dirname "$0")/lib.sh"

same_outcome loop 'i=0; while [ $i -lt 100 ]; do sh -c "echo abc | cat | cat"; i=$((i + 1)); done'
assert_eq 100 "$(grep -c '^abc$' loop/out)" 'lines'
assert_effect --count 200 kind=proc.exec argv.0=cat result.state=ok
assert_effect --count 100 kind=proc.exec argv.0=sh 'argv.2=echo abc | cat | cat'

# A run for each.
for _ in $(seq 20); do
	assert_eq abc "$(traced -- sh -c 'echo abc | cat | cat')" 'a run of its own'
done

# Wide: sixteen at once.
same_outcome wide 'for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do (echo $i | cat >f$i) & done; wait; cat f* | sort -n'
assert_effect --count 16 kind=file.create 'path~/f\d+$' result.state=ok
