#!/usr/bin/env bash
# timeout: 240
# Many at once, short-lived ones, and calls from unusual places: each effect is recorded exactly once.
. "$(dirname "$0")/lib.sh"
[ -x "$PROGRAMS/storms_calls" ] || fail 'storms_calls is not built'

# storm WANTED NAME [COUNT]: it prints WANTED, and nothing of the run is missing.
storm() {
	local wanted=$1
	shift
	mkdir "$1-files" && cd "$1-files" || fail "no folder for $1"
	run timeout -s KILL 100 "$ASSURE" trace --quiet --lens changes -- "$PROGRAMS/storms_calls" "$@" >../out 2>../err </dev/null
	cd ..
	assert_eq 'exit 0' "$STATUS" "$* ($(cat err))"
	assert_eq "$wanted" "$(cat out)" "$*"
	assure show last >shown || fail "$*: show"
	! grep -qE 'incomplete|not complete|lost' shown || fail "$*: the run is not complete: $(cat shown)"
}
# recorded_once PATTERN COUNT: as many successful creations, each of another file, and no more.
recorded_once() {
	assert_effect --count "$2" kind=file.create "path~$1" result.state=ok
	/usr/bin/python3 "$here/effects.py" --print path kind=file.create "path~$1" result.state=ok | sort -u >paths
	assert_eq "$2" "$(wc -l <paths)" "different files of $1"
}

storm 2000 brief 2000
if [ "$(assure show last | sed -n 's/^births *//p')" = connector ]; then
	assert_effect --count 2000 kind=proc.exit status.code=7
	assert_effect --count 2001 kind=proc.exit
	assert_eq 2001 "$(/usr/bin/python3 "$here/effects.py" --print process.id kind=proc.exit | sort -u | wc -l)" \
		'processes that ended'
else
	skip_part 'births of processes without effects (there is no proc connector)'
fi

storm 8000 opens 500
recorded_once '/o-[0-9]+-[0-9]+$' 8000
assert_eq 16 "$(/usr/bin/python3 "$here/effects.py" --print process.id kind=file.create 'path~/o-' | sort -u | wc -l)" \
	'processes that made files'

storm 1000 threads 20
recorded_once '/t-[0-9]+-[0-9]+$' 1000
assert_eq 50 "$(/usr/bin/python3 "$here/effects.py" --print process.tid kind=file.create 'path~/t-' | sort -u | wc -l)" \
	'threads that made files'

storm 300 connects 300
assert_effect --count 300 kind=net.connect peer.address=127.0.0.1 result.state!=failed
assert_effect --count 1 kind=net.listen result.state=ok

storm 1 forks 8 # its own; 2^9 - 1 in all
recorded_once '/f-[0-9]+-[0-9]+$' 511
assert_effect --count 511 kind=proc.exit

storm 1 exec 20
assert_effect --count 1 kind=proc.exec argv.0=sh result.state=ok
recorded_once '/by-thread$' 1
agent=$(/usr/bin/python3 "$here/effects.py" --print process.id kind=proc.exec argv.0=sh)
assert_effect --count 1 kind=file.create 'path~/by-thread$' "process.id=$agent"
assert_effect --count 1 kind=proc.exit

storm 200 vfork 200
assert_effect --count 200 kind=proc.exec argv.0=vforked result.state=ok
assert_effect --count 201 kind=proc.exit status.code=0

storm 2 shared
assert_effect --count 1 kind=file.mode 'path~/shared$' result.state=ok
recorded_once '/shared-files/below/in-0-0$' 1

storm 1000 timer 1000
recorded_once '/s-0-[0-9]+$' 1000
assert_effect --none kind=file.create result.state=failed

storm 1000 urgent 1000
recorded_once '/u-0-[0-9]+$' 1000
assert_effect --none kind=file.create result.state=failed
exit 0
