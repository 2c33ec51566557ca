#!/usr/bin/env bash
# The first thing of all: a program writes a file, and the run says so.
. "$(dirname "$0")/lib.sh"

run "$ASSURE" trace -- sh -c 'echo x >f' >out 2>err </dev/null
assert_eq 'exit 0' "$STATUS" 'status'
assert_eq x "$(cat f)" 'the file'
assert_eq '' "$(cat out)" 'stdout'
assert_contains "$(cat err)" '^assure: run [0-9A-Z]{4,26} .*exit 0' 'the end-of-run screen'

assert_effect --count 1 kind=file.create "path=$PWD/f" result.state=ok 'process.exe~/(da|ba)?sh$'
assert_effect kind=file.create "path=$PWD/f" schema=assure.effect/1 seq? time? mono_ns? how? 'dev~^\d+:\d+$' \
	"ino=$(stat -c %i f)" 'syscall~^open'
assert_effect --count 1 kind=proc.exec 'path~/sh$' argv.0=sh argv.1=-c 'argv.2=echo x >f' "cwd=$PWD"
assert_effect kind=file.read 'path~/libc\.so' # the default lens is `reads`
assert_effect --none "path=$PWD/other"

# It can be read back in each way.
assert_contains "$(assure runs)" 'sh' 'runs'
assert_contains "$(assure show last)" 'exit 0' 'show'
assert_contains "$(assure tree last)" 'sh' 'tree'
assert_contains "$(assure effects last)" "$PWD/f" 'effects'
assert_contains "$(assure effects last --kind file.create)" "$PWD/f" 'effects --kind'
assert_contains "$(assure effects last --path "$PWD/*")" "$PWD/f" 'effects --path'
assert_eq '' "$(assure effects last --path '/nowhere/*')" 'effects --path of nothing'

# Another lens, a name, and nothing of ours on stderr.
run "$ASSURE" trace --quiet --lens changes --name second -- sh -c 'echo y >>f; echo gone >h; rm h; ! cat absent 2>/dev/null'
assert_eq 'exit 0' "$STATUS" 'status of the second run'
assert_effect --run second --none kind=file.read
assert_effect --run second kind=file.write "path=$PWD/f" result.state=ok 'flags~O_APPEND'
assert_effect --run second kind=file.delete "path=$PWD/h" result.state=ok
assert_effect --none kind=file.create "path=$PWD/f"

# The state is nobody else's.
assert_eq 700 "$(stat -c %a "$ASSURE_HOME")" 'mode of the state folder'
assure rm second || fail 'rm'
if assure show second >/dev/null 2>&1; then fail 'the run is still there after rm'; fi
