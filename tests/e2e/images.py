#!/usr/bin/python3
"""Execs of every kind: what is recorded is what the program that was started knows of itself."""
# timeout: 120
import base64
import json
import os
import re
import shutil
import subprocess
import sys

ASSURE, CALLS = os.environ["ASSURE"], os.environ["PROGRAMS"] + "/images_calls"
ROOT = os.environ["IDENTITY"] == "root"
HERE = os.getcwd()
PROGRAM = HERE + "/program"


class Fault(Exception):
    """One scene failed; the others are played all the same."""


def fail(what):
    raise Fault(what)


def run(*command, environment=None, status=0):
    done = subprocess.run([ASSURE, "trace", "--quiet", "--", *command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=50, env=environment)
    if done.returncode != status:
        fail(f"{command}: status {done.returncode}: {done.stderr[-500:]!r}")
    return done.stdout.decode().splitlines()


def execs():
    done = subprocess.run([ASSURE, "effects", "last", "--json", "--kind", "proc.exec"], stdout=subprocess.PIPE,
                          check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def strings(items):
    return [os.fsencode(i) if isinstance(i, str) else base64.b64decode(i["b64"], validate=True) for i in items]


class Report:
    """What a program printed of itself."""

    def __init__(self, line):
        self.dev, self.ino, name, arguments = line.split(" ")
        self.name = bytes.fromhex(name)
        self.argv = [bytes.fromhex(item) for item in arguments.split(",")[1:]]


def compare(effect, report, what, **wanted):
    """Its own knowledge, and what the test knows besides."""
    image = effect.get("image", {})
    if effect["result"] != {"state": "ok"} or effect["how"] != "verified":
        fail(f"{what}: {effect['result']}, {effect['how']}")
    if (image.get("dev"), image.get("ino")) != (report.dev, report.ino):
        fail(f"{what}: the image is {image}, but the program has {report.dev} {report.ino}")
    holder = image if "argv" in image else effect
    total, argv = holder.get("argv_total"), strings(holder["argv"])
    if total is None and argv != report.argv:
        fail(f"{what}: the record has {argv}, the program {report.argv}")
    if total is not None:
        kept = argv[:-1] if "cut" in effect.get("args", {}) else argv
        if total != len(report.argv) or kept != report.argv[:len(kept)] or len(kept) < 1:
            fail(f"{what}: {len(argv)} of {total} arguments, the program has {len(report.argv)}")
        if not report.argv[len(argv) - 1].startswith(argv[-1]):
            fail(f"{what}: the last argument does not begin so")
    if image.get("argv") == effect["argv"]:
        fail(f"{what}: image.argv says nothing new")
    if "note" in effect:
        fail(f"{what}: {effect['note']}")
    for key, value in wanted.items():
        found = image.get("interpreters", []) if key == "interpreters" else image.get("path") if key == "image" else \
            effect.get(key)
        if found != value:
            fail(f"{what}: {key} is {found}, not {value}")


def identity(path, follow=True):
    status = os.stat(path, follow_symlinks=follow)
    return {"dev": f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}", "ino": str(status.st_ino)}


def way(*arguments, **wanted):
    """One way of images_calls that starts one program, or several alike."""
    lines = run(CALLS, *arguments)
    effects = execs()[1:]
    if not lines or len(effects) != len(lines):
        fail(f"{arguments}: {len(effects)} records, and the programs said {lines}")
    for effect, line in zip(effects, lines):
        if " " not in line or line.startswith(("error ", "status ")):
            fail(f"{arguments}: {line}")
        compare(effect, Report(line), arguments, **wanted)
    return effects


def script(name, text):
    with open(name, "wb") as out:
        out.write(text)
        os.fchmod(out.fileno(), 0o755)
    return f"{HERE}/{name}"


def plain():
    for name, argv in (("program", ["program"]), ("./program", [""]), (PROGRAM, ["", "", "a b", "\n", "ü"]),
                       ("inner/../program", ["x", "program", "./program"])):
        way("plain", name, *argv, argv=argv, path=PROGRAM, image=PROGRAM, interpreters=[], **identity("program"))
    way("plain", "link", "a", path=HERE + "/link", image=PROGRAM, **identity("link", follow=False))
    way("plain", "program", PROGRAM, "program", argv=[PROGRAM, "program"], interpreters=[])
    run(CALLS, "plain", "program", b"\xff\xfe", b"\x01")
    if strings(execs()[1]["argv"]) != [b"\xff\xfe", b"\x01"]:
        fail(f"bytes as arguments: {execs()[1]['argv']}")


def without_arguments():
    for kind in ("none", "null"):
        effect = way(kind, "program", argv=[], path=PROGRAM)[0]
        # Since 5.18 the kernel gives an empty argument to who was given none.
        if effect["image"].get("argv") not in (None, [""]):
            fail(f"{kind}: {effect['image']}")
        script("bare", f"#!{PROGRAM}\n".encode())
        way(kind, "bare", argv=[], interpreters=[PROGRAM])


def scripts():
    """Every form of a #! line that the kernel takes, and what it makes of it."""
    for number, (line, argument) in enumerate((
            (b"#!%s\n", None), (b"#! \t%s \t \nrest", None), (b"#!%s one\n", b"one"), (b"#!%s one two  \n", b"one two"),
            (b"#!%s", None), (b"#!%s end", b"end"), (b"#!%s ", b""), (b"#!%s one\r\n", b"one\r"),
            (b"#!%s \xff\xfe\n", b"\xff\xfe"), (b"#!%s\0x\n", None), (b"#!%s " + b"l" * 300 + b"\n", "long"))):
        name = f"script-{number}"
        path = script(name, line % PROGRAM.encode())
        if argument == "long":
            argument = b"l" * (255 - 3 - len(PROGRAM))
        effect = way("plain", name, "zero", "one", path=path, argv=["zero", "one"], image=PROGRAM,
                     interpreters=[PROGRAM], **identity(name))[0]
        wanted = [PROGRAM.encode()] + ([] if argument is None else [argument]) + [name.encode(), b"one"]
        if strings(effect["image"]["argv"]) != wanted:
            fail(f"{line}: {effect['image']['argv']}, not {wanted}")
    shutil.copy("program", "program\r")
    script("crlf", f"#!{PROGRAM}\r\n".encode())
    way("plain", "crlf", "z", interpreters=[PROGRAM + "\r"], image=PROGRAM + "\r")
    script("relative", b"#!./program ./program\n")
    way("plain", "relative", "z", "relative", interpreters=["./program"], image=PROGRAM)


def nested():
    chain = []
    below = PROGRAM
    for depth in range(1, 6):
        path = script(f"nested-{depth}", f"#!{below}{' argument' if depth % 2 else ''}\n".encode())
        chain = [below, *chain]
        way("plain", f"./nested-{depth}", "z", "y", path=path, argv=["z", "y"], interpreters=chain, image=PROGRAM)
        below = path
    script("nested-6", f"#!{below}\n".encode())
    if run(CALLS, "plain", "nested-6", "z") != ["error ELOOP"] or execs()[1]["result"].get("errno") != "ELOOP":
        fail(f"six scripts: {execs()[1]['result']}")


def descriptors():
    by_flag, by_link = way("memfd", "program", "m", argv=["m"], image="/memfd:made here (deleted)", interpreters=[])
    if (by_flag["path"], by_flag["ino"]) != ("/memfd:made here (deleted)", by_flag["image"]["ino"]):
        fail(f"memfd: {by_flag}")
    if not by_link["as_given"].startswith("/dev/fd/") or by_link["type"] != "symlink":
        fail(f"memfd by its name in /dev/fd: {by_link}")
    way("memfd-closing", "program", "m", argv=["m"], image="/memfd:made here (deleted)")
    script("plain-script", f"#!{PROGRAM} -x\n".encode())
    effects = way("memfd", "plain-script", "m", "n", argv=["m", "n"], image=PROGRAM, interpreters=[PROGRAM])
    for effect in effects:
        if not re.fullmatch("/dev/fd/[0-9]+", effect["image"]["argv"][2]) or effect["image"]["argv"][3:] != ["n"]:
            fail(f"a script behind a descriptor: {effect['image']}")
    # The interpreter could not open it: the kernel says so before anything runs.
    if run(CALLS, "memfd-closing", "plain-script", "m")[0] != "error ENOENT" or \
            execs()[1]["result"].get("errno") != "ENOENT":
        fail(f"a script that closes: {execs()[1]['result']}")
    way("deleted", "program", "d", argv=["d"], image=HERE + "/doomed (deleted)")
    way("directory", "program", "d", argv=["d"])
    if [e["path"] for e in execs()[1:]] != [PROGRAM, HERE + "/inner/program"]:
        fail(f"execveat: {[e['path'] for e in execs()[1:]]}")
    script("in-script", f"#!{PROGRAM}\n".encode())
    shutil.copy("in-script", "inner/in-script")
    # The first folder is closed by the exec: its script could not be opened.
    lines = run(CALLS, "directory", "in-script", "a", "b")
    effects = execs()[1:]
    if lines[0] != "error ENOENT" or effects[0]["result"].get("errno") != "ENOENT":
        fail(f"a script below a descriptor that closes: {lines}, {effects[0]['result']}")
    compare(effects[1], Report(lines[1]), "a script below a descriptor", argv=["a", "b"], interpreters=[PROGRAM],
            path=HERE + "/inner/in-script")


def tasks():
    way("thread", "program", "t", argv=["t"], path=PROGRAM)
    if execs()[1]["process"]["pid"] == execs()[1]["process"]["tid"]:
        fail("that was the first thread")
    script("threaded", f"#!{PROGRAM}\n".encode())
    way("thread", "./threaded", "t", "u", argv=["t", "u"], interpreters=[PROGRAM])
    if len(way("spawn", "program", "s", "t", argv=["s", "t"], image=PROGRAM)) != 2:
        fail("posix_spawn and vfork")


def by_hand():
    loader = re.search(r"(/\S*ld-\S+)", subprocess.run(["ldd", "program"], stdout=subprocess.PIPE,
                                                       check=True).stdout.decode()).group(1)
    run(CALLS, "plain", loader, loader, PROGRAM, "one")
    effect = execs()[1]
    image = effect["image"]
    if effect["argv"] != [loader, PROGRAM, "one"] or "argv" in image or "interpreters" in image or \
            image["ino"] != identity(loader)["ino"] or image["path"] != os.path.realpath(loader) or "note" in effect:
        fail(f"the loader run by hand: {effect}")


def unreadable():
    """Who may run a program and not read it may not look at the process either, but its arguments are public."""
    shutil.copy("program", "closed-program")
    os.chmod("closed-program", 0o111)
    lines = run(CALLS, "plain", "closed-program", "u", "v")
    if ROOT:
        compare(execs()[1], Report(lines[0]), "mode 111", argv=["u", "v"], path=HERE + "/closed-program")
        return
    effect = execs()[1]
    if effect["argv"] != ["u", "v"] or effect["result"]["state"] != "ok" or "note" in effect or \
            effect["ino"] != identity("closed-program")["ino"]:
        fail(f"mode 111: {effect}")
    script("closing", f"#!{HERE}/closed-program x\n".encode())
    run(CALLS, "plain", "closing", "u", "v")
    effect = execs()[1]
    if effect["argv"] != ["u", "v"] or effect["image"]["interpreters"] != [HERE + "/closed-program"]:
        fail(f"a script for mode 111: {effect}")


def large():
    way("many", "program", image=PROGRAM, interpreters=[])
    script("many-script", f"#!{PROGRAM} x\n".encode())
    way("many", "many-script", image=PROGRAM, interpreters=[PROGRAM])


def failures():
    with open("closed", "w", encoding="utf-8") as out:
        out.write("#!/bin/sh\n")
    script("formless", b"neither\n")
    script("no-interpreter", b"#!/no/such/program\n")
    script("blank", b"#!  \n")
    script("too-long", b"#!/" + b"i" * 300 + b"\n")
    os.symlink("round", "round")
    shutil.copy("program", "busy")
    names = ["missing", "missing/x", "", "closed", "inner", "formless", "no-interpreter", "blank", "too-long", "round",
             "program/x", "y" * 256]
    wanted = ["ENOENT", "ENOENT", "ENOENT", "EACCES", "EACCES", "ENOEXEC", "ENOENT", "ENOEXEC", "ENOEXEC", "ELOOP",
              "ENOTDIR", "ENAMETOOLONG", "E2BIG", "ETXTBSY"]
    lines = run(CALLS, "failing", *names)
    effects = execs()[1:]
    if lines != ["error " + w for w in wanted]:
        fail(f"the calls themselves: {lines}")
    found = [e["result"].get("errno") for e in effects]
    if found != wanted:
        fail(f"errors: {found}, not {wanted}")
    if [e for e in effects if "image" in e or "note" in e or e["how"] not in ("verified", "performed")]:
        fail(f"failed, and yet: {effects}")
    lines = run(CALLS, "search", "program", "found")
    effects = execs()[1:]
    if len(effects) != 91 or [e for e in effects[:-1] if e["result"].get("errno") != "ENOENT"]:
        fail(f"a search: {len(effects)} execs")
    compare(effects[-1], Report(lines[0]), "found at last", argv=["found"])


def other_views():
    """In a root and in a mount namespace of their own: names as the task sees them."""
    prefix = [] if ROOT else ["unshare", "-Ur"]
    listed = subprocess.run(["ldd", "program"], stdout=subprocess.PIPE, check=True).stdout.decode()
    os.mkdir("root")
    for library in re.findall(r"(/\S+)", listed):
        os.makedirs("root" + os.path.dirname(library), exist_ok=True)
        shutil.copy(library, "root" + library)
    shutil.copy("program", "root/program")
    os.mkdir("root/proc")
    with open("root/script", "w", encoding="utf-8") as out:
        out.write("#!/program x\n")
        os.fchmod(out.fileno(), 0o755)
    if subprocess.run([*prefix, "chroot", "root", "/program"], check=False, stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL).returncode not in (0, 1):
        print("skip: programs in another root (no chroot here)")
        return
    for name, chain in (("/program", None), ("/script", ["/program"])):
        run(*prefix, CALLS, "chroot", name, "z", "y")
        effect = execs()[-1]
        if (effect["path"], effect["image"]["path"], effect["argv"], effect["image"].get("interpreters"),
                effect["image"]["ino"]) != (name, "/program", ["z", "y"], chain, identity("root/program")["ino"]) or \
                effect["image"]["host_path"] != HERE + "/root/program" or "note" in effect:
            fail(f"{name} in another root: {effect}")
    spaces = ["unshare", "-m"] if ROOT else ["unshare", "-Urm"]
    mounting = f"mount --bind {HERE}/inner /mnt && REPORT=1 /mnt/program z"
    if subprocess.run([*spaces, "sh", "-c", mounting], check=False, stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL).returncode != 0:
        print("skip: programs in another mount namespace (there can be none)")
        return
    lines = run(*spaces, "sh", "-c", mounting)
    compare(execs()[-1], Report(lines[0]), "on a mount of its own", path="/mnt/program", image="/mnt/program",
            argv=["/mnt/program", "z"])


def main():
    shutil.copy(CALLS, "program")
    os.mkdir("inner")
    shutil.copy("program", "inner/program")
    os.symlink("program", "link")
    bad = []
    for scene in (plain, without_arguments, scripts, nested, descriptors, tasks, by_hand, unreadable, large, failures, other_views):
        try:
            scene()
        except Fault as fault:
            bad.append(f"{scene.__name__}: {fault}")
    if bad:
        sys.exit("\n".join("FAIL: " + line for line in bad))


main()
