#!/usr/bin/env bash
# timeout: 180
# Hosts that give less than usual: what cannot work says so in one line, what can, works.
. "$(dirname "$0")/lib.sh"
[ -x "$PROGRAMS/confined_listener" ] || fail 'confined_listener is not built'

# refused STATUS PATTERN WHAT COMMAND…: one line on stderr that matches, nothing on stdout.
refused() {
	local status=$1 pattern=$2 what=$3
	shift 3
	run timeout -s KILL 30 "$@" >out 2>err </dev/null
	assert_eq "exit $status" "$STATUS" "$what ($(cat err))"
	assert_eq '' "$(cat out)" "$what: stdout"
	assert_one_line "$(cat err)" "$what"
	assert_contains "$(cat err)" '^assure: ' "$what"
	assert_contains "$(cat err)" "$pattern" "$what"
	[ ! -e touched ] || fail "$what: the command ran all the same"
}
works() { # WHAT COMMAND…: which traces `sh agent.sh`
	local what=$1
	shift
	rm -f made
	run timeout -s KILL 60 "$@" >out 2>err </dev/null
	assert_eq 'exit 7' "$STATUS" "$what ($(cat err))"
	assert_eq '' "$(cat err)" "$what: stderr"
	assert_contains "$(cat out)" '^done$' "$what"
	assert_contains "$(assure show last --json)" '"state":"complete","status":\{"code":7\}' "$what"
	assert_effect --count 1 kind=file.create "path=$PWD/made" result.state=ok
	assert_effect --count 1 kind=proc.exit status.code=7
}
cat >agent.sh <<'END'
(setsid sh -c 'sleep 0.2; echo x >made') &
wait
sh -c 'sh -c true'
for i in 1 2 3; do sleep 0.05 & done
wait
ulimit -n
echo done
exit 7
END
traced=("$ASSURE" trace --quiet --)
spaces=(unshare -m)
[ "$IDENTITY" = root ] || spaces=(unshare -Urm)

works 'as usual' "${traced[@]}" sh agent.sh

# --- somebody else listens already, and there can be only one
if usable "$PROGRAMS/confined_listener" true; then
	refused 125 'listener|supervisor' 'a foreign listener' "$PROGRAMS/confined_listener" "${traced[@]}" touch touched
	run "$PROGRAMS/confined_listener" "$ASSURE" doctor >out 2>err
	[ "$STATUS" != 'exit 0' ] || fail "doctor under a foreign listener: $(cat out)"
	assert_contains "$(cat out)" 'supervisor|listener' 'doctor under a foreign listener'
else
	skip_part 'a foreign listener (none can be installed)'
fi

# --- no /proc
if usable "${spaces[@]}" mount -t tmpfs none /mnt; then
	for away in 'umount -l /proc' 'mount -t tmpfs none /proc'; do
		usable "${spaces[@]}" sh -c "$away" || continue
		# shellcheck disable=SC2016 # for the inner shell
		refused 125 '/proc' "no /proc: $away" "${spaces[@]}" sh -c "$away"' && exec "$@"' sh "${traced[@]}" touch touched
		run "${spaces[@]}" sh -c "$away && exec timeout -s KILL 30 \"\$ASSURE\" doctor" >out 2>err </dev/null
		[ "$STATUS" = 'exit 1' ] || fail "doctor without /proc: $STATUS: $(cat out err)"
		assert_contains "$(cat out)" '/proc' 'doctor without /proc'
	done
else
	skip_part 'no /proc, and a full state folder (there are no mount namespaces for us)'
fi

# --- in a network namespace births are told where an ancestor of ours is, to who may go there
network=(unshare -n)
[ "$IDENTITY" = root ] || network=(unshare -Urn)
if usable "${network[@]}" true; then
	births=marks
	if [ "$IDENTITY" = root ]; then
		"${traced[@]}" true </dev/null || fail "trace: $?"
		births=$(assure show last | sed -n 's/^births *//p')
	fi
	works 'another network' "${network[@]}" "${traced[@]}" sh agent.sh
	assert_contains "$(assure show last --json)" "\"births\":\"$births\"" 'another network'
	assert_contains "$(assure show last)" "^births +$births\$" 'another network'
	run "${network[@]}" "$ASSURE" doctor --json >out
	assert_eq 'exit 0' "$STATUS" 'doctor in another network'
	assert_contains "$(cat out)" "\"births\":\"$births\"" 'doctor in another network'
	works 'no connector' env ASSURE_PROBES=connector=missing "${traced[@]}" sh agent.sh
	assert_contains "$(assure show last --json)" '"births":"marks"' 'no connector'
