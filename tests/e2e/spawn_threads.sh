#!/usr/bin/env bash
# timeout: 120
# posix_spawn from eight threads at once, 800 programs, and the same from a process with one thread.
. "$(dirname "$0")/lib.sh"
[ -x "$PROGRAMS/spawn_threads" ] || fail 'spawn_threads is not built'

assert_eq 800 "$(traced -- "$PROGRAMS/spawn_threads" 8 100 true)" 'programs that ended well'
assert_effect --count 800 kind=proc.exec argv.0=true result.state=ok
assert_effect --count 801 kind=proc.exit # and the one that spawned them

assert_eq 100 "$(traced -- "$PROGRAMS/spawn_threads" 1 100 true)" 'from one thread'
assert_effect --count 100 kind=proc.exec argv.0=true result.state=ok
# Along PATH each folder before the one that has it fails first.
assert_effect --at-least 100 kind=proc.exec argv.0=true result.state=failed result.errno=ENOENT

# A program that is not there: an error each time, and nothing stays behind.
assert_eq 0 "$(traced -- "$PROGRAMS/spawn_threads" 8 20 nonexistent-command)" 'missing programs'
