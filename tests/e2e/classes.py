#!/usr/bin/python3
"""Whatever a command states of a run has its class beside it: on its line, in the heading of its block, in its object.

Every command of `assure help` is here, with what of its text is no claim; a new one has to be put here. A line is a claim
unless its command's list says otherwise. In JSON a class holds for its object and what is in it.
"""
# timeout: 90
import base64
import json
import os
import re
import sqlite3
import glob
import subprocess
import sys

ASSURE = os.environ["ASSURE"]
ROOT = os.environ["IDENTITY"] == "root"
CLASSES = ("telemetry", "verifiable", "mediated", "external")
# What the tree did was seen by somebody who is not of it; root of the tree could have passed for that.
WITNESSED = "verifiable" if ROOT else "mediated"
BESIDE = re.compile(r"\[(telemetry|verifiable|mediated|external)(?:, key exposed: [a-z-]+)?\]")
COLUMN = re.compile(r"^\S+  .{12,}?  (telemetry|verifiable|mediated|external) ")

# Keys whose value claims something about a run.
CLAIMS = {"kind", "result", "status", "state", "effects", "failed", "processes", "count", "by_kind", "by_how", "by_result",
          "gaps", "lineage", "complete", "verdict", "records", "root", "covered", "entries", "runs", "never_ended", "seal",
          "delegated"}
# What was asked for, by whom and where; what a verifier says of the file before it and of what limits it; hints.
HEADER = r"^(run|name|command|in|when|host|kernel|lens|results|back end|births) +\S"
MORE = r"^assure tree \w+ . assure effects \w+"
PROCESS_BLOCK = r"^[ │├└|`─-]*exec "

# command: (arguments, what of its text is no claim), or why it has none
COMMANDS = {
    "trace": (["trace", "--name", "again", "--", "sh", "-c", "echo x >../f; rm ../f; exit 3"], None),
    "runs": (["runs"], r"^RUN +STARTED"),
    "show": (["show", "run"], f"{HEADER}|{MORE}"),
    "tree": (["tree", "run"], None),
    "effects": (["effects", "run"], None),
    "verify": (["verify", "run"], None),
    "recover": (["recover", "killed"], None),
    "log": (["log", "verify"], None),
    "matrix": "has a table of its own, and a test (matrix.sh)",
    "receipt": "prints a record, which has its class in it (below)",
    "export": "copies records as they are",
    "import": "copies records as they are; says only how to check them",
    "keys": "speaks of keys, and of no run",
    "rm": "speaks of what it removed",
    "gc": "speaks of what it removed",
    "doctor": "speaks of the host, and of no run",
    "version": "speaks of itself",
    "help": "speaks of commands",
}
WITH_JSON = ("runs", "show", "tree", "effects", "verify", "log")

faults = []


def check(what, fine):
    if not fine:
        faults.append(what)


