#!/usr/bin/env bash
# timeout: 120
# What the options of `assure trace` promise, and what a run says about what came from outside and went there.
. "$(dirname "$0")/lib.sh"
[ -x "$PROGRAMS/options_calls" ] || fail 'options_calls is not built'

# record TYPE [RUN]: the records of that schema
record() {
	/usr/bin/python3 - "$ASSURE_HOME/runs/$(assure show "${2:-last}" --json | sed -E 's/.*"id":"([^"]*)".*/\1/')/run.sqlite" "$1" <<'END'
import sqlite3, sys
for (text,) in sqlite3.connect(sys.argv[1]).execute("SELECT json FROM records WHERE type = ? ORDER BY seq", sys.argv[2:]):
    print(text.decode())
END
}
state_of() { assure show "${1:-last}" --json | sed -E 's/.*"state":"([a-z]*)".*/\1/'; }
digest() { sha256sum <"$1" | cut -d' ' -f1; }

# --- --hash images
cp /bin/true "$(printf 'own\377')"
printf '#!%s/outer\nx\n' "$PWD" >script
printf '#!/bin/sh\nexit 3\n' >outer
chmod 755 script outer
# shellcheck disable=SC2016 # for the agent
agent='./own?; ./script; ./outer; /bin/true; ./missing; : >empty; chmod 755 empty; ./empty'
traced --hash images -- sh -c "$agent" 2>/dev/null
assert_effect --count 1 kind=proc.exec argv.0=sh image.sha256="$(digest /bin/sh)"
assert_effect --count 1 kind=proc.exec argv.0=/bin/true image.sha256="$(digest /bin/true)"
assert_effect --count 1 kind=proc.exec as_given_b64? image.path_b64? image.sha256="$(digest /bin/true)"
# Of a script, what the kernel maps is the interpreter.
assert_effect --count 1 kind=proc.exec "path=$PWD/outer" image.path="$(realpath /bin/sh)" \
	image.sha256="$(digest /bin/sh)" image.interpreters.0=/bin/sh
assert_effect --count 1 kind=proc.exec "path=$PWD/script" result.state=ok image.sha256="$(digest /bin/sh)" \
	image.interpreters.0="$PWD/outer" image.interpreters.1=/bin/sh
assert_effect --none kind=proc.exec result.state=ok image.sha256!
assert_effect --none kind=proc.exec result.state=failed image.sha256?
traced -- true
assert_effect --none image.sha256?

# --- --io-uring
natively=$("$PROGRAMS/options_calls" ring)
assert_eq 'setup ENOSYS' "$(traced -- "$PROGRAMS/options_calls" ring)" 'io_uring by default'
assert_effect --count 1 kind=kernel.io_uring result.state=refused result.errno=ENOSYS result.by=unsupported
assert_eq complete "$(state_of)" 'a run in which io_uring was refused'
assert_eq 'setup ENOSYS' "$(traced --io-uring deny -- "$PROGRAMS/options_calls" ring)" '--io-uring deny'
assert_contains "$(record assure.run/1)" '"io_uring_allowed":false' '--io-uring deny'
traced --io-uring allow -- true
assert_eq complete "$(state_of)" 'io_uring allowed and not used'
assert_contains "$(record assure.run/1)" '"io_uring_allowed":true' '--io-uring allow'
assert_eq "$natively" "$(traced --io-uring allow -- "$PROGRAMS/options_calls" ring)" '--io-uring allow'
if [ "$natively" = ok ]; then
	assert_eq incomplete "$(state_of)" 'io_uring allowed and used'
	assert_contains "$(assure show last)" '^ended +exit 0, incomplete: .*io_uring' 'the reason'
	assert_contains "$(record assure.gap/1)" '"code":"io_uring"' 'the gap'
	assert_effect --at-least 1 kind=kernel.io_uring syscall=io_uring_setup
	assert_effect --none kind=kernel.io_uring result.state=refused
else
	skip_part "io_uring when it is allowed (here it ends with $natively)"
fi

# --- --name and --quiet
traced --name taken -- true
run "$ASSURE" trace --quiet --name taken -- touch touched >out 2>err
assert_eq 'exit 125' "$STATUS" 'a name that another run has'
assert_one_line "$(cat err)" 'a name that another run has'
assert_contains "$(cat err)" '^assure: .*taken' 'a name that another run has'
[ ! -e touched ] || fail 'the command ran under the name of another run'
assert_eq 1 "$(assure runs | grep -c 'taken')" 'nothing is left of it'
assure rm taken
traced --name taken -- true || fail 'a name whose run is gone is free'
assert_eq '' "$(traced -- sh -c 'sleep 2.3 & exit 0' 2>&1)" '--quiet'
assert_contains "$("$ASSURE" trace -- true 2>&1)" '^assure: run [0-9A-Z]+ ' 'the lines at the end'

# --- --wait main: what is left is watched, and the run is closed when it ends
mkfifo go
"$ASSURE" trace --quiet --wait main --name left -- sh -c '(read x <go; echo late >late) >/dev/null 2>&1 </dev/null & exit 6'
assert_eq 6 $? '--wait main'
assert_eq running "$(state_of left)" 'the run while something of it runs'
assert_contains "$(assure runs)" ' running .*\[left\]' runs
[ ! -e late ] || fail 'the child did not wait'
echo x >go
for _ in $(seq 100); do
	[ "$(state_of left)" = running ] || break
	sleep 0.1
done
assert_eq complete "$(state_of left)" 'the run when all of it has ended'
[ -e late ] || fail 'the child was ended'
assert_effect --run left --count 1 kind=file.create "path=$PWD/late" result.state=ok
assert_contains "$(record assure.end/1 left)" '"status":\{"code":6\}' 'its status'

# --- what was inherited
cat >give.py <<'END'
import os, socket, sys
files = [os.open("given", os.O_RDONLY | os.O_CREAT, 0o600), os.open("given", os.O_WRONLY | os.O_APPEND),
         os.open("given", os.O_RDWR), os.open(b"odd\xff", os.O_RDONLY | os.O_CREAT, 0o600), os.open(".", os.O_RDONLY)]
server = socket.create_server(("127.0.0.1", 0))
tcp = socket.create_connection(server.getsockname())
path, name = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
path.bind("unix.sock"), name.bind("\0assure-options-%d" % os.getpid())
clients = [socket.socket(socket.AF_UNIX) for _ in range(2)]
for at, listener in zip(clients, (path, name)):
    listener.listen()
    at.connect(listener.getsockname())
hidden = os.open("given", os.O_RDONLY)
for number, fd in enumerate([*files, tcp.fileno(), *(c.fileno() for c in clients)]):
    os.dup2(fd, 40 + number)
print(server.getsockname()[1], os.getpid(), flush=True)
# Whoever listens has to stay, or there is no other end.
if os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
os.execv(os.environ["ASSURE"], ["assure", "trace", "--quiet", "--", "sh", "-c", "ls -l /proc/self/fd"])
END
/usr/bin/python3 give.py >given.out || fail 'inherited descriptors'
read -r port pid <given.out
record assure.run/1 >start
/usr/bin/python3 - "$port" "$pid" <<'END' || fail "inherited: $(cat start)"
import base64, json, os, sys
found = {d["fd"]: d for d in json.load(open("start"))["descriptors"]}
here = os.getcwd()
assert {0, 1, 2} <= set(found), found
for number, access in ((40, "r"), (41, "w"), (42, "rw")):
    assert found[number] == {"fd": number, "path": here + "/given", "access": access}, found[number]
assert base64.b64decode(found[43]["path_b64"]) == here.encode() + b"/odd\xff", found[43]
assert found[44]["path"] == here
assert found[45]["path"].startswith("socket:["), found[45]
assert found[45]["peer"] == {"family": "inet", "address": "127.0.0.1", "port": int(sys.argv[1])}, found[45]
assert found[46]["peer"]["family"] == "unix" and found[46]["peer"]["path"].endswith("unix.sock"), found[46]
assert found[47]["peer"]["path"] == "@assure-options-" + sys.argv[2], found[47]
assert not [d for d in found.values() if d["fd"] > 2 and d.get("path") == here + "/given" and d["fd"] not in (40, 41, 42)]
END
# What the agent has is what was there, and nothing of ours.
LC_ALL=C sed -nE 's/.* ([0-9]+) -> .*/\1/p' given.out | sort -n | tr '\n' ' ' >numbers
assert_contains "$(cat numbers)" '^0 1 2 3 40 41 42 43 44 45 46 47 $' 'descriptors of the agent'

# --- questions to a name server, in a network of our own, where nobody answers
space=(unshare -n)
[ "$IDENTITY" = root ] || space=(unshare -Urn)
if usable "${space[@]}" ip link set lo up || usable "${space[@]}" true; then
	for how in sendto sendmsg sendmmsg; do
		"$ASSURE" trace --quiet -- "${space[@]}" sh -c 'ip link set lo up 2>/dev/null; exec "$@"' sh \
			"$PROGRAMS/options_calls" dns $how >out
		assert_effect --count 1 kind=net.send syscall=$how peer.port=53 peer.address=127.0.0.1 \
			args.dns_questions.0~'^www\.example\.org'
		assert_effect --count 1 kind=net.connect peer.port=4433 note~'www\.example\.org'
	done
	# Another process has asked nothing.
	"$ASSURE" trace --quiet -- "${space[@]}" sh -c '"$1" dns sendto; bash -c "exec 3<>/dev/tcp/127.0.0.1/4434"; true' sh \
		"$PROGRAMS/options_calls" >out 2>&1
	assert_effect --count 1 kind=net.connect peer.port=4434 note!
else
	skip_part 'questions to a name server (there are no network namespaces for us)'
fi

# --- services that act for whoever asks them
mkdir -p run/docker tmux-0 ssh-abc etc/cron.d
cat >serve.py <<'END'
import os, socket
names = ["run/docker.sock", "tmux-0/default", "ssh-abc/agent.12", "plain.sock", "\0/tmp/dbus-%d" % os.getppid(), "late/docker.sock"]
kept = []
for name in names[:-1]:
    server = socket.socket(socket.AF_UNIX)
    server.bind(name)
    server.listen()
    kept.append(server)
    client = socket.socket(socket.AF_UNIX)
    client.connect(name)
    kept.append(client)
datagram = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
os.unlink("tmux-0/default")
datagram.bind("tmux-0/default")
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", "tmux-0/default")
os.symlink("run/docker.sock", "alias.sock")
socket.socket(socket.AF_UNIX).connect("alias.sock")
try:
    socket.socket(socket.AF_UNIX).connect(names[-1])
except OSError:
    pass
END
traced -- /usr/bin/python3 serve.py || fail 'services'
connected() { assert_effect --count 1 kind=ipc.connect "$@"; }
connected delegated=docker as_given=run/docker.sock "peer.path=$PWD/run/docker.sock" peer.object.type=socket
connected delegated=tmux "peer.path=$PWD/tmux-0/default"
assert_effect --count 1 kind=ipc.send delegated=tmux "peer.path=$PWD/tmux-0/default"
connected delegated=ssh-agent "peer.path=$PWD/ssh-abc/agent.12"
connected delegated=dbus peer.path~'^@/tmp/dbus-'
connected delegated! "peer.path=$PWD/plain.sock"
# A link to a service is the service, and one that is not there was asked for.
connected delegated=docker as_given=alias.sock
connected delegated=docker as_given=late/docker.sock
assert_effect --none kind=net.bind delegated?
assert_effect --count 7 delegated?
assert_contains "$(assure show last)" '^ +7  delegated' 'show'
mkdir -p .config/systemd/user lib/systemd/system
traced -- sh -c 'echo x >.config/systemd/user/x.service; cat .config/systemd/user/x.service; mv .config/systemd/user/x.service y
	mv y lib/systemd/system/y.service; ln lib/systemd/system/y.service z' >/dev/null
assert_effect --count 1 kind=file.create delegated=systemd
assert_effect --none kind=file.read delegated?
assert_effect --at-least 1 kind=file.rename delegated=systemd "to.path=$PWD/lib/systemd/system/y.service"
exit 0
