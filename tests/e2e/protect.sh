#!/usr/bin/env bash
# timeout: 120
# A process of the tree can neither end, stop, read nor change those who watch it, nor touch their store.
. "$(dirname "$0")/lib.sh"
[ -x "$PROGRAMS/protect_calls" ] || fail 'protect_calls is not built'

# complete STATUS WHAT: the run ended with STATUS, and nothing is missing from it.
complete() {
	assert_eq "$1" "$STATUS" "$2 ($(cat err))"
	assure show last >shown 2>&1 || fail "$2: show: $(cat shown)"
	! grep -qE 'incomplete|not complete|damaged|recovered' shown || fail "$2: the run is not complete: $(cat shown)"
}

# --- every call against each of our processes
run timeout -s KILL 60 "$ASSURE" trace --quiet -- "$PROGRAMS/protect_calls" >out 2>err </dev/null
complete 'exit 0' "calls against us: $(tail -1 out)"
grep -v ' none -$' out | grep -vE ' (EPERM|EACCES)$|^[0-9]+ calls$' >passed
assert_eq '' "$(cat passed)" 'calls that came through'
for role in keeper monitor guardian; do
	grep -q "^$role kill EPERM" out || fail "$role was not found from inside the tree: $(cat out)"
done
calls=$(sed -n 's/ calls$//p' out)
[ "$calls" -ge 90 ] || fail "only $calls calls were tried"
assert_effect --count "$calls" result.state=refused result.by=self
assert_effect --at-least 3 kind=proc.trace result.state=refused result.errno=EPERM
assert_effect --at-least 3 syscall=kill 'args.sig=SIGKILL' result.state=refused target.pid?

# The same calls on processes of its own are nobody's business.
run "$ASSURE" trace --quiet -- bash -c 'renice -n 1 -g 0 >/dev/null || exit 9
	sleep 20 & renice -n 5 -p $! >/dev/null && taskset -p 1 $! >/dev/null &&
	prlimit --pid $! --nofile=100 && kill -STOP $! && kill -9 $! && kill -0 $$ && kill -0 0' >out 2>err </dev/null
complete 'exit 0' 'calls on its own processes'
assert_effect --none result.by=self

# --- the whole group: the shell sees the death, and the store is closed
for how in 'kill -9 0' 'kill -9 -$(ps -o pgid= -p $$ | tr -d " ")'; do
	run setsid -w "$ASSURE" trace --quiet -- sh -c "echo x >before; sleep 30 & $how; echo survived" >out 2>err </dev/null
	complete 'signal 9' "$how"
	assert_eq '' "$(cat out)" "$how"
	assert_effect --count 1 kind=proc.signal args.sig=SIGKILL how=performed result.state=ok
	assert_effect --at-least 2 kind=proc.exit status.signal=SIGKILL
done

# --- everybody: in a pid namespace, where everybody is few
space=(unshare -pf --mount-proc)
[ "$IDENTITY" = root ] || space=(unshare -Urpf --mount-proc)
if usable "${space[@]}" true; then
	run "${space[@]}" sh -c '"$ASSURE" trace --quiet -- sh -c "sleep 30 & sleep 30 & kill -9 -1; echo survived"
		echo "status $?"' >out 2>err </dev/null
	complete 'exit 0' 'kill -9 -1'
	assert_eq "$(printf 'survived\nstatus 0')" "$(cat out)" 'kill -9 -1'
	assert_effect --count 1 kind=proc.signal how=performed args.sig=SIGKILL target.pid=-1 result.state=ok
	# In a namespace inside the tree, numbers of ours are numbers of others.
	run timeout -s KILL 30 "$ASSURE" trace --quiet -- "${space[@]}" sh -c 'sleep 30 & kill -9 -1; wait; echo alive' \
		>out 2>err </dev/null
	complete 'exit 0' 'kill -9 -1 in an inner namespace'
	assert_eq alive "$(cat out)" 'kill -9 -1 in an inner namespace'
	assert_effect --none result.by=self
else
	skip_part 'kill(-1): there are no pid namespaces for us'
fi

