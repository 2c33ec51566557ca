#!/usr/bin/env bash
# timeout: 120
# Programs that want not to be seen, or to harm who sees them: by making us wait, by names that mean something else to
# us than to the kernel, and by ways around what is ours.
. "$(dirname "$0")/lib.sh"
for name in hostile_calls hostile_fuse hostile_space; do
	[ -x "$PROGRAMS/$name" ] || fail "$name is not built"
done
calls=$PROGRAMS/hostile_calls
mounts=(unshare -m)
pids=(unshare -pf)
both=(unshare -mpf --mount-proc)
if [ "$IDENTITY" != root ]; then
	mounts=(unshare -Urm)
	pids=(unshare -Urpf)
	both=(unshare -Urmpf --mount-proc)
fi

# trace [OPTION…] -- COMMAND…: leaves STATUS, out and err. A time limit far beyond what any case needs.
trace() { run timeout -s KILL 30 "$ASSURE" trace --quiet "$@" >out 2>err </dev/null; }
shown() { assure show last --json; }
first() { /usr/bin/python3 "$here/effects.py" --print "$@" | head -n 1; }
complete() { # WHAT
	assert_contains "$(shown)" '"gaps":\[\].*"state":"complete"' "$1"
}
same_file() { # FILE FILTER…: an effect on that very file
	local file=$1 device
	shift
	device=$((0x$(stat -c %D "$file")))
	assert_effect "path=$file" "dev=$((device >> 8 & 0xfff)):$((device & 0xff | device >> 12 & 0xfff00))" \
		"ino=$(stat -c %i "$file")" "$@"
}

# --- who makes us wait

# Look-ups that only an answer of the tree ends, more of them than we can wait for at once.
fuse() {
	mkdir folder
	run timeout -s KILL 40 "${mounts[@]}" "$ASSURE" trace --quiet -- "$PROGRAMS/hostile_fuse" folder 400 >out 2>err </dev/null
	if [ "$STATUS" = 'exit 77' ]; then
		skip_part 'a file system of the tree (/dev/fuse cannot be used)'
		return
	fi
	assert_eq 'exit 0' "$STATUS" "$(cat out err)"
	assert_eq 400 "$(cat out)" 'look-ups that were answered'
	assert_contains "$(shown)" '"code":"no_worker"' 'the gap'
}

# Arguments in memory whose owner never fills it.
userfaultfd() {
	trace -- "$calls" userfaultfd 400
	if [ "$STATUS" = 'exit 77' ]; then
		skip_part 'memory that never comes (there is no userfaultfd for us)'
		return
	fi
	assert_eq 'exit 0' "$STATUS" "$(cat out err)"
	assert_eq other "$(cat out)" 'what another process did'
	[ -d other ] || fail 'the other process could not make its folder'
}

# A program of which every byte would be read, if it had any.
hash_sparse() {
	if ! { cp /bin/true big && truncate -s 300G big && [ "$(du -k big | cut -f1)" -lt 1000 ] && usable ./big; }; then
		skip_part 'a sparse program of 300 GB (the file system cannot)'
		return
	fi
	trace --hash images -- sh -c './big; /bin/true'
	rm -f big
	assert_eq 'exit 0' "$STATUS" "$(cat err)"
	assert_effect --count 1 kind=proc.exec "path=$PWD/big" result.state=ok 'note~not hashed' image.sha256!
	assert_effect --count 1 kind=proc.exec as_given=/bin/true result.state=ok 'image.sha256~^[0-9a-f]{64}$'
	complete 'a sparse program'
}

# --- names and numbers that are misread

