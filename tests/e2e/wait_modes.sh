#!/usr/bin/env bash
# What happens when the agent has ended and something that it started has not.
. "$(dirname "$0")/lib.sh"

now() { date +%s%N; }
took() { echo $((($(now) - start) / 1000000)); }

# The default waits, for the double-forked too.
start=$(now)
traced -- sh -c '(sleep 1; echo late >late) & echo main' >out || fail 'status'
[ -e late ] || fail 'we returned before the tree was empty'
assert_eq main "$(cat out)" 'stdout'
assert_effect kind=file.create "path=$PWD/late" result.state=ok
rm late
traced --wait tree -- setsid -f sh -c 'sleep 1; echo late >late' || fail 'status'
[ -e late ] || fail 'we did not wait for a session of its own'
assert_effect kind=file.create "path=$PWD/late" result.state=ok

# The agent's status is the main one's.
run "$ASSURE" trace --quiet -- sh -c '(sleep 0.3; exit 9) & exit 4'
assert_eq 'exit 4' "$STATUS" 'status'

# After two seconds we say for whom we wait.
"$ASSURE" trace -- sh -c 'sleep 3.5 & exit 0' 2>err
assert_contains "$(cat err)" 'sleep' 'the note on who is still alive'
[ "$(grep -c 'sleep' err)" -le 3 ] || fail "the note is repeated: $(cat err)"

# --wait main does not wait, and does not leave a process whose calls nobody answers.
start=$(now)
run "$ASSURE" trace --wait main -- sh -c 'sleep 30 & echo $! >pid; exit 5' 2>err
assert_eq 'exit 5' "$STATUS" 'status with --wait main'
[ "$(took)" -lt 10000 ] || fail "--wait main took $(took) ms"
pid=$(cat pid)
for _ in $(seq 30); do
	[ -e "/proc/$pid" ] || break
	sleep 0.1
done
if [ -e "/proc/$pid" ]; then
	kill -KILL "$pid"
	assert_contains "$(cat err)" "sleep|$pid" 'what --wait main left is neither ended nor named'
fi

# The tree ends while the guardian is about to tell the monitor that nobody waits for it any more.
for i in $(seq 60); do
	traced --wait main -- sh -c 'true & exit 0' || fail "round $i: the command ended with 0, and assure with $?"
done
