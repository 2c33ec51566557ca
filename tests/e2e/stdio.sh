#!/usr/bin/env bash
# The agent's descriptors are those that we were given, and nothing of ours is among them.
. "$(dirname "$0")/lib.sh"

head -c 1500000 /dev/urandom >input
traced -- cat <input >output || fail 'cat'
cmp input output || fail 'stdin to stdout changed bytes'
cat input | traced -- cat | cmp - input || fail 'through pipes'
traced -- sh -c 'head -c 1000; echo rest >&2' <input >half 2>err || fail 'head'
assert_eq 1000 "$(stat -c %s half)" 'bytes of stdout'
assert_eq rest "$(cat err)" 'stderr'

# A reader after us finds the offset where the agent left it.
{ traced -- sh -c 'dd bs=10 count=1 status=none' >first && cat >second; } <input
assert_eq 10 "$(stat -c %s first)" 'read by the agent'
assert_eq $((1500000 - 10)) "$(stat -c %s second)" 'left for who comes after'

# stdout closed early: SIGPIPE is the agent's.
traced -- sh -c 'yes' | head -n 1 >/dev/null
statuses=("${PIPESTATUS[@]}")
assert_eq 141 "${statuses[0]}" 'status of a writer whose reader left'

# shellcheck disable=SC2016 # for the inner shell
list='cd /proc/$$/fd && for f in *; do printf "%s %s\n" "$f" "$(readlink "$f" | sed "s/:\[.*//")"; done'
for case in '' '<&-' '3<input' '3<input 7>seven' '5<&0'; do
	eval "run sh -c 'exec 8>native.fds; $list >&8' </dev/null 2>/dev/null >/dev/null $case"
	eval "run \"\$ASSURE\" trace --quiet -- sh -c 'exec 8>native.fds.traced; $list >&8' </dev/null 2>/dev/null >/dev/null $case"
	sed -i 's/native.fds.traced/native.fds/' native.fds.traced
	cmp native.fds native.fds.traced || fail "descriptors with [$case]: $(diff native.fds native.fds.traced)"
done

# All three closed.
run "$ASSURE" trace --quiet -- sh -c 'echo yes >made' <&- >&- 2>&-
assert_eq 'exit 0' "$STATUS" 'status with all three closed'
assert_eq yes "$(cat made)" 'with all three closed'
