#!/usr/bin/env bash
# Who makes the calls that change something, and what becomes of those who act in other namespaces.
. "$(dirname "$0")/lib.sh"

# shares RUN: "HOW COUNT" for the changes below the working directory, sorted.
shares() {
	"$ASSURE" effects "$1" --path "$PWD/**" --json | /usr/bin/python3 -c '
import collections, json, sys
counts = collections.Counter(json.loads(line)["how"] for line in sys.stdin if "\"kind\":\"proc." not in line)
print(*(f"{how} {count}" for how, count in sorted(counts.items())))'
}

changes='mkdir d && echo x >d/f && mv d/f d/g && chmod 600 d/g && ln d/g d/h && ln -s g d/l && rm d/h d/l d/g && rmdir d'

traced --lens changes -- sh -c "$changes" || fail 'perform: the command failed'
assert_eq 'performed 10' "$(shares last)" 'perform, by default'
traced --lens changes --results perform -- sh -c "$changes" || fail 'perform: the command failed'
assert_eq 'performed 10' "$(shares last)" 'perform'
traced --lens changes --results verify -- sh -c "$changes" || fail 'verify: the command failed'
assert_eq 'verified 10' "$(shares last)" 'verify never acts'
traced --lens changes --results none -- sh -c "$changes" || fail 'none: the command failed'
assert_eq 'observed 10' "$(shares last)" 'none looks at no result'
assert_contains "$("$ASSURE" show last)" 'results +none' 'what was asked is shown'

"$ASSURE" trace --results some -- true 2>err
assert_eq 64 $? 'a word that is none'
assert_contains "$(cat err)" 'perform, verify or none' 'the mistake is named'

assert_contains "$("$ASSURE" trace --lens changes -- sh -c "$changes" 2>&1)" \
	'^assure: results [0-9.]+% performed · [0-9.]+% verified \[(mediated|verifiable)\]$' 'the share of each'

# --- other namespaces -----------------------------------------------------------------------------------------------

if ! unshare -Urm true 2>/dev/null; then
	skip_part 'other namespaces (they cannot be made here)'
	exit 0
fi

# performer COMMAND: with the pid of the performer in $performer, once it has acted.
cat >inside.sh <<'SCRIPT'
mkdir d || exit 1
mount -t tmpfs none d || exit 1
mkdir d/e && echo x >d/e/f || exit 1
rmdir d 2>/dev/null && exit 2
umount d || exit 3
performer=$(pgrep -x assure-perform | tail -n 1)
"$@"
rmdir d || exit 4
SCRIPT

traced --lens changes -- unshare -Urm sh inside.sh true
assert_eq 0 $? 'in other namespaces: mount points are what they are'
assert_eq 'performed' "$(shares last | cut -d' ' -f1)" 'in other namespaces: performed'
assert_effect kind=dir.delete result.errno=EBUSY how=performed "path=$PWD/d"
assert_eq '' "$(pgrep -x assure-perform)" 'performers end'

# shellcheck disable=SC2016 # $performer is the inner shell's
traced --lens changes -- unshare -Urm sh inside.sh sh -c 'kill -9 "$(pgrep -x assure-perform | tail -n 1)" && exit 9; true'
assert_eq 0 $? 'a performer cannot be killed from inside'
assert_effect kind=proc.signal result.state=refused

# Killed from outside, its calls are verified; nothing of the agent is lost.
cat >lost.sh <<'SCRIPT'
mkdir one && touch acted
while [ ! -e killed ]; do sleep 0.02; done
mkdir two && rmdir one two
SCRIPT
traced --lens changes -- unshare -Urm sh lost.sh &
run=$!
for _ in $(seq 500); do [ -e acted ] && break; sleep 0.02; done
kill -9 "$(pgrep -x assure-perform)" || fail 'there is no performer to lose'
touch killed
wait $run
assert_eq 0 $? 'a lost performer does not stop the agent'
assert_effect kind=dir.create result.state=ok "path=$PWD/two"
assert_eq '' "$(ls -d one two 2>/dev/null)" 'all of it was done'