else
	skip_part 'no connector (there are no network namespaces for us)'
fi

# --- few descriptors
for limit in 64 32; do
	works "RLIMIT_NOFILE=$limit" bash -c "ulimit -n $limit; exec \"\$@\"" bash "${traced[@]}" sh agent.sh
	assert_contains "$(cat out)" "^$limit\$" 'the limit is the agent'"'"'s'
	works "RLIMIT_NOFILE=$limit, soft" bash -c "ulimit -S -n $limit; exec \"\$@\"" bash "${traced[@]}" sh agent.sh
	assert_contains "$(cat out)" "^$limit\$" 'the limit is the agent'"'"'s'
done
for limit in 4 5 8 12 16; do
	run timeout -s KILL 60 bash -c "ulimit -n $limit; exec \"\$@\"" bash "${traced[@]}" sh -c 'exit 7' >out 2>err </dev/null
	case $STATUS in
	'exit 7') ;;
	'exit 125') assert_one_line "$(cat err)" "RLIMIT_NOFILE=$limit" ;;
	*) fail "RLIMIT_NOFILE=$limit: $STATUS: $(cat err)" ;;
	esac
done

# --- a disk that is full from the start, or nearly
if usable "${spaces[@]}" mount -t tmpfs none /mnt; then
	for size in 8k 20k 36k 64k 100k; do
		# shellcheck disable=SC2016
		run "${spaces[@]}" sh -c 'mount -t tmpfs -o size='$size' none /mnt && export ASSURE_HOME=/mnt/state &&
			timeout -s KILL 30 "$ASSURE" trace --quiet -- sh -c "echo ran; exit 7"; status=$?
			ls -A /mnt/state/runs >runs.'$size' 2>/dev/null; exit $status' >out 2>err </dev/null
		case $STATUS in
		'exit 7') assert_eq ran "$(cat out)" "a disk of $size" ;;
		'exit 125')
			assert_eq '' "$(cat out)" "a disk of $size"
			assert_one_line "$(cat err)" "a disk of $size"
			assert_contains "$(cat err)" '^assure: .*(No space|full)' "a disk of $size"
			assert_eq '' "$(cat runs.$size)" "a disk of $size: what is left"
			;;
		*) fail "a disk of $size: $STATUS: $(cat err)" ;;
		esac
	done
	[ -z "$(cat runs.8k)" ] || fail 'a disk of 8 KiB was not full'

	# ... and one that fills up under way: the agent goes on, and the run says that it is not complete.
	cat >filler.py <<'END'
import os, sys, time
os.mkdir("many")
for i in range(6000):
    os.mkdir("many/%04d" % i)
if sys.argv[1] == "freed":
    time.sleep(1)
    os.unlink("/mnt/filler")
    time.sleep(1.5)
os.mkdir("many/last")
os._exit(7)
END
	for case in freed full; do
		rm -rf many
		# shellcheck disable=SC2016
		run "${spaces[@]}" sh -c 'mount -t tmpfs -o size=6m none /mnt && head -c 5m /dev/zero >/mnt/filler &&
			export ASSURE_HOME=/mnt/state && timeout -s KILL 120 "$ASSURE" trace -- /usr/bin/python3 filler.py '$case'
			echo $? >status
			"$ASSURE" show last --json >show.json; "$ASSURE" show last >show.txt; "$ASSURE" runs >runs.txt
			"$ASSURE" effects last --json >effects.json' >out 2>err </dev/null
		assert_eq 7 "$(cat status)" "the disk fills up ($case): $(cat err)"
		assert_eq 6001 "$(find many -mindepth 1 -maxdepth 1 | wc -l)" "what the agent did ($case)"
		assert_contains "$(cat show.json)" '"state":"incomplete"' "the disk filled up ($case)"
		assert_contains "$(cat show.json)" '"reason":"[^"]+"' "the disk filled up ($case)"
		assert_contains "$(cat runs.txt)" ' incomplete ' "the disk filled up ($case)"
		assert_contains "$(cat err)" '^assure: .*(incomplete|lost|stored|No space)' "what we said ($case)"
		stored=$(wc -l <effects.json)
		[ "$stored" -gt 100 ] && [ "$stored" -lt 6200 ] || fail "the disk filled up ($case): $stored effects"
		assert_contains "$(cat show.json)" '"gaps":\[\{"code":"store","count":[1-9]' "the gap ($case)"
		assert_contains "$(cat show.txt)" '^ended .*incomplete: [1-9][0-9]* records could not be stored' "the reason ($case)"
		if [ $case = freed ]; then
			assert_contains "$(tail -n 3 effects.json)" 'many/last' 'what came after the gap'
			assert_contains "$(cat show.json)" '"status":\{"code":7\}' 'the end after the gap'
		fi
	done