# --- the state folder, by every name that leads to it
mkdir -p place/below
ln -s place/below alias
export ASSURE_HOME=$PWD/place/below/state
traced --name first -- true
cat >attack.sh <<'END'
home=$ASSURE_HOME
try() { # WHAT COMMAND…
	what=$1
	shift
	if "$@" 2>/dev/null; then echo "$what came through"; fi
}
try write sh -c 'echo x >>"$1"' sh "$home/new"
try truncate truncate -s 0 "$home/new"
try mkdir mkdir "$home/d"
try mkdir-link mkdir alias/state/d
try link ln attack.sh "$home/l"
try symlink ln -s attack.sh "$home/s"
try rename mv attack.sh "$home/"
try chmod chmod 777 "$home"
try touch touch "$home"
try rename-state mv "$home" elsewhere
try rename-state-link mv alias/state elsewhere
try rename-parent mv place/below place/above
try rename-ancestor mv place elsewhere
try rename-dirfd sh -c 'cd place && mv below above'
try remove rm -rf place
try proc-root sh -c 'echo x >>"/proc/self/root$1/new"' sh "$home"
try proc-cwd sh -c 'cd place && echo x >>/proc/self/cwd/below/state/new'
try dirfd sh -c 'exec 3<place && echo x >>/proc/self/fd/3/below/state/new'
cd place/below && try relative sh -c 'echo x >>./state/../state/new'
find state -type f 2>/dev/null | while read -r file; do try "read of $file" grep -q . "$file"; done
# The processes of this run, and not those of another one on the machine: keeper, monitor, guardian and their children.
parent() { ps -o ppid= -p "$1" | tr -d ' '; }
keeper=$PPID monitor=$(parent "$PPID") guardian=$(parent "$(parent "$PPID")")
for pid in $keeper $monitor $guardian $(ps -o pid= --ppid "$monitor,$guardian"); do
	for fd in /proc/"$pid"/fd/* /proc/"$pid"/map_files/*; do
		[ -e "$fd" ] && case $(readlink "$fd") in
		*/place/* | *assure-ring*) try "$fd -> $(readlink "$fd")" sh -c 'exec 3<>"$1"' sh "$fd" ;;
		esac
	done
done
exit 0
END
run timeout -s KILL 60 "$ASSURE" trace --quiet -- bash attack.sh >out 2>err </dev/null
complete 'exit 0' 'attacks on the state folder'
assert_eq '' "$(cat out)" 'attacks on the state folder'
assert_effect --at-least 12 result.state=refused result.by=self
assert_effect kind=file.rename result.by=self "path=$PWD/place"
assert_effect kind=file.rename result.by=self "path=$PWD/place/below"

# --- a private mount namespace is the agent's own
private=(unshare -m)
[ "$IDENTITY" = root ] || private=(unshare -Urm)
if usable "${private[@]}" true; then
	run timeout -s KILL 60 "$ASSURE" trace --quiet -- "${private[@]}" sh -c 'mount -t tmpfs none place && echo x >place/f &&
		mkdir -p place/below/state && echo y >place/below/state/f && cat place/below/state/f' >out 2>err </dev/null
	complete 'exit 0' 'a private mount over an ancestor'
	assert_eq y "$(cat out)" 'a private mount over an ancestor'
	# But through it nobody gets at what is ours.
	run timeout -s KILL 60 "$ASSURE" trace --quiet -- "${private[@]}" sh -c \
		'mkdir -p other && mount --bind place other && echo x >>other/below/state/new' >out 2>err </dev/null
	[ ! -e "$ASSURE_HOME/new" ] || fail 'the state folder was written to through a private bind mount'
	assert_effect result.by=self as_given=other/below/state/new
fi

# --- in the namespace that we share, ours can neither be hidden nor be reached by another name
if [ "$IDENTITY" = root ]; then
	mkdir -p show new
	run timeout -s KILL 60 unshare -m --propagation private "$ASSURE" trace --quiet -- bash -c '
		try() { what=$1; shift; if "$@" 2>/dev/null; then echo "$what came through"; fi; }
		try tmpfs mount -t tmpfs none place
		try bind mount --bind new place/below
		try bind-state mount --bind "$ASSURE_HOME" show
		mount --bind place show && try alias sh -c "echo x >>show/below/state/new"
		umount show' >out 2>err </dev/null
	complete 'exit 0' 'mounts'
	assert_eq '' "$(cat out)" 'mounts'
	assert_effect --at-least 2 kind=mount.change result.state=refused result.by=self
fi
# --- all runs are there and whole
[ -z "$(find "$ASSURE_HOME" -name new)" ] || fail 'something was written into the state folder'
assure show first >/dev/null || fail 'the first run cannot be read any more'
assure effects last --json >/dev/null || fail 'the last run cannot be read any more'
