#!/usr/bin/python3
"""What real runs leave, and what the commands print, is what specs/schema/ says, and nothing that it does not say.

A published schema lets a reader ignore what it does not know, because fields are added over time. Of our own output
everything has to be known, so that here every object that lists its properties is closed.
"""
# timeout: 180
import base64
import copy
import glob
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print("skip: the module jsonschema (python3-jsonschema) is not there")
    sys.exit(77)

ASSURE = os.environ["ASSURE"]
STATE = pathlib.Path(os.environ["ASSURE_HOME"])
SCHEMAS = pathlib.Path(__file__).resolve().parent / "schemas"

SHELL = r"""
set -u
mkdir d; cd d
n=$(printf 'line\nbreak'); b=$(printf 'bad\377\376'); t=$(printf 'tab\there "quote" \\ \033[31m')
for name in "$n" "$b" "$t" 'ümläut' '-dash'; do
	echo x >"./$name"; cat "./$name" "./$name" >/dev/null; ln -s "./$name" "./$name.s"; ln "./$name" "./$name.l"
	mv "./$name" "./$name.m"; chmod 600 "./$name.m"; touch -d @0 "./$name.m"; truncate -s 5 "./$name.m"
done
mkdir "$b.d" && cp /bin/true "$b.d/$b" && (cd "$b.d" && "./$b" "$b" "$n")
mkfifo p; setfattr -n user.x -v "$b" ./-dash.m; rm -rf ./*.m; rmdir missing
./missing; ./-dash.s; /; echo '#!/missing' >script; chmod 755 script; ./script; printf '#!/bin/sh\nexit 3' >ok
chmod 755 ok; ./ok
sleep 30 & kill -9 $!; wait
sh -c 'kill -TERM $$'; sh -c 'kill -0 1; kill -0 999999'
exit 5
"""
SOCKETS = r"""
import array, ctypes, mmap, os, socket, struct
tcp = socket.create_server(("127.0.0.1", 0))
a = socket.create_connection(tcp.getsockname()); b, _ = tcp.accept()
six = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
for target in (("::1", 1), ("2001:db8::1", 9)):
    six.settimeout(0.2)
    try: six.connect(target)
    except OSError: pass
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("127.0.0.1", 0)); udp.sendto(b"x", udp.getsockname()); udp.sendmsg([b"y"], [], 0, udp.getsockname())
udp.sendto(b"\x12\x34\x01\0\0\1\0\0\0\0\0\0\3www\7example\0\0\1\0\1", ("127.0.0.1", 53))
for name in ("\0abstract\xff", b"\0\xff\xfe", b"unix\xff", "unix"):
    s = socket.socket(socket.AF_UNIX); s.bind(name); s.listen()
    c = socket.socket(socket.AF_UNIX); c.connect(name); d, _ = s.accept()
x, y = socket.socketpair()
socket.send_fds(x, [b"m"], [0, 1]); socket.recv_fds(y, 10, 5)
for family, kind, protocol in ((17, 3, 0x300), (2, 3, 1), (16, 3, 0), (16, 3, 9)):
    try:
        n = socket.socket(family, kind, protocol)
        n.bind((0, 0)) if family == 16 else None
    except OSError: pass
fd = os.open("mapped", os.O_RDWR | os.O_CREAT); os.ftruncate(fd, 4096)
m = mmap.mmap(fd, 4096); m[0:1] = b"x"
libc = ctypes.CDLL(None)
libc.syscall(425, 1, 0); libc.syscall(321, 0, 0, 0); libc.syscall(157, 38, 1, 0, 0, 0)
libc.syscall(2, 0, 0, 0)
for call in (lambda: os.setuid(os.getuid()), lambda: os.chroot("/missing"), lambda: os.sched_setaffinity(0, {0})):
    try: call()
    except OSError: pass
"""
SANDBOXES = ["sh", "-c", "bwrap --dev-bind / / --unshare-all true; unshare -Ur sh -c 'echo $$'; unshare -Urm true; "
             "unshare -Urpf --mount-proc ps >/dev/null; unshare -Urm mount -t tmpfs none /mnt; true"]
GIT = ["sh", "-c", "git init -q g && cd g && git config user.email a@b && git config user.name n && echo a >a && git "
       "add a && git commit -qm m && git clone -q . ../h && git log --oneline >/dev/null"]
RING = "import ctypes; ctypes.CDLL(None).syscall(425, 1, ctypes.create_string_buffer(120))"


def fail(text):
    sys.exit(f"FAIL: {text}")


def closed(node):
    """The schema in which nothing may be there that is not listed."""
    if isinstance(node, list):
        return [closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: closed(value) for key, value in node.items()}
    if isinstance(node.get("properties"), dict) and node.get("type") == "object":
        node["additionalProperties"] = False
    return node


