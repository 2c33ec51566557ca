#!/usr/bin/env python3
"""A host key that is sealed with a passphrase: asked for on a terminal or read from a descriptor, never seen, never left to the command."""
import json
import os
import pathlib
import pty
import subprocess
import sys
import time

ASSURE, HOME, ROOT = os.environ["ASSURE"], os.environ["ASSURE_HOME"], os.environ["IDENTITY"] == "root"
SECRET = b"correct horse battery"


def fail(what):
    sys.exit(f"FAIL: {what}")


def call(*words, passphrase=None, status=0):
    """Without a terminal."""
    reading, writing = os.pipe()
    os.write(writing, (passphrase or b"") + b"\nnot for the command\n")
    os.close(writing)
    more = ["--passphrase-fd", str(reading)] if passphrase is not None else []
    place = 2 if words[0] == "trace" else len(words)
    done = subprocess.run([ASSURE, *words[:place], *more, *words[place:]], stdin=subprocess.DEVNULL, capture_output=True, check=False,
                          pass_fds=(reading,), start_new_session=True, text=True)
    os.close(reading)
    if done.returncode != status:
        fail(f"{words} ended with {done.returncode}, not {status}: {done.stderr}")
    if SECRET.decode() in done.stdout + done.stderr:
        fail(f"{words} shows the passphrase")
    return done.stdout, done.stderr


def on_terminal(words, answers):
    """What is on the terminal, and the status; an answer is typed when what it answers was asked."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(ASSURE, [ASSURE, *words])
    shown, end = b"", time.monotonic() + 30
    for question, answer in answers:
        while question not in shown:
            if time.monotonic() > end:
                fail(f"{words}: not asked for [{question}]: {shown}")
            try:
                shown += os.read(terminal, 4096)
            except OSError:
                fail(f"{words}: ended without asking [{question}]: {shown}")
        time.sleep(0.05)
        os.write(terminal, answer)
        shown = b""
    rest = shown
    try:
        while piece := os.read(terminal, 4096):
            rest += piece
    except OSError:
        pass
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(terminal)
    if SECRET in rest:
        fail(f"{words}: the passphrase is on the screen: {rest}")
    return status, rest


def key():
    return json.loads(call("keys", "show", "--json")[0])


def exposed():
    record = json.loads(call("show", "last", "--json")[0])
    return record.get("key_exposed")


call("keys", "init")
first = key()
if first["sealed"]:
    fail("a new key is sealed")
call("trace", "--quiet", "--", "true")
if exposed() != "same-uid":
    fail(f"an open key is exposed as {exposed()}")

call("keys", "seal", passphrase=SECRET)
sealed = key()
if not sealed["sealed"] or sealed["fingerprint"] != first["fingerprint"]:
    fail(f"sealed: {sealed}")
text = pathlib.Path(HOME, "keys", "host.key").read_text(encoding="ascii")
if not text.startswith("assure.sealed-key/1 argon2id13 ") or pathlib.Path(HOME, "keys", "host.key").stat().st_mode & 0o77:
    fail(f"the file of the key: {text}")
if "sealed already" not in call("keys", "seal", passphrase=SECRET, status=1)[1]:
    fail("sealed twice")

# Without it nothing runs, and it is said what to do.
error = call("trace", "--quiet", "--", "touch", "ran", status=125)[1]
if "--passphrase-fd" not in error or os.path.exists("ran"):
    fail(f"without a passphrase: {error}")
error = call("trace", "--quiet", "--", "touch", "ran", passphrase=b"wrong", status=125)[1]
if "passphrase is wrong" not in error or os.path.exists("ran"):
    fail(f"with a wrong one: {error}")

# With it, the command has neither the descriptor nor what is left in it.
call("trace", "--quiet", "--", "sh", "-c", 'ls -l /proc/self/fd >fds; cat /proc/self/environ >lines; '
     'for p in /proc/[0-9]*; do cat $p/cmdline 2>/dev/null; done >>lines; true', passphrase=SECRET)
if SECRET in pathlib.Path("lines").read_bytes():
    fail("the passphrase is in an environment or a command line")
if "pipe:" in [line.split()[-1] for line in pathlib.Path("fds").read_text(encoding="utf-8").splitlines() if " 3 " in line]:
    fail("the command has the descriptor")
if exposed() != ("same-uid" if ROOT else None):
    fail(f"a sealed key is exposed as {exposed()}")
call("verify", "last")

# On a terminal it is asked for, unseen; the command then has the terminal as it was.
status, shown = on_terminal(["trace", "--quiet", "--", "sh", "-c", "stty -a | grep -o ' echo '; exit 5"],
                            [(b"passphrase of the host key", SECRET + b"\n")])
if status != 5 or b" echo " not in shown:
    fail(f"on a terminal: {status}, {shown}")
status, shown = on_terminal(["trace", "--quiet", "--", "touch", "ran"], [(b"passphrase of the host key", b"\x03")])
if status != 125 or os.path.exists("ran"):
    fail(f"interrupted: {status}, {shown}")

# What else needs the key.
call("keys", "rotate", status=1)
call("keys", "rotate", passphrase=SECRET)
rotated = key()
if not rotated["sealed"] or rotated["fingerprint"] == first["fingerprint"]:
    fail(f"rotated: {rotated}")
call("trace", "--quiet", "--", "true", passphrase=SECRET)
call("verify", "last")
call("export", "last", "--format", "intoto", "--output", "stated", passphrase=SECRET)
call("verify", "./stated")
call("log", "verify")
call("keys", "unseal", passphrase=b"wrong", status=1)
call("keys", "unseal", passphrase=SECRET)
if key() != {**rotated, "sealed": False}:
    fail(f"unsealed: {key()}")
call("trace", "--quiet", "--", "true")

status, shown = on_terminal(["keys", "seal"], [(b"new passphrase", SECRET + b"\n"), (b"once more", b"other\n")])
if status != 1 or key()["sealed"]:
    fail(f"two that differ: {status}, {shown}")
status, shown = on_terminal(["keys", "seal"], [(b"new passphrase", SECRET + b"\n"), (b"once more", SECRET + b"\n")])
if status != 0 or not key()["sealed"]:
    fail(f"sealed on a terminal: {status}, {shown}")

# A file that demands too much, or is cut, is no key.
path = pathlib.Path(HOME, "keys", "host.key")
good = path.read_text(encoding="ascii")
words = good.split(" ")
for change in (good[:-1], good + "\n", good.replace("argon2id13", "argon2i13"), " ".join(words[:2] + ["17"] + words[3:]),
               " ".join(words[:3] + [str(2 << 30)] + words[4:]), " ".join(words[:4] + ["AAAA"] + words[5:]), good * 2, ""):
    path.write_text(change, encoding="ascii")
    if "does not hold a key" not in call("trace", "--quiet", "--", "true", passphrase=SECRET, status=125)[1]:
        fail(f"a key that is none was taken: {change}")
path.write_text(" ".join(words[:6] + ["AAAA" + words[6][4:]] + words[7:]), encoding="ascii")
if "passphrase is wrong" not in call("trace", "--quiet", "--", "true", passphrase=SECRET, status=125)[1]:
    fail("a box that was changed opened")
path.write_text(good, encoding="ascii")
call("trace", "--quiet", "--", "true", passphrase=SECRET)
