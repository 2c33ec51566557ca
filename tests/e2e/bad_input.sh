#!/usr/bin/env bash
# timeout: 120
# What cannot work ends at once, with one clear line, and leaves nothing half-written.
. "$(dirname "$0")/lib.sh"

# refused STATUS PATTERN WHAT COMMAND…: one line on stderr that matches, nothing on stdout.
refused() {
	local status=$1 pattern=$2 what=$3
	shift 3
	run timeout -s KILL 20 "$@" >out 2>err </dev/null
	assert_eq "exit $status" "$STATUS" "$what ($(cat err))"
	assert_eq '' "$(cat out)" "$what: stdout"
	assert_one_line "$(cat err)" "$what"
	assert_contains "$(cat err)" '^assure: ' "$what"
	assert_contains "$(cat err)" "$pattern" "$what"
}
# refused_somehow: as refused, with any status but 0 and none of a signal.
refused_somehow() {
	local pattern=$1 what=$2
	shift 2
	run timeout -s KILL 20 "$@" >out 2>err </dev/null
	case $STATUS in
	'exit 0' | 'exit 137' | signal*) fail "$what: $STATUS" ;;
	esac
	assert_one_line "$(cat err)" "$what"
	assert_contains "$(cat err)" "$pattern" "$what"
}

# --- the command line
for arguments in 'nonsense' 'trace --nonsense -- true' 'trace --lens nonsense -- true' 'trace' 'trace --' 'show' \
	'trace --wait -- true' 'effects last --pid x' 'effects last --kind nonsense' 'rm'; do
	# shellcheck disable=SC2086 # words
	run "$ASSURE" $arguments >out 2>err </dev/null
	assert_eq 'exit 64' "$STATUS" "assure $arguments ($(cat err))"
	[ -s err ] || fail "assure $arguments: nothing was said"
done

# --- the command
printf 'no program\n' >plain
printf '#!/nonexistent/interpreter\n' >broken
chmod 755 broken
mkdir folder
refused 127 'nonexistent-command' 'command missing' "$ASSURE" trace --quiet -- nonexistent-command
refused 127 'nonexistent' 'path missing' "$ASSURE" trace --quiet -- ./nonexistent
refused 126 'plain' 'not executable' "$ASSURE" trace --quiet -- ./plain
refused 126 'folder' 'a directory' "$ASSURE" trace --quiet -- ./folder
refused 127 'broken' 'broken #!' "$ASSURE" trace --quiet -- ./broken

# --- large arguments: 2 MB as a command, and too much from within
argument=$(head -c 100000 /dev/zero | tr '\0' x)
many=()
for _ in $(seq 19); do many+=("$argument"); done
assert_eq $((19 * 100000 + 18)) "$(traced -- sh -c 'printf "%s" "$*" | wc -c' sh "${many[@]}")" 'argv of 2 MB'
assert_effect kind=proc.exec argv.0=sh argv.1=-c
same_outcome too-much 'x=$(head -c 130000 /dev/zero | tr "\0" x); y=$x$x
	/bin/echo "$y" 2>/dev/null || echo "status $?"'
assert_effect kind=proc.exec result.state=failed result.errno=E2BIG

# --- the place
mkdir gone
(
	cd gone || exit 1
	rmdir ../gone
	run timeout -s KILL 20 "$ASSURE" trace --quiet -- sh -c 'echo works' >"$origin/out" 2>"$origin/err" </dev/null
	case $STATUS in
	'exit 0') assert_eq works "$(cat "$origin/out")" 'cwd deleted' ;;
	'exit 125') assert_one_line "$(cat "$origin/err")" 'cwd deleted' ;;
	*) fail "cwd deleted: $STATUS $(cat "$origin/err")" ;;
	esac
) || exit 1
assert_eq closed "$(traced -- sh -c 'read -r x || echo closed' <&- 2>/dev/null)" 'stdin closed'

# --- the state folder
echo file >a-file
refused 125 'a-file' 'state in a file' env ASSURE_HOME="$PWD/a-file/state" "$ASSURE" trace --quiet -- touch touched
refused 125 'a-file' 'state is a file' env ASSURE_HOME="$PWD/a-file" "$ASSURE" trace --quiet -- touch touched
refused 125 '/proc/' 'state in procfs' env ASSURE_HOME=/proc/1/nowhere "$ASSURE" trace --quiet -- touch touched
if [ "$IDENTITY" = user ]; then
	mkdir -m 500 closed
	refused 125 'closed' 'state unwritable' env ASSURE_HOME="$PWD/closed/state" "$ASSURE" trace --quiet -- touch touched
