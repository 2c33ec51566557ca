#!/usr/bin/env bash
# timeout: 120
# Who descends from whom, when the processes between are long gone: with the kernel's birth events, and without.
. "$(dirname "$0")/lib.sh"

# process_of FILE: the id of the process that made it.
process_of() {
	/usr/bin/python3 "$here/effects.py" --print process.id kind=file.create "path~/$1\$" result.state=ok
}
# descends FILE ANCESTOR-FILE WHAT: the process that made FILE stands below the one that made ANCESTOR-FILE in the tree.
descends() {
	local below above
	below=$(process_of "$1") || exit 1
	above=$(process_of "$2") || exit 1
	assure effects last --json >effects
	/usr/bin/python3 - "$below" "$above" "$births" <<'END' || fail "$3: [$1] is not below [$2]; $(assure tree last | cat -A | head -30)"
import json, os, re, sys
below, above, births = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
tree = os.popen("%s tree last" % os.environ["ASSURE"]).read().splitlines()
pids = {}
for line in open("effects"):
    effect = json.loads(line)
    pids.setdefault(effect["process"]["id"], effect["process"]["pid"])
# The tree's text: indentation says who is below whom.
path, found = [], False
for line in tree:
    match = re.match(r"^([ │├└─]*)(\d+) ", line)
    if not match:
        continue
    depth = len(match.group(1)) // 3
    path[depth:] = [int(match.group(2))]
    if int(match.group(2)) == pids[below] and pids[above] in path[:-1]:
        found = True
        if births == "connector" and "by " in line:
            found = False
sys.exit(not found)
END
}

scenes() {
	# The daemon's way: two forks, a session between them, its parents gone.
	traced_here --wait tree -- sh -c 'echo x >root-a
		sh -c "echo x >middle-a; setsid sh -c \"(sleep 0.3; echo x >daemon-a; sh -c \\\"echo x >child-a; :\\\"; :) &\" &"
		sleep 0.1; echo x >after-a'
	descends daemon-a root-a 'daemon'
	descends child-a daemon-a 'child of a daemon'
	# In a session that is not the tree's, only a birth tells whose child it was once its parent is gone.
	[ "$births" != connector ] || descends daemon-a middle-a 'daemon of a process that is gone'

	# setsid of a background process that outlives everybody.
	traced_here -- sh -c 'echo x >root-b; (setsid sh -c "echo x >leader-b; (sleep 0.3; echo x >late-b; :) &" &) '
	descends leader-b root-b 'session leader'
	descends late-b leader-b 'an orphan of a session leader'

	# nohup keeps session and group: its birth, or the group that it stands in.
	traced_here -- sh -c 'echo x >root-c; nohup sh -c "echo x >first-c; sleep 0.2; echo x >nohup-c" >/dev/null 2>&1 &'
	descends first-c root-c 'nohup'
	descends nohup-c root-c 'nohup, later'

	# Two shells in sessions of their own at once, as agents start them; nothing is mixed up.
	traced_here -- sh -c 'echo x >root-d
		for i in 1 2 3; do setsid sh -c "echo x >shell-d$i; (sleep 0.2; echo x >orphan-d$i; :) & exit" & done; wait; sleep 0.4'
	for i in 1 2 3; do
		descends "shell-d$i" root-d "shell $i"
		descends "orphan-d$i" "shell-d$i" "the orphan of shell $i"
	done
	assert_effect --count 1 kind=proc.exit process.id=1
}

traced_here() { "$ASSURE" trace --quiet "$@" </dev/null || fail "trace: $?"; }
traced -- true
births=$(assure show last | sed -n 's/^births *//p')
if [ "$births" = connector ]; then
	mkdir connector && cd connector && scenes && cd ..
else
	skip_part 'births from the proc connector (it is not there)'
fi

# What a child runs is what its parent ran when it was born, whatever that executed since.
exchanged() {
	mkdir "exchanged-$1" && cd "exchanged-$1" || exit 1
	traced -- /usr/bin/python3 -c 'if True:
		import os, time
		for i in range(60):
			maker = os.fork()
			if maker == 0:
				os.mkdir("maker%d" % i) # seen, so that nobody asks for births at its exec
				if os.fork() == 0:
					os.setsid() if i % 2 else None
					time.sleep(0.001 * (i % 3))
					os.mkdir("d%d" % i)
					os._exit(0)
				os.execv("/bin/true", ["true"])
			os.waitpid(maker, 0)
		time.sleep(0.1)'
	assert_effect --count 120 kind=dir.create result.state=ok "process.exe~python"
	cd ..
}
exchanged any

# It is in the initial network namespace alone, and whoever put us into another one is an ancestor.
if [ "$births" = connector ] && [ "$IDENTITY" = root ]; then
	unshare -n "$ASSURE" trace --quiet -- true </dev/null || fail "trace in a network namespace: $?"
	assert_eq connector "$(assure show last | sed -n 's/^births *//p')" 'births in a network namespace'
fi

export ASSURE_PROBES=connector=missing
traced -- true
births=$(assure show last | sed -n 's/^births *//p')
assert_eq marks "$births" 'births with ASSURE_PROBES=connector=missing'
mkdir marks && cd marks && scenes && cd ..
exchanged marks

# In a pid namespace the connector's numbers would be those of strangers.
unset ASSURE_PROBES
space=(unshare -pf --mount-proc)
[ "$IDENTITY" = root ] || space=(unshare -Urpf --mount-proc)
if usable "${space[@]}" true; then
	(while :; do /bin/true; done) & # births elsewhere, all the while
	busy=$!
	for _ in 1 2 3; do
		"${space[@]}" sh -c '"$ASSURE" trace --quiet -- sh -c "true; true; (exit 3); (exit 4); :"; exit $?' </dev/null ||
			fail "trace in a pid namespace: $?"
		births=$(assure show last | sed -n 's/^births *//p')
		[ "$births" = marks ] || { kill $busy; fail "in a pid namespace births came from [$births]"; }
	done
	kill $busy
else
	skip_part 'a pid namespace (there are none for us)'
fi
exit 0
