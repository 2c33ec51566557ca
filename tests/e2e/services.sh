#!/usr/bin/env bash
# timeout: 120
# Who is asked: services of the tree's own, and those of somebody else. What is said of mounts, and what is not.
. "$(dirname "$0")/lib.sh"

cat >serve.py <<'END'
import os, socket, sys
# With "only" it serves somebody else's tree until its input ends.
servers = []
for address in sys.argv[2:]:
    server = socket.socket(socket.AF_UNIX)
    server.bind(("\0" + address[1:]) if address[0] == "@" else address)
    server.listen()
    servers.append((server, address))
if sys.argv[1] == "only":
    print("ready", flush=True)
    sys.stdin.read()
    sys.exit()
for server, address in servers:
    if os.fork() == 0:
        socket.socket(socket.AF_UNIX).connect(server.getsockname())
        os._exit(0)
    os.wait()
END
cat >ask.py <<'END'
import socket, sys
for address in sys.argv[1:]:
    try:
        socket.socket(socket.AF_UNIX).connect(("\0" + address[1:]) if address[0] == "@" else address)
    except OSError:
        pass
END

own="@assure-own-$$" other="@assure-other-$$"
traced -- /usr/bin/python3 serve.py self "$own" ./own.sock || fail "a server and its client"
assert_effect --count 1 kind=ipc.connect "peer.path=$own" delegated!
assert_effect --count 1 kind=ipc.connect "peer.path*=*/own.sock" delegated!

coproc /usr/bin/python3 serve.py only "$other" ./other.sock
read -r ready <&"${COPROC[0]}"
assert_eq ready "$ready" "the other server"
traced -- /usr/bin/python3 ask.py "$other" ./other.sock ./absent.sock || fail "a client"
assert_effect --count 1 kind=ipc.connect "peer.path=$other" delegated=outside
assert_effect --count 1 kind=ipc.connect "peer.path*=*/other.sock" delegated=outside
# Nobody is there to do anything.
assert_effect --count 1 kind=ipc.connect "peer.path*=*/absent.sock" delegated!
eval "exec ${COPROC[1]}>&-"

# Times without a path are those of the descriptor, which need not have been opened for writing.
: >file
traced -- /usr/bin/python3 -c '
import os
fd = os.open("file", os.O_RDONLY)
os.utime(fd, (1, 2))' || fail "utime of a descriptor"
assert_eq 2 "$(stat -c %Y file)" "the time of the file"
assert_effect --count 1 kind=file.times "path*=*/file" result.state=ok how=performed

[ "$(id -u)" = 0 ] || { skip_part "mounts (needs root)"; exit 0; }
mkdir lower upper work place
unshare -m true 2>/dev/null || { skip_part "mounts (no namespaces here)"; exit 0; }
traced -- unshare -m sh -c 'mount -t tmpfs -o size=1m,password=geheim,mode=700,context="teil",geheimer none place
	mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work none place' >/dev/null 2>&1
/usr/bin/python3 - "$ASSURE" <<'END' || fail "mounts"
import json, subprocess, sys
text = subprocess.run([sys.argv[1], "effects", "last", "--json"], check=True, capture_output=True, text=True).stdout
mounts = [json.loads(line) for line in text.splitlines() if '"mount.change"' in line]
assert mounts and not any("geheim" in json.dumps(effect.get("args")) or "teil" in json.dumps(effect.get("args"))
                          for effect in mounts), mounts
assert any("upperdir" in str(effect["args"].get("data")) or
           (effect["args"].get("key") == "upperdir" and effect["args"].get("value", "").endswith("upper"))
           for effect in mounts), mounts
END