fi
[ ! -e touched ] || fail 'the command ran although there was no place for its run'

full='mount -t tmpfs -o size=16k none /mnt && ASSURE_HOME=/mnt/state timeout -s KILL 20 "$ASSURE" trace --quiet -- touch full-touched'
if usable unshare -Urm mount -t tmpfs none /mnt; then
	run unshare -Urm sh -c "$full" >out 2>err </dev/null
	assert_eq 'exit 125' "$STATUS" "state full ($(cat err))"
	assert_one_line "$(cat err)" 'state full'
	[ ! -e full-touched ] || fail 'the command ran although the state folder was full'
	no_proc='mount -t tmpfs none /proc'
	# A sanitizer reads its options and its own name in /proc, and looks for leaks by it: it gets what it reads, and must
	# not look.
	if grep -q __asan_init "$ASSURE"; then
		no_proc+=' && mkdir /proc/self && ln -s "$ASSURE" /proc/self/exe'
		no_proc+=' && printf "ASAN_OPTIONS=%s:detect_leaks=0\0" "${ASAN_OPTIONS:-}" >/proc/self/environ'
	fi
	run unshare -Urm sh -c "$no_proc"' && exec timeout -s KILL 20 "$ASSURE" trace --quiet -- true' >out 2>err </dev/null
	assert_eq 'exit 125' "$STATUS" "no /proc ($(cat err))"
	assert_contains "$(cat err)" '^assure: .*/proc' 'no /proc'
	assert_one_line "$(cat err)" 'no /proc'
else
	skip_part 'a full state folder, and no /proc (there are no user namespaces for us)'
fi

# --- runs
for command in show tree effects rm; do
	refused_somehow 'ZZZZZZ' "$command of an unknown run" "$ASSURE" $command ZZZZZZ
done
refused_somehow 'last|run' 'last of none' env ASSURE_HOME="$PWD/empty" "$ASSURE" show last

store_of_last() {
	grep -rlaE '^SQLite format 3' "$ASSURE_HOME/runs" | grep -vE -- '-(wal|shm)$' | xargs -r ls -t | head -n 1
}
traced --name newer -- true
store=$(store_of_last)
[ -n "$store" ] || fail "there is no SQLite file in $ASSURE_HOME"
sqlite3 "$store" 'PRAGMA user_version=99' >/dev/null || fail 'sqlite3'
refused_somehow '99|newer' 'a run of a newer version' "$ASSURE" show newer
refused_somehow '99|newer' 'effects of a newer version' "$ASSURE" effects newer --json

for damage in 'head -c 3000 /dev/urandom' 'head -c 0 /dev/null' 'head -c 1000 original' 'damage_middle'; do
	rm -rf "${ASSURE_HOME:?}"/*
	traced --name damaged -- true
	store=$(store_of_last)
	sqlite3 "$store" 'PRAGMA wal_checkpoint(TRUNCATE)' >/dev/null || fail 'sqlite3'
	cp "$store" original
	if [ "$damage" = damage_middle ]; then
		size=$(stat -c %s original)
		head -c $((size - 4096 > 0 ? size - 4096 : 0)) /dev/urandom | dd of="$store" bs=4096 seek=1 conv=notrunc status=none
	else
		$damage >"$store.new"
		cat "$store.new" >"$store"
		rm "$store.new"
	fi
	run_folder=$(dirname "$store")
	for command in effects tree show; do
		run timeout -s KILL 20 "$ASSURE" $command "$(basename "$run_folder")" >out 2>err </dev/null
		case $STATUS in
		signal* | 'exit 137' | 'exit 0') fail "$command of a damaged run ($damage): $STATUS" ;;
		esac
		assert_one_line "$(cat err)" "$command of a damaged run ($damage)"
	done
	run timeout -s KILL 20 "$ASSURE" runs >out 2>err </dev/null
	case $STATUS in signal* | 'exit 137') fail "runs with a damaged one ($damage): $STATUS" ;; esac
	# A damaged run does not stand in the way of the next.
	traced -- true || fail 'a run beside a damaged one'
done

# --- assure inside assure: one listener is all that a tree can have
run timeout -s KILL 20 "$ASSURE" trace --quiet -- env ASSURE_HOME="$PWD/inner" "$ASSURE" trace --quiet -- echo inner \
	>out 2>err </dev/null
case $STATUS in
'exit 0') assert_eq inner "$(cat out)" 'assure in assure' ;;
'exit 125')
	assert_one_line "$(cat err)" 'assure in assure'
	assert_contains "$(cat err)" '^assure: ' 'assure in assure'
	;;
*) fail "assure in assure: $STATUS $(cat err)" ;;
esac
exit 0