# How /proc/PID/status and /proc/PID/stat write a name is up to its owner.
names() {
	local pid
	trace -- "$calls" named 'Tgid:' $'Tgid:\t1' 'Uid:' 'Groups:' $'x\nPid:\t1' 'a) R 1 1' ') Z 0 0 0'
	assert_eq 'exit 0' "$STATUS" "$(cat err)"
	assert_eq 7 "$(wc -l <out)" 'processes'
	while read -r pid; do
		assert_effect --count 1 kind=dir.create "path=$PWD/named-$pid" "process.pid=$pid" 'process.exe~hostile_calls$'
		assert_effect --count 1 kind=dir.delete "path=$PWD/named-$pid" "process.pid=$pid"
	done <out
	assert_eq 7 "$(/usr/bin/python3 "$here/effects.py" --print process.id kind=dir.create | sort -u | wc -l)" 'ids'
	complete 'names'
}

groups() {
	trace -- "$calls" groups
	if [ "$STATUS" = 'exit 77' ]; then
		skip_part 'many groups (they can only be set by root)'
		return
	fi
	assert_eq 'exit 0' "$STATUS" "$(cat err)"
	assert_effect --count 1 kind=file.create "path=$PWD/of-many-groups" result.state=ok
	assert_effect --count 1 kind=file.delete "path=$PWD/of-many-groups" result.state=ok
	complete 'many groups'
}

# What is ours of a process is of its old program once another thread executed the next.
thread_exec() {
	local how
	for how in '' 'strace -f -o /dev/null'; do
		if [ -n "$how" ] && ! usable strace -f -o /dev/null true; then
			skip_part 'an exec by a thread that is traced (there is no strace)'
			continue
		fi
		# shellcheck disable=SC2086 # words
		trace -- $how "$calls" thread next-a next-b next-c
		assert_eq 'exit 0' "$STATUS" "[$how] $(cat err)"
		for name in before-exec next-a next-b next-c; do
			assert_effect --count 1 kind=dir.create "path=$PWD/$name"
			assert_effect --count 1 kind=dir.delete "path=$PWD/$name"
		done
		complete "an exec by a thread [$how]"
	done
}

# In a pid namespace, the number of the caller is that of somebody else for us, and the other way round.
numbers() {
	local mode pid id own
	for mode in victim caller; do
		trace -- "$PROGRAMS/hostile_space" $mode
		if [ "$STATUS" = 'exit 77' ]; then
			skip_part "a signal to a namesake, as $mode (there are no pid namespaces for us)"
			return
		fi
		assert_eq 'exit 0' "$STATUS" "$mode: $(cat err)"
		assert_effect --count 1 kind=proc.signal args.sig=SIGTERM "target.pid=$(cat out)" result.state=ok
	done
	# 5 is another process out there.
	for own in '' proc; do
		[ -z "$own" ] || pids=("${both[@]}")
		trace -- "${pids[@]}" sh -c '(exit 0) ; (exit 0); (exit 0); sleep 30 & sleep 0.5; kill $!; echo $!; wait'
		assert_eq 'exit 0' "$STATUS" "kill in a namespace: $(cat err)"
		pid=$(cat out)
		assert_eq 5 "$pid" 'the number in the namespace'
		assert_effect --count 1 kind=proc.signal args.sig=SIGTERM "target.pid=$pid" result.state=ok
		id=$(first process.id kind=proc.exec argv.0=sleep argv.1=30 result.state=ok)
		[ -n "$id" ] || fail 'no exec of sleep'
		assert_effect --none kind=proc.signal target.id? "target.id!=$id"
		assert_effect --none kind=proc.signal target.exe? 'target.exe!=/usr/bin/sleep' 'target.exe!=/bin/sleep'
	done
	complete 'numbers'
}

# /proc/self is another folder in there than out here.
own_descriptors() {
	local -a space
	: >given
	for space in "${both[*]}" 'bwrap --bind / / --dev /dev --unshare-pid --proc /proc'; do
		read -ra space <<<"${space[0]}"
		if ! usable "${space[@]}" true; then
			skip_part "descriptors by name in a namespace (${space[0]} cannot make one)"
			continue
		fi
		run timeout -s KILL 30 "$ASSURE" trace --quiet -- "${space[@]}" \
			sh -c 'exec 9<given; chmod 640 /proc/self/fd/9; echo x >/dev/stdout' >printed 2>err </dev/null
		assert_eq 'exit 0' "$STATUS" "${space[0]}: $(cat err)"
		assert_eq x "$(cat printed)" "${space[0]}"
		same_file "$PWD/given" kind=file.mode as_given=/proc/self/fd/9 result.state=ok
		same_file "$PWD/printed" kind=file.write as_given=/dev/stdout result.state=ok
	done
}

