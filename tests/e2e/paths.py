#!/usr/bin/python3
"""Names of every kind and places that are hard to name: what is recorded is what stat(2) says of it."""
# timeout: 120
import base64
import json
import os
import shutil
import subprocess
import sys

ASSURE = os.environ["ASSURE"]
ROOT = os.environ["IDENTITY"] == "root"
HERE = os.getcwdb()


class Fault(Exception):
    """One scene failed; the others are played all the same."""


def fail(what):
    raise Fault(what)


def traced(*command, status=0):
    done = subprocess.run([ASSURE, "trace", "--quiet", "--", *command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=50)
    if done.returncode != status:
        fail(f"{command[:2]}: status {done.returncode}: {done.stderr[-500:]!r}")
    return done.stdout


def python(script, *arguments, status=0):
    return traced("/usr/bin/python3", "-I", "-c", "import os, sys\n" + script, *arguments, status=status)


def effects():
    done = subprocess.run([ASSURE, "effects", "last", "--json"], stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def value(effect, name):
    """A string field as bytes, whichever form it has."""
    if name + "_b64" in effect:
        return base64.b64decode(effect[name + "_b64"], validate=True)
    return effect[name].encode() if name in effect else None


def the_one(what, **wanted):
    """The only effect with these fields; a value of bytes is a path."""
    found = []
    for effect in effects():
        if all((value(effect, k) if isinstance(v, bytes) else effect.get(k)) == v for k, v in wanted.items()):
            found.append(effect)
    if len(found) != 1:
        near = [(e["kind"], value(e, "path"), e.get("host_path"), e.get("as_given"), e["result"]) for e in effects()
                if e["kind"] not in ("file.read", "proc.exec")]
        fail(f"{what}: {len(found)} effects with {wanted}; there are {near[-12:]}")
    return found[0]


def same_inode(what, effect, status):
    number = f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"
    if (effect.get("dev"), effect.get("ino")) != (number, str(status.st_ino)):
        fail(f"{what}: {effect.get('dev')} {effect.get('ino')}, but stat says {number} {status.st_ino}")


WRITE = "os.close(os.open(sys.argv[1].encode('utf-8', 'surrogateescape'), os.O_WRONLY | os.O_CREAT, 0o600))"


def names():
    for name in (b"new\nline", b"quo'te\"s", b"\x1b[31mred\x1b]0;title\x07", b"not-utf8-\xff\xfe", b"back\\slash", b" ",
                 b"-rf", b"tab\t\r", "right\u202eleft\u2066".encode(), "c1\u0085\u009b".encode(), b"x" * 255,
                 "\u00e9".encode() * 127, b"half-\xe2\x82", b"surrogate-\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x7f",
                 b"*?[a]", b"%s%n"):
        python(WRITE, os.fsdecode(name))
        path = os.path.join(HERE, name)
        effect = the_one(f"name {name!r}", kind="file.create", path=path)
        same_inode(f"name {name!r}", effect, os.stat(path))
        for command in ("effects", "tree", "show"):
            done = subprocess.run([ASSURE, command, "last"], stdout=subprocess.PIPE, check=True)
            text = done.stdout.decode("utf-8")  # valid, whatever the name was
            bad = {c for c in text if (ord(c) < 32 and c != "\n") or 0x7f <= ord(c) < 0xa0 or c in "\u202e\u2066"}
            if bad:
                fail(f"{command} of {name!r} prints raw {bad!r}")
        # One effect, one line: a name cannot forge another.
        lines = subprocess.run([ASSURE, "effects", "last", "--kind", "file.create"], stdout=subprocess.PIPE, check=True)
        if lines.stdout.count(b"\n") != len([e for e in effects() if e["kind"] == "file.create"]):
            fail(f"name {name!r}: not one line for each effect: {lines.stdout!r}")
    python(WRITE, "y" * 256, status=1)
    if not [e for e in effects() if e["result"].get("errno") == "ENAMETOOLONG"]:
        fail("a name of 256 bytes: no ENAMETOOLONG")


def deep():
    """Deeper than any path can say: the whole name or at least the right inode."""
    python("""
name = 'd' * 200
for _ in range(30):
    os.mkdir(name)
    os.chdir(name)
os.close(os.open('deep', os.O_WRONLY | os.O_CREAT, 0o600))
print(os.stat('deep').st_ino)
""")
    effect = [e for e in effects() if e["kind"] == "file.create" and
              (e.get("as_given") == "deep" or e.get("path", "").endswith("/deep"))]
    if len(effect) != 1:
        fail(f"deep path: {len(effect)} effects")
    where = os.open(HERE, os.O_RDONLY)
    for _ in range(30):
        inner = os.open("d" * 200, os.O_RDONLY | os.O_DIRECTORY, dir_fd=where)
        os.close(where)
        where = inner
    same_inode("deep path", effect[0], os.stat("deep", dir_fd=where))
    path = effect[0].get("path")
    if path is not None and path != os.fsdecode(HERE) + ("/" + "d" * 200) * 30 + "/deep":
        fail(f"deep path: a wrong one of {len(path)} bytes: {path[:80]}…")
    os.close(where)
    shutil.rmtree("d" * 200)


def moved():
    os.makedirs("a/b")
    python("""
where = os.open('a/b', os.O_RDONLY)
os.rename('a', 'z')
os.close(os.open('f', os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=where))
os.chdir('z/b')
os.rename('../../z', '../../y')
os.close(os.open('g', os.O_WRONLY | os.O_CREAT, 0o600))
os.close(os.open('../h', os.O_WRONLY | os.O_CREAT, 0o600))
""")
    for path, then in ((b"z/b/f", b"y/b/f"), (b"y/b/g", b"y/b/g"), (b"y/h", b"y/h")):
        effect = the_one(f"renamed parent {path!r}", kind="file.create", path=os.path.join(HERE, path))
        same_inode(f"renamed parent {path!r}", effect, os.stat(then))
    python("""
os.mkdir('gone')
os.chdir('gone')
os.rmdir('../gone')
try:
    os.open('f', os.O_WRONLY | os.O_CREAT, 0o600)
except FileNotFoundError:
    pass
os.close(os.open('../beside-gone', os.O_WRONLY | os.O_CREAT, 0o600))
""")
    if not [e for e in effects() if e.get("as_given", e.get("path", "")).split("/")[-1] == "f"
            and e["result"].get("errno") == "ENOENT"]:
        fail("deleted cwd: no failed creation of f")
    effect = the_one("beside a deleted cwd", kind="file.create", path=os.path.join(HERE, b"beside-gone"))
    same_inode("beside a deleted cwd", effect, os.stat("beside-gone"))


def magic():
    """Links of /proc lead to the object, not to themselves; the agent's /proc/self is the agent's."""
    with open("target", "w", encoding="ascii") as file:
        file.write("x")
    os.symlink("target", "one")
    os.symlink("one", "two")
    os.symlink(os.fsdecode(HERE), "home")
    path = os.path.join(HERE, b"target")
    for name in ("/proc/self/fd/7", "/dev/fd/7", "/dev/stdin", "/proc/thread-self/fd/7", "/proc/{pid}/fd/7", "two",
                 "home/two", "home/../" + os.path.basename(os.fsdecode(HERE)) + "/one", "/proc/self/cwd/two",
                 "/proc/self/root" + os.fsdecode(path), ".//./target"):
        python("""
os.dup2(os.open('target', os.O_RDWR), 7)
os.dup2(7, 0)
os.close(os.open(sys.argv[1].format(pid=os.getpid()), os.O_WRONLY | os.O_TRUNC))
""", name)
        found = [e for e in effects() if e["kind"] == "file.write" and "O_TRUNC" in e.get("flags", ())]
        if len(found) != 1 or value(found[0], "path") != path:
            fail(f"{name}: {[(value(e, 'path'), e['result']) for e in found]}, wanted {path!r}")
        same_inode(name, found[0], os.stat("target"))
        if "as_given" not in found[0]:
            fail(f"{name}: as_given is missing")


OWN_SPACE = ["unshare", "--mount"] if ROOT else ["unshare", "--user", "--map-root-user", "--mount"]
CHROOT = ("import os; os.chroot('jail'); os.chdir('/'); "
          "os.close(os.open('/inner/f' + os.environ['NAME'], os.O_WRONLY | os.O_CREAT, 0o600))")


def chroots():
    """The agent's name for it, and the host's."""
    for name, prefix in (("plain", []), ("space", OWN_SPACE)):
        if prefix == [] and not ROOT:
            continue
        traced("env", f"NAME={name}", *prefix, "/usr/bin/python3", "-I", "-c", CHROOT)
        effect = the_one(f"chroot, {name}", kind="file.create", path=b"/inner/f" + name.encode(),
                         host_path=os.fsdecode(HERE) + "/jail/inner/f" + name)
        same_inode(f"chroot, {name}", effect, os.stat("jail/inner/f" + name))


def binds():
    traced(*OWN_SPACE, "sh", "-c", "mount --bind jail/inner show && echo x >show/bound")
    effect = the_one("bind mount", kind="file.create", path=os.path.join(HERE, b"show/bound"),
                     host_path=os.fsdecode(HERE) + "/jail/inner/bound")
    same_inode("bind mount", effect, os.stat("jail/inner/bound"))


def private():
    inode = traced(*OWN_SPACE, "sh", "-c",
                   "mount -t tmpfs none show && echo x >show/private && stat -c '%Hd:%Ld %i' show/private")
    effect = the_one("private tmpfs", kind="file.create", path=os.path.join(HERE, b"show/private"))
    if f"{effect.get('dev')} {effect.get('ino')}" != inode.decode().strip():
        fail(f"private tmpfs: {effect.get('dev')} {effect.get('ino')}, but stat says {inode!r}")
    if effect.get("host_path", "").startswith(os.fsdecode(HERE)):
        fail(f"private tmpfs: it is not on the host, but host_path says {effect['host_path']}")


def boxes():
    bwrap = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--bind", "jail", "/tmp", "--chdir", "/tmp"]
    if subprocess.run([*bwrap, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        print("skip: bwrap (it does not work here)")
        return
    traced(*bwrap, "sh", "-c", "echo x >inner/boxed")
    effect = the_one("bwrap", kind="file.create", path=b"/tmp/inner/boxed",
                     host_path=os.fsdecode(HERE) + "/jail/inner/boxed")
    same_inode("bwrap", effect, os.stat("jail/inner/boxed"))


def main():
    faults = 0
    scenes = [names, deep, moved, magic]
    os.makedirs("jail/inner")
    os.makedirs("show")
    if subprocess.run([*OWN_SPACE, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        print("skip: chroot and mount namespaces (there are no user namespaces for us)")
    else:
        scenes += [chroots, binds, private, boxes]
    for scene in scenes:
        try:
            scene()
        except Fault as fault:
            print(f"FAIL: {scene.__name__}: {fault}", file=sys.stderr)
            faults += 1
    sys.exit(1 if faults else 0)


main()
