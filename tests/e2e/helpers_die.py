#!/usr/bin/python3
"""Whichever of our processes is killed, whenever: the tree ends with it, the shell is told, and the run says why."""
# timeout: 180
import os
import random
import re
import signal
import subprocess
import sys
import time

ASSURE = os.environ["ASSURE"]
FULL = os.environ.get("ASSURE_TEST_FULL") == "yes"
ROUNDS = 20 if FULL else 4
LIMIT = 20.0
WRITER = "while :; do echo x >f; sleep 0.01; done"
BUSY = "while :; do :; done"
WIDE = "for i in 1 2 3 4; do (while :; do echo x >f$i; done) & done; (setsid sh -c 'while :; do sleep 0.02; done' &); wait"


def fail(what):
    print(f"FAIL: {what}", file=sys.stderr)
    sys.exit(1)


def processes():
    """pid: (comm, parent, state)."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:
                stat = file.read().decode(errors="replace")
        except OSError:
            continue
        rest = stat[stat.rindex(")") + 2:].split()
        found[int(entry)] = (stat[stat.index("(") + 1:stat.rindex(")")], int(rest[1]), rest[0])
    return found


def below(root):
    """All that descends from `root`, by role or pid."""
    everybody = processes()
    inside, grown = {root}, True
    while grown:
        more = {pid for pid, (_, parent, _) in everybody.items() if parent in inside} - inside
        inside |= more
        grown = bool(more)
    return {pid: everybody[pid][0] for pid in inside if pid in everybody}


def started(script, wait):
    process = subprocess.Popen([ASSURE, "trace", "--quiet", "--wait", wait, "--", "sh", "-c", script],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        tree = below(process.pid)
        if "sh" in tree.values():
            return process, tree
        time.sleep(0.002)
    fail(f"the agent did not begin: {tree}")
    return None


def still_there(pids):
    everybody = processes()
    return {pid: everybody[pid] for pid in pids if pid in everybody and everybody[pid][2] not in "ZX"}


def kill_one(role, script, wait):
    what = f"{role} killed, --wait {wait}, {script[:20]}…"
    process, _ = started(script, wait)
    time.sleep(random.choice((0, 0.001, 0.01, 0.1, 0.3)) * random.random() * 2)
    tree = below(process.pid)
    victims = [process.pid] if role == "guardian" else [p for p, comm in tree.items() if comm == f"assure-{role}"]
    if len(victims) != 1:
        fail(f"{what}: not one such process: {tree}")
    os.kill(victims[0], signal.SIGKILL)
    killed = time.monotonic()
    try:
        # Readers of its output see the end: nobody holds on to the pipes.
        _, errors = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        left = still_there(tree)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        fail(f"{what}: it did not end; there were {left}")
    while still_there(tree) and time.monotonic() < killed + 5:
        time.sleep(0.01)
    left = still_there(tree)
    if left:
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        fail(f"{what}: left behind: {left}")
    took = time.monotonic() - killed
    wanted = -signal.SIGKILL if role == "guardian" else 125
    if process.returncode != wanted:
        fail(f"{what}: status {process.returncode}, wanted {wanted}; {errors[-300:]!r}")
    if role != "guardian" and not re.search(rb"assure: the run is not complete", errors):
        fail(f"{what}: nothing was said: {errors[-300:]!r}")
    shown = subprocess.run([ASSURE, "show", "last"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, check=False)
    if shown.returncode not in (0, 2):
        fail(f"{what}: show ended with {shown.returncode}: {shown.stdout!r}")
    if not re.search(rb"incomplete|not complete", shown.stdout):
        fail(f"{what}: the run does not say that it is incomplete: {shown.stdout.decode()}")
    if role not in ("guardian", "scribe") and role.encode() not in shown.stdout:
        fail(f"{what}: the run does not say why: {shown.stdout.decode()}")
    read = subprocess.run([ASSURE, "effects", "last", "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    if read.returncode:
        fail(f"{what}: effects ended with {read.returncode}: {read.stdout[-300:]!r}")
    return took


def main():
    random.seed()
    slowest = {}
    for role in ("monitor", "keeper", "scribe", "guardian"):
        for number in range(ROUNDS):
            script = (WRITER, BUSY, WIDE)[number % 3]
            took = kill_one(role, script, "main" if number % 4 == 3 else "tree")
            slowest[role] = max(slowest.get(role, 0), took)
        if slowest[role] > 3:
            fail(f"after the death of the {role} the tree lived on for {slowest[role]:.1f} s")
    print(slowest)


main()