# The chain of interpreters is read from files, which have other names for us.
interpreters() {
	local wanted
	printf '#!/bin/sh\necho hi\n' >inner
	printf '#! %s/inner with\n' "$PWD" >outer
	chmod +x inner outer
	trace -- ./outer
	assert_eq hi "$(cat out)" 'a script'
	wanted=$(first image.interpreters kind=proc.exec result.state=ok)
	assert_contains "$wanted" 'inner.*/bin/sh' 'interpreters of a script'
	if usable bwrap --bind / / true; then
		trace -- bwrap --bind / / --dev /dev --unshare-pid --proc /proc "$PWD/outer"
		assert_eq hi "$(cat out)" "a script in bwrap ($(cat err))"
		assert_eq "$wanted" "$(first image.interpreters kind=proc.exec argv.0~outer result.state=ok)" 'interpreters in bwrap'
	else
		skip_part 'interpreters in bwrap (it does not work here)'
	fi
	mkdir root
	if usable "${mounts[@]}" mount --rbind / root; then
		# shellcheck disable=SC2016 # for the inner shell
		trace -- "${mounts[@]}" sh -c 'mount --rbind / root && exec chroot root "$1"' sh "$PWD/outer"
		assert_eq hi "$(cat out)" "a script in chroot ($(cat err))"
		assert_eq "$wanted" "$(first image.interpreters kind=proc.exec argv.0~outer result.state=ok)" 'interpreters in chroot'
	else
		skip_part 'interpreters in a chroot (there are no mount namespaces for us)'
	fi
}

# --- what is done beside that which is looked at

clone3() {
	trace -- "$PROGRAMS/hostile_space" clone3
	if [ "$STATUS" = 'exit 77' ]; then
		skip_part 'namespaces by clone3 (there are none for us)'
		return
	fi
	assert_eq 'exit 0' "$STATUS" "$(cat err)"
	assert_effect --count 1 kind=priv.namespace flags~CLONE_NEWUSER flags~CLONE_NEWNS flags~CLONE_NEWNET
	assert_effect --count 1 kind=file.create "path=$PWD/made-by-child" result.state=ok
}