def validators():
    found = {}
    for path in sorted(SCHEMAS.glob("*.json")):
        schema = json.loads(path.read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        name = schema["properties"]["schema"]["const"]
        if name != "assure." + path.stem.replace("-", "/"):
            fail(f"{path.name} describes {name}")
        found[name] = (jsonschema.Draft202012Validator(schema), jsonschema.Draft202012Validator(closed(schema)))
    return found


VALIDATORS = validators()


def ordered(pairs):
    """Canonical JSON: keys in order, each once."""
    keys = [key for key, _ in pairs]
    if keys != sorted(set(keys), key=lambda k: k.encode("utf-16-be", "surrogatepass")):
        fail(f"keys are not in order: {keys}")
    return dict(pairs)


def strings(value, where=""):
    """Rules that hold for all records and that JSON Schema cannot say."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key.endswith("b64") and isinstance(item, str):
                try:
                    base64.b64decode(item, validate=True).decode()
                except UnicodeDecodeError:
                    pass
                else:
                    fail(f"{where}.{key} is valid UTF-8 and need not be Base64: {item}")
                if key != "b64" and key[:-4] in value:
                    fail(f"{where}.{key} stands beside {key[:-4]}")
            strings(item, f"{where}.{key}")
    elif isinstance(value, list):
        for item in value:
            strings(item, where + "[]")
    elif value is None:
        fail(f"{where} is null")
    elif isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**53:
        fail(f"{where} is too large for a number: {value}")


def check(text, what):
    text = text.decode("utf-8")
    document = json.loads(text, object_pairs_hook=ordered)
    if json.dumps(document, ensure_ascii=False, separators=(",", ":")) != text:
        fail(f"{what}: not canonical: {text}")
    name = document.get("schema")
    if name not in VALIDATORS:
        fail(f"{what}: there is no schema for {name}")
    problem = jsonschema.exceptions.best_match(VALIDATORS[name][1].iter_errors(document))
    if problem:
        fail(f"{what}: {problem.message} at {list(problem.absolute_path)} in {text[:3000]}")
    strings(document)
    return document


def trace(name, command, options=()):
    done = subprocess.run([ASSURE, "trace", "--quiet", "--name", name, *options, "--", *command],
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if done.returncode == 125:
        fail(f"{name}: {done.stderr.decode(errors='replace')}")


def printed(*arguments):
    done = subprocess.run([ASSURE, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        fail(f"assure {arguments} ended with {done.returncode}")
    return done.stdout


def mutants(document):
    """(what was done, the document with it)"""
    for key in document:
        if key in VALIDATORS[document["schema"]][0].schema["required"]:
            yield f"without {key}", {k: v for k, v in document.items() if k != key}
        wrong = {"no": "object"} if not isinstance(document[key], dict) else [1]
        yield f"{key} of a wrong type", {**document, key: wrong}
    for key, value in (("mode", "12"), ("dev", "8"), ("time", "yesterday"), ("kind", "nothing")):
        if key in document and document["schema"] != "assure.tree/1":
            yield f"with {key} {value}", {**document, key: value}
    yield "of a wrong schema", {**document, "schema": "assure.nothing/1"}
    for path in ("process", "result", "image", "peer"):
        if isinstance(document.get(path), dict):
            if "sha256" in document[path]:
                yield "with a digest that is none", {**document, path: {**document[path], "sha256": "ab"}}
            for key, value in document[path].items():
                changed = copy.deepcopy(document)
                changed[path][key] = [value]
                yield f"{path}.{key} as a list", changed


def check_mutants(document):
    name = document["schema"]
    published, strict = VALIDATORS[name]
    for what, mutant in mutants(document):
        if published.is_valid(mutant):
            fail(f"the schema of {name} accepts one {what}: {json.dumps(mutant)[:600]}")
    extra = {**document, "unheard_of": 1}
    if not published.is_valid(extra) or strict.is_valid(extra):
        fail(f"{name}: unknown fields are for readers to ignore, and ours are all known")


def main():
    trace("shell", ["sh", "-c", SHELL])
    trace("everything", ["sh", "-c", SHELL.replace("mkdir d; cd d", "mkdir e; cd e")],
          ["--lens", "all", "--hash", "images"])
    trace("changes", ["sh", "-c", "echo x >f; exec cat f"], ["--lens", "changes"])
    trace("sockets", ["/usr/bin/python3", "-c", SOCKETS])
    trace("sandboxes", SANDBOXES)
    trace("git", GIT)
    trace("killed", ["sh", "-c", "sleep 0; kill -SEGV $$"])
    trace("uring", ["/usr/bin/python3", "-c", RING], ["--io-uring", "allow"])
    running = subprocess.Popen([ASSURE, "trace", "--quiet", "--name", "running", "--", "sleep", "40"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    samples, kinds, keys = {}, set(), set()
    for path in sorted(glob.glob(f"{STATE}/runs/*/run.sqlite")):
        rows = sqlite3.connect(path).execute("SELECT seq, type, json FROM records ORDER BY seq").fetchall()
        for number, (seq, schema, text) in enumerate(rows):
            document = check(text, f"record {seq} of {path}")
            if (document["seq"], document["schema"]) != (seq, schema) or seq != number:
                fail(f"{path}: row {seq} of {schema} holds {document['seq']} of {document['schema']}")
            samples.setdefault(schema, []).append(document)
            kinds.add(document.get("kind"))
            keys |= set(document)
    for name in ("shell", "everything", "sockets", "sandboxes", "git", "killed", "uring", "changes", "running"):
        for line in printed("effects", name, "--json").splitlines():
            check(line, f"effects of {name}")
        for command in ("show", "tree"):
            document = check(printed(command, name, "--json").rstrip(b"\n"), f"{command} of {name}")
            samples.setdefault(document["schema"], []).append(document)
    document = check(printed("runs", "--json").rstrip(b"\n"), "runs")
    samples[document["schema"]] = [document]
    running.send_signal(signal.SIGTERM)
    running.wait(30)

    wanted = {f"assure.{name}/1" for name in "run process effect reads gap end show tree runs".split()}
    if wanted - set(samples):
        fail(f"there was no {sorted(wanted - set(samples))}")
    for key in ("path_b64", "as_given_b64", "argv", "cwd_b64", "peer", "local", "to", "target", "image", "status",
                "args", "flags", "mode"):
        if key not in keys:
            fail(f"no record had {key}; the runs test too little")
    if len(kinds) < 20:
        fail(f"only {sorted(map(str, kinds))}")
    for documents in samples.values():
        for document in documents[:: max(1, len(documents) // 60)]:
            check_mutants(document)


main()