fi

# --- a state folder that others could have a hand in
mkdir -m 700 real
ln -s real link
mkdir -m 700 open
mkdir -m 700 others
for mode in 777 770 702; do
	chmod $mode open
	refused 125 'open can be written by others' "mode $mode" env ASSURE_HOME="$PWD/open" "${traced[@]}" touch touched
done
refused 125 'link is a symbolic link' 'a link' env ASSURE_HOME="$PWD/link" "${traced[@]}" touch touched
refused 125 'link is a symbolic link' 'a link/' env ASSURE_HOME="$PWD/link/" "${traced[@]}" touch touched
foreign=/usr
if [ "$IDENTITY" = root ]; then
	foreign=$PWD/others
	chown 65534 others
fi
refused 125 "$foreign belongs to user" "somebody else's" env ASSURE_HOME="$foreign" "${traced[@]}" touch touched
for command in runs 'show last' 'rm x' 'gc --keep 1' 'effects last' 'tree last'; do
	# shellcheck disable=SC2086 # words
	refused 1 'open can be written by others' "$command" env ASSURE_HOME="$PWD/open" "$ASSURE" $command
done
assert_eq '' "$(find real open others -mindepth 1)" 'nothing was written there'

# --- where it is
home_is() { # WANTED WHAT COMMAND…
	local wanted=$1 what=$2
	shift 2
	rm -rf "$wanted"
	run "$@" trace --quiet -- true 2>err </dev/null
	assert_eq 'exit 0' "$STATUS" "$what ($(cat err))"
	assert_eq 1 "$(find "$wanted/runs" -mindepth 1 -maxdepth 1 | wc -l)" "$what: runs in $wanted"
	assert_eq 700 "$(stat -c %a "$wanted")" "$what: mode"
}
home_is "$PWD/rel/state" 'a relative ASSURE_HOME' env ASSURE_HOME=rel/state "$ASSURE"
home_is "$PWD/slash" 'slashes behind it' env ASSURE_HOME="$PWD/slash//" "$ASSURE"
home_is "$PWD/loose" 'a loose umask' sh -c 'umask 0; exec env ASSURE_HOME="$PWD/loose" "$ASSURE" "$@"' sh
home_is "$PWD/nohome" 'HOME unset' env -u HOME ASSURE_HOME="$PWD/nohome" "$ASSURE"
if [ "$IDENTITY" = root ]; then
	if usable unshare -m mount -t tmpfs none /var/lib; then
		# shellcheck disable=SC2016
		run unshare -m sh -c 'mount -t tmpfs none /var/lib && env -u HOME -u ASSURE_HOME XDG_STATE_HOME=/nowhere \
			"$ASSURE" trace --quiet -- true && ls /var/lib/assure/runs && stat -c %a /var/lib/assure' >out 2>err
		assert_eq 'exit 0' "$STATUS" "root's own place ($(cat err))"
		assert_contains "$(cat out)" '^700$' "root's own place"
	fi
else
	home_is "$PWD/xdg/assure" XDG_STATE_HOME env -u ASSURE_HOME XDG_STATE_HOME="$PWD/xdg" "$ASSURE"
	home_is "$PWD/me/.local/state/assure" HOME env -u ASSURE_HOME -u XDG_STATE_HOME HOME="$PWD/me" "$ASSURE"
	refused 125 'HOME' 'no HOME' env -u HOME -u ASSURE_HOME -u XDG_STATE_HOME "${traced[@]}" touch touched
	refused 1 'HOME' 'runs without HOME' env -u HOME -u ASSURE_HOME -u XDG_STATE_HOME "$ASSURE" runs
fi
exit 0