messages() {
	trace -- "$calls" send
	assert_eq 'exit 0' "$STATUS" "$(cat out err)"
	if ! [[ $(shown) =~ \"gaps\":\[\{ ]]; then
		assert_effect --at-least 1 kind=ipc.pass_fd
	fi
}

# --- the ways around what is ours

# Everybody, or the group that we are in, by a caller who must not signal us. This happens in a pid namespace of its own
# with assure in it, in a session of its own: nothing else can be hit, even if it comes through.
killing() {
	local whom how command less=(setpriv --bounding-set=-all --inh-caps=-all)
	if ! usable "${both[@]}" setsid -w true; then
		skip_part 'signals to everybody (there are no pid namespaces for us)'
		return
	fi
	cat >first.sh <<'EOF'
printf hostile-first >/proc/self/comm
sleep 60 &
"$@" </dev/null
echo "status $?"
kill -0 $! && echo 'the bystander lives'
EOF
	for whom in -1 0; do
		for how in scoped plain; do
			command=("$calls" kill "$how" "$whom")
			[ $how = scoped ] || command=("${less[@]}" "${command[@]}")
			run timeout -s KILL 30 "${both[@]}" setsid bash first.sh "$ASSURE" trace --quiet -- "${command[@]}" \
				>out 2>err </dev/null
			if grep -q 'status 77' out; then
				skip_part "kill($whom) by a $how caller (the kernel has no scopes)"
				continue
			fi
			assert_eq 'exit 0' "$STATUS" "kill($whom), $how: $(cat out err)"
			assert_eq "$(printf 'EPERM\nstatus 0\nthe bystander lives')" "$(cat out)" "kill($whom), $how ($(cat err))"
			assert_effect --count 1 kind=proc.signal target.pid=$whom args.sig=SIGKILL result.errno=EPERM
			complete "kill($whom), $how"
		done
	done
}

# /proc by other names. In a pid namespace, so that only those who watch this tree are there.
other_proc() {
	if ! usable "${both[@]}" unshare -m true; then
		skip_part 'other mounts of /proc (there are no namespaces for us)'
		return
	fi
	cat >open.sh <<'EOF'
# FOLDER WHAT: opens what could change one of ours; nothing is written.
for comm in "$1"/[0-9]*/comm; do
	case $(cat "$comm" 2>/dev/null) in
	assure-monitor | assure-keeper | assure-guardian | assure-scribe) ;;
	*) continue ;;
	esac
	echo one >>met
	for file in mem oom_score_adj oom_adj clear_refs coredump_filter timerslack_ns autogroup comm; do
		for way in "<>${comm%/*}/$file" "<>${comm%/*}/task/$(basename "${comm%/*}")/$file"; do
			[ ! -e "${way#??}" ] || ! (exec 5<>"${way#??}") 2>/dev/null || echo "$2: $way came through"
		done
	done
	! (cd "${comm%/*}" && exec 5<>mem) 2>/dev/null || echo "$2: mem in the cwd came through"
	! (exec 6<"${comm%/*}" && exec 5<>/proc/self/fd/6/mem) 2>/dev/null || echo "$2: mem in a folder came through"
	! (exec 5<"${comm%/*}/mem") 2>/dev/null || echo "$2: mem to read came through"
done
EOF
	cat >all.sh <<'EOF'
bash open.sh /proc direct
unshare -m sh -c 'mount --bind /proc p && bash open.sh p bind'
unshare -Urm sh -c 'mount --bind /proc p && bash open.sh p "bind in a user namespace"'
unshare -m sh -c 'mount --rbind /proc p && mount --move p q && bash open.sh q moved'
unshare -m sh -c 'mount -t proc proc p && bash open.sh p second'
unshare -pf bash open.sh /proc 'nested pid namespace'
unshare -mpf sh -c 'mount --bind /proc p && bash open.sh p "bind in a pid namespace"'
for pid in $(grep -lE 'assure-(monitor|keeper|guardian|scribe)' /proc/[0-9]*/comm | tr -dc '0-9\n'); do
	unshare -m sh -c 'mount --bind /proc/$1 p && (exec 5<>p/mem) 2>/dev/null && echo "one: p/mem came through"' sh "$pid"
done
exit 0
EOF
	mkdir p q
	run timeout -s KILL 40 "${both[@]}" "$ASSURE" trace --quiet -- bash all.sh >out 2>err </dev/null
	assert_eq 'exit 0' "$STATUS" "$(cat out err)"
	assert_eq '' "$(cat out)" 'other mounts of /proc'
	local met
	met=$(wc -l <met)
	[ "$met" -ge 24 ] || fail "only $met of ours were found by another name ($(cat err))"
	assert_effect --at-least $((met * 4)) result.state=refused result.by=self
}

