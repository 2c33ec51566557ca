#!/usr/bin/env bash
# The status of the agent is ours: the number, or the very signal.
. "$(dirname "$0")/lib.sh"

printf 'no program\n' >plain
printf '#!/nonexistent/interpreter\n' >broken
printf '#!/bin/sh\nexit 9\n' >script
chmod 755 broken script
mkdir folder

same_status() { # COMMAND…: as env(1), which says 126 and 127 as we do
	run env "$@" >/dev/null 2>native.err </dev/null
	local native=$STATUS
	run "$ASSURE" trace --quiet -- "$@" >/dev/null 2>traced.err </dev/null
	assert_eq "$native" "$STATUS" "status of $* ($(cat traced.err))"
}

for status in 0 1 3 64 125 126 127 128 130 255; do
	same_status sh -c "exit $status"
done
for signal in HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM XCPU SYS; do
	same_status sh -c "kill -$signal \$\$"
done
same_status sh -c 'sh -c "kill -TERM \$\$"; exit 4' # a child's signal is not the agent's
same_status ./script
same_status nonexistent-command
same_status ./nonexistent
same_status ./plain
same_status ./broken
same_status ./folder
same_status ./plain/below
same_status ''

# A process of two threads whose second one ends it, and one that ends before its own child.
same_status /usr/bin/python3 -c 'import os, threading; threading.Thread(target=lambda: os._exit(5)).start(); threading.Event().wait()'
same_status sh -c 'sleep 0.2 & exit 6'

# What the run says of it.
run "$ASSURE" trace --quiet -- sh -c 'exit 3'
assert_contains "$(assure show last)" 'exit 3' 'show of an exit'
run "$ASSURE" trace --quiet -- sh -c 'kill -TERM $$' 2>/dev/null
assert_eq 'signal 15' "$STATUS" 'status'
assert_contains "$(assure show last)" 'TERM' 'show of a signal'
assert_effect kind=proc.exit