def assure(*arguments, status=(0,), stream="stdout"):
    done = subprocess.run([ASSURE, *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    check(f"assure {arguments}: status {done.returncode}: {done.stderr[-300:]!r}", done.returncode in status)
    return getattr(done, stream).decode()


def classes_of_text(text, exempt):
    """The class of each claim of a text; lines without one are faults."""
    found, block = [], None
    for line in text.splitlines():
        beside = BESIDE.search(line) or COLUMN.match(line)
        if beside:
            block = beside[1]
        elif not line or (exempt and re.search(exempt, line)):
            block = None if not line else block
            continue
        # What stands under a heading is indented, and so of its class.
        check(f"no class: {line!r}", beside or (block and re.match(r"  |" + PROCESS_BLOCK, line)))
        found.append(beside[1] if beside else block)
    return found


def classes_of_json(value, inherited=None, where="$"):
    found = []
    if isinstance(value, list):
        for number, item in enumerate(value):
            found += classes_of_json(item, inherited, f"{where}[{number}]")
    elif isinstance(value, dict):
        own = value.get("verdict_class", value.get("class"))
        check(f"{where}: class {own!r}", own is None or own in CLASSES)
        own = own or inherited
        for key, item in value.items():
            # A list of objects claims nothing by itself: they do.
            if key in CLAIMS and not (isinstance(item, list) and all(isinstance(part, dict) for part in item)):
                check(f"no class: {where}.{key}", own)
                found.append(own)
            found += classes_of_json(item, own, f"{where}.{key}")
    return found


def listed():
    return {line.split()[0] for line in assure("help").splitlines() if line.startswith("  ")}


def leave_one_open():
    """A run whose scribe was killed, which `recover` has to close."""
    done = subprocess.Popen([ASSURE, "trace", "--quiet", "--name", "killed", "--", "sleep", "30"], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(1000):
        text = subprocess.run([ASSURE, "effects", "killed", "--kind", "proc.exec"], capture_output=True, check=False).stdout
        if b"sleep" in text:
            break
    scribes = [pid for pid in subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(done.pid)], capture_output=True,
                                             check=True).stdout.decode().splitlines() if "scribe" in pid]
    check(f"one scribe: {scribes}", len(scribes) == 1)
    os.kill(int(scribes[0].split()[0]), 9)
    done.wait()


def check_commands():
    check(f"every command is here: {listed() ^ set(COMMANDS)}", listed() == set(COMMANDS))
    for name, entry in COMMANDS.items():
        if isinstance(entry, str):
            continue
        arguments, exempt = entry
        traces = name == "trace"
        text = assure(*arguments, status=(3,) if traces else (0,), stream="stderr" if traces else "stdout")
        before = len(faults)
        found = classes_of_text(text, exempt)
        check(f"{name}: claims nothing: {text!r}", found)
        # The seal and the log are signed, not witnessed; all else was.
        expected = {"verifiable"} if name in ("verify", "recover", "log") else {"verifiable", WITNESSED}
        if name in ("runs", "tree", "effects"):
            expected = {WITNESSED}
        check(f"{name}: {set(found)} instead of {expected}", set(found) == expected)
        if name in ("trace", "show", "verify"):
            check(f"{name}: says that its key was exposed: {text}", "key exposed: same-uid" in text or not exposed())
        if len(faults) > before:
            print(text)
        if name in WITH_JSON:
            documents = [json.loads(line) for line in assure(*arguments, "--json").splitlines()]
            found = classes_of_json(documents)
            check(f"{name} --json: claims nothing", found)
            check(f"{name} --json: {set(found)} instead of {expected}", set(found) <= expected and None not in found)


def exposed():
    return "key_exposed" in json.loads(assure("verify", "run", "--json"))


def check_receipt():
    extra = next(line for line in assure("receipt", "run", "3").splitlines() if line.startswith("extra "))
    check("receipt: the record's class", json.loads(base64.b64decode(extra.split()[1]))["class"] == WITNESSED)


def check_minimum():
    """One record that is worth less makes every claim about all of them worth less, and none about another."""
    path = max(glob.glob(os.path.join(os.environ["ASSURE_HOME"], "runs", "*", "run.sqlite")), key=os.path.getmtime)
    store = sqlite3.connect(path)
    (text,) = store.execute("SELECT json FROM records WHERE type = 'assure.effect/1' AND seq = 6").fetchone()
    store.execute("UPDATE records SET json = ? WHERE seq = 6",
                  (text.replace(b'"class":"%s"' % WITNESSED.encode(), b'"class":"telemetry"', 1),))
    store.commit()
    store.close()
    show, tree = json.loads(assure("show", "weak", "--json")), json.loads(assure("tree", "weak", "--json"))
    check(f"show: {show['class']}, {show['seal']}", show["class"] == show["seal"]["class"] == "telemetry")
    found = sorted({process["class"] for process in tree["processes"]})
    check(f"tree: {found}", found == sorted({"telemetry", WITNESSED}))
    found = {BESIDE.search(line)[1] for line in assure("show", "weak").splitlines() if BESIDE.search(line)}
    check(f"show: {found}", found == {"telemetry"})
    found = classes_of_text(assure("effects", "weak"), None)
    check(f"effects: {set(found)}", found.count("telemetry") == 1 and set(found) == {"telemetry", WITNESSED})


assure("trace", "--quiet", "--name", "run", "--", "sh", "-c", "echo x >f; cat absent; true")
leave_one_open()
check_receipt()
check_commands()
assure("trace", "--quiet", "--name", "weak", "--", "sh", "-c", "cat /etc/hostname; true")
check_minimum()
for fault in faults[:20]:
    print("FAIL:", fault)
sys.exit(1 if faults else 0)