# Layers of an overlay are written to by whoever writes to the overlay.
overlays() {
	local way count=0 nested=(unshare -Urm)
	if ! usable "${nested[@]}" true; then
		skip_part 'overlays (there are no mount namespaces for us)'
		return
	fi
	mkdir -p lower target place/below place/work place/up work up
	if ! usable "${nested[@]}" "$calls" overlay mount lower up work target; then
		skip_part 'overlays (the kernel gives us none)'
		return
	fi
	export ASSURE_HOME=$PWD/place/below/state
	traced --name kept -- true
	assure effects kept --json >before
	cat >layers <<EOF
$ASSURE_HOME place/work
$ASSURE_HOME/runs place/work
place/below place/work
place work
place/up $ASSURE_HOME
place/up $ASSURE_HOME/runs
up place
EOF
	# shellcheck disable=SC2016 # for the inner shell
	echo 'while read -r upper work; do
		for way in mount string fd; do
			said=$("$1" overlay $way lower "$upper" "$work" target)
			case $said in
			*_mount\ ok | mount\ ok)
				echo "$way upperdir=$upper workdir=$work came through"
				umount target ;;
			*) echo one >>tried ;;
			esac
		done
	done <layers' >all.sh
	trace -- "${nested[@]}" bash all.sh "$calls"
	assert_eq 'exit 0' "$STATUS" "$(cat err)"
	assert_eq '' "$(cat out)" 'layers that are ours'
	count=$(wc -l <tried)
	# By descriptor, the kernel may be too old.
	usable "${nested[@]}" "$calls" overlay fd lower up work target || count=$((count * 2 / 3))
	assert_effect --at-least "$count" kind=mount.change result.state=refused result.by=self
	complete 'layers that are ours'
	assert_eq '' "$(find "$ASSURE_HOME" -name work -o -name index)" 'what an overlay leaves in the state folder'
	assure effects kept --json | cmp -s - before || fail 'the store was changed'
	# What is not ours is nobody's business, even with all of it below.
	for way in mount string fd; do
		for lower in lower /; do
			for space in "${nested[*]}" "${mounts[*]}"; do
				rm -rf up work && mkdir up work
				# shellcheck disable=SC2086 # words
				usable $space "$calls" overlay $way $lower up work target || continue
				rm -rf up work && mkdir up work
				# shellcheck disable=SC2086
				trace -- $space sh -c '"$@" && echo x >target/new' sh "$calls" overlay $way $lower up work target
				assert_eq 'exit 0' "$STATUS" "an overlay over $lower by $way in [$space]: $(cat out err)"
				[ -s up/new ] || fail "an overlay over $lower by $way in [$space]: nothing was written"
				assert_effect --none result.by=self
			done
		done
	done
}

# A handle is a file without a path.
handles() {
	local file
	trace -- true
	file=$(find "$ASSURE_HOME/runs" -type f -size +0 -name '*.sqlite' | head -n 1)
	[ -n "$file" ] || fail "no store below $ASSURE_HOME"
	echo content >mine
	if ! "$calls" save "$file" kept || ! "$calls" save mine own; then
		skip_part 'handles (the file system has none)'
		return
	fi
	cp "$file" before
	# A handle is opened by a folder of the same file system.
	trace -- "$calls" handle own .
	if [ "$(cat out)" = 'open_by_handle_at EPERM' ] && [ "$IDENTITY" != root ]; then
		skip_part 'handles (they can only be opened by root)'
		return
	fi
	assert_eq 'open_by_handle_at ok' "$(cat out)" "a handle elsewhere ($(cat err))"
	assert_eq 'DATAent' "$(cat mine)" 'what was written by a handle'
	assert_effect --at-least 1 kind=file.write syscall=open_by_handle_at result.state=ok
	trace -- "$calls" handle kept .
	assert_eq 'exit 0' "$STATUS" "$(cat out err)"
	assert_contains "$(cat out)" '^open_by_handle_at E(PERM|ACCES)$' 'a handle of the store'
	assert_effect --count 1 syscall=open_by_handle_at result.state=refused result.by=self
	cmp -s "$file" before || fail 'the store was changed by a handle'
}

# Each case in a folder and a state of its own; one that fails does not hide the others.
failed=()
cases=(fuse userfaultfd hash_sparse names groups thread_exec numbers own_descriptors interpreters clone3 messages killing
	other_proc overlays handles)
[ $# -eq 0 ] || cases=("$@")
for name in "${cases[@]}"; do
	mkdir -p "$origin/$name"
	(
		cd "$origin/$name" || exit 1
		export ASSURE_HOME=$ASSURE_HOME/$name
		$name
	) || failed+=("$name")
done
[ ${#failed[@]} -eq 0 ] || fail "${failed[*]}"
